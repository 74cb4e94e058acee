//! The end of a buffer: what closing gives back, and what it could not.

use crate::{PAGE, faulty, used};
use leasehold::{BufferSpec, Domain, ErrorKind};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Strikes};
use leasehold_tests::rig::{GIB, LIMIT, MIB};

#[test]
fn closing_gives_everything_back_and_says_what_it_could_not() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(PAGE).unwrap();
        set.close().unwrap();
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
        let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(2 * PAGE).unwrap();
        faults.plan(Call::Release, 1, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
        let error = set.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
        assert!(error.to_string().contains("8192 bytes stay charged: call reap() to try again"), "{error}");
        assert_eq!((used(&host), faults.held().regions), (2 * PAGE, 1), "the other plane is given back");
        let report = host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (1, 0, 0));
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
    }
}

#[test]
fn closing_half_way_names_what_stays_charged() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(8 * PAGE).unwrap();
        faults.plan(Call::Release, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        let error = buffer.close().unwrap_err();
        assert_eq!((used(&host), faults.held().owned_bytes), (4 * PAGE, 4 * PAGE));
        assert!(error.to_string().contains("16384 bytes stay charged"), "{error}");
        assert_eq!(host.reap().released, 1);
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
    }
}

#[test]
fn a_buffer_outlives_its_host() {
    for (faults, host, backing) in faulty(GIB) {
        let governor = host.governor();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        drop((host, backing));
        buffer.grow_to(MIB).unwrap();
        buffer.as_mut_slice().unwrap().fill(1);
        let used = || governor.snapshot().domain(Domain::Host).unwrap().used_bytes;
        assert_eq!(used(), MIB);
        drop(buffer);
        assert_eq!((used(), faults.held()), (0, Default::default()));
    }
}
