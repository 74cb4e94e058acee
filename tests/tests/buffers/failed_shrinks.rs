//! A shrink that fails half-way, and planes that it leaves uneven.

use crate::{PAGE, faulty, leases, used};
use leasehold::{BackingHandle, BufferSpec, ErrorKind, Host};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Faults, Strikes};
use leasehold_tests::observe::open_bytes;
use leasehold_tests::rig::{LIMIT, MIB};

#[test]
fn a_half_failed_shrink_leaves_no_length_past_what_is_committed() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(16 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(6);
        faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        let error = buffer.shrink_to(4 * PAGE).unwrap_err();
        assert!(error.to_string().contains("40960 of 65536 bytes stay charged"), "{error}");
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (10 * PAGE, 10 * PAGE, 10 * PAGE));
        assert_eq!(open_bytes(buffer.base(), MIB), 10 * PAGE);
        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 6));
        buffer.grow_to(16 * PAGE).unwrap();
        assert_eq!(
            (open_bytes(buffer.base(), MIB), used(&host)),
            (16 * PAGE, 16 * PAGE),
            "growing again really commits"
        );
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(10 * 4096);
        assert!(kept.iter().all(|byte| *byte == 6) && fresh.iter().all(|byte| *byte == 0));
    }
}

/// Four planes of 16 granules whose shrink to 4 failed half-way: two were left 10 granules, two were left 4.
fn uneven(faults: &Faults, host: &Host, backing: &BackingHandle) -> leasehold::BufferSet {
    let mut set = host.buffer_set(backing, 4, &BufferSpec::new(MIB)).unwrap();
    set.grow_to(16 * PAGE).unwrap();
    for plane in 0..4 {
        set.plane_mut(plane).unwrap().fill(8);
    }
    faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
    set.shrink_to(4 * PAGE).unwrap_err();
    assert_eq!((set.len(), set.committed(), set.owned_bytes()), (4 * PAGE, 4 * PAGE, 28 * PAGE));
    assert_eq!((used(host), faults.held().owned_bytes), (28 * PAGE, 28 * PAGE));
    set
}

#[test]
fn uneven_planes_grow_even_again() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = uneven(&faults, &host, &backing);
        for (granules, total) in [(6, 32), (10, 40), (16, 64)] {
            set.grow_to(granules * PAGE).unwrap();
            assert_eq!((set.committed(), set.owned_bytes()), (granules * PAGE, total * PAGE), "{granules}");
            assert_eq!((used(&host), faults.held().owned_bytes), (total * PAGE, total * PAGE), "{granules}");
        }
        for plane in 0..4 {
            let (kept, fresh) = set.plane(plane).unwrap().split_at(4 * 4096);
            assert!(kept.iter().all(|byte| *byte == 8), "plane {plane}");
            assert!(fresh.iter().all(|byte| [0, 8].contains(byte)), "plane {plane}: zero, or its own bytes");
        }
    }
}

#[test]
fn a_failed_shrink_that_is_called_again_gives_the_rest_back() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = uneven(&faults, &host, &backing);
        set.shrink_to(4 * PAGE).unwrap();
        assert_eq!((set.len(), set.owned_bytes()), (4 * PAGE, 16 * PAGE));
        assert_eq!((used(&host), faults.held().owned_bytes), (16 * PAGE, 16 * PAGE));
    }
}

#[test]
fn a_shrink_of_which_nobody_can_tell_what_is_left_shows_no_byte_that_may_be_gone() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(16 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(6);
        faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        faults.plan(Call::CommittedBytes, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        buffer.shrink_to(4 * PAGE).unwrap_err();
        let charged = if leases(&backing) { 16 } else { 10 };
        assert_eq!(used(&host), charged * PAGE, "nothing is refunded that may still be held");
        assert_eq!((buffer.len(), buffer.committed()), (4 * PAGE, 4 * PAGE), "what is there for certain");
        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 6));
        let error = buffer.grow_to(16 * PAGE).unwrap_err();
        assert_eq!((error.kind(), buffer.len()), (ErrorKind::Backing, 4 * PAGE), "{error}");
        assert_eq!(buffer.shrink_to(PAGE).unwrap_err().kind(), ErrorKind::Backing);
        faults.heal();
        buffer.grow_to(16 * PAGE).unwrap();
        assert_eq!((open_bytes(buffer.base(), MIB), used(&host)), (16 * PAGE, 16 * PAGE));
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(10 * 4096);
        assert!(kept.iter().all(|byte| *byte == 6) && fresh.iter().all(|byte| *byte == 0));
    }
}
