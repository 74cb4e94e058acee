//! A backing that panics or loses its device while it holds memory.

use crate::{CAPACITY, GRANULE, PLANES, alone, two_backings};
use leasehold::{AllocationSpec, BufferSpec, Domain, ErrorKind};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Faults, Held, Strikes, Under};

#[test]
fn a_backing_that_panics_or_loses_its_device_is_retired_and_still_gets_its_memory_back() {
    let _alone = alone();
    for fault in [Fault::Panic, Fault::Refuse(api::ErrorKind::DeviceLost)] {
        for call in [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::Allocate] {
            Under::EXACT.into_iter().for_each(|under| retire(under, call, fault));
        }
    }
}

fn retire(under: Under, call: Call, fault: Fault) {
    let faults = Faults::new();
    let host = two_backings(under, &faults);
    let (faulty, sound) = (host.backing("faulty").unwrap(), host.backing("sound").unwrap());
    let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    let mut other = host.buffer(&sound, &BufferSpec::new(CAPACITY)).unwrap();
    other.grow_to(GRANULE).unwrap();
    let mut set = host.buffer_set(&faulty, PLANES, &BufferSpec::new(CAPACITY)).unwrap();
    set.grow_to(8 * GRANULE).unwrap();
    set.plane_mut(3).unwrap().fill(9);
    faults.plan(call, 0, Strikes::Once, fault);
    let error = match call {
        Call::Reserve => host.buffer(&faulty, &BufferSpec::new(CAPACITY)).unwrap_err(),
        Call::Commit => set.grow_to(9 * GRANULE).unwrap_err(),
        Call::Decommit => set.shrink_to(GRANULE).unwrap_err(),
        Call::Cost => set.growth_cost(9 * GRANULE).unwrap_err(),
        _ => host.allocate(&faulty, &AllocationSpec::new(1)).unwrap_err(),
    };
    assert_eq!(error.kind(), ErrorKind::OutOfService, "{call:?}: {error}");
    let report = &host.backings()[0];
    assert_eq!(report.state.name(), "retired", "{call:?}");
    assert!(report.state.reason().unwrap().contains("as planned"), "{call:?}: {:?}", report.state);
    assert_eq!(host.backing("faulty").unwrap_err().kind(), ErrorKind::NoBackingFits, "{call:?}");
    let refused = host.buffer(&faulty, &BufferSpec::new(CAPACITY)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfService, "{call:?}: gets no new work");
    assert_eq!((set.len(), used()), (8 * GRANULE, 33 * GRANULE), "{call:?}");
    assert!(set.plane(3).unwrap().iter().all(|byte| *byte == 9), "{call:?}: what it holds can be read");
    set.shrink_to(2 * GRANULE).unwrap();
    set.grow_to(GRANULE).unwrap();
    assert_eq!(set.grow_to(9 * GRANULE).unwrap_err().kind(), ErrorKind::OutOfService, "{call:?}");
    assert_eq!(used(), 9 * GRANULE, "{call:?}: it still takes back");
    set.close().unwrap();
    assert_eq!((used(), faults.held()), (GRANULE, Held::default()), "{call:?}");
    other.grow_to(3 * GRANULE).unwrap();
    other.as_mut_slice().unwrap().fill(1);
    host.buffer(&sound, &BufferSpec::new(CAPACITY)).unwrap().grow_to(1).unwrap();
}

#[test]
fn a_commit_that_breaks_off_stays_charged_until_somebody_can_tell_what_it_left() {
    let _alone = alone();
    for under in Under::EXACT {
        let faults = Faults::new();
        let host = two_backings(under, &faults);
        let faulty = host.backing("faulty").unwrap();
        let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
        let mut set = host.buffer_set(&faulty, 2, &BufferSpec::new(CAPACITY)).unwrap();
        set.grow_to(GRANULE).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, Fault::Panic);
        faults.plan(Call::CommittedBytes, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        assert_eq!(set.grow_to(4 * GRANULE).unwrap_err().kind(), ErrorKind::OutOfService);
        assert_eq!((set.len(), set.committed(), set.owned_bytes()), (GRANULE, GRANULE, 8 * GRANULE));
        // A backing that charges by itself knows that it took nothing; a lease covers the worst.
        let charged = if under.leases() { 8 } else { 2 };
        assert_eq!(used(), charged * GRANULE, "{under:?}: what it may have committed is charged");
        assert!(set.shrink_to(0).is_err(), "nobody can tell what there is to give back");
        faults.heal();
        set.shrink_to(GRANULE).unwrap();
        assert_eq!((set.len(), used()), (GRANULE, 2 * GRANULE), "the backing said that it had committed nothing");
        set.close().unwrap();
        assert_eq!((used(), faults.held()), (0, Held::default()));
    }
}
