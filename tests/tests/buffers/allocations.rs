//! Allocations: what is refused, what they hold, and what they are charged.

use crate::{PAGE, faulty, leases, used};
use leasehold::{AllocationSpec, ErrorKind};
use leasehold_tests::fault::Call;
use leasehold_tests::observe::resident_bytes;
use leasehold_tests::rig::{LIMIT, MIB, all_rigs, host_rigs};

#[test]
fn an_allocation_that_could_never_be_granted_is_refused_and_leaves_nothing() {
    let refusals = [
        (AllocationSpec::new(0), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(0), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(3), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(1 << 63), ErrorKind::AddressSpaceExhausted),
        (AllocationSpec::new(LIMIT + 1), ErrorKind::TierExhausted),
    ];
    for (faults, host, backing) in faulty(LIMIT) {
        for (spec, kind) in refusals {
            let error = host.allocate(&backing, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{spec:?}: {error}");
            assert_eq!((faults.held().allocations, used(&host)), (0, 0), "{spec:?}");
        }
        // Rounded up to granules it is no number of 64 bits: a backing that charges granules sees that before it charges.
        let kind = if leases(&backing) { ErrorKind::TierExhausted } else { ErrorKind::OutOfMemory };
        assert_eq!(host.allocate(&backing, &AllocationSpec::new(u64::MAX)).unwrap_err().kind(), kind);
        assert_eq!((faults.held().allocations, used(&host)), (0, 0));
    }
}

#[test]
fn an_allocation_without_a_budget_to_stop_it_is_refused_by_the_system() {
    for (faults, host, backing) in faulty(u64::MAX) {
        for bytes in [u64::MAX, 1 << 63, 1 << 47] {
            let error = host.allocate(&backing, &AllocationSpec::new(bytes)).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::AddressSpaceExhausted),
                "{bytes}: {error}"
            );
            assert_eq!((faults.held().allocations, used(&host)), (0, 0), "{bytes}");
        }
    }
}

#[test]
fn an_allocation_whose_rounding_passes_the_budget_goes_back() {
    for (faults, host, backing) in faulty(2 * PAGE - 1) {
        let error = host.allocate(&backing, &AllocationSpec::new(PAGE + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
        assert_eq!((faults.held().allocations, used(&host)), (0, 0));
        // A backing that charges by itself charges the rounded size, before it takes anything.
        assert_eq!(faults.count(Call::Release), u64::from(leases(&backing)));
        host.allocate(&backing, &AllocationSpec::new(PAGE)).unwrap();
    }
}

#[test]
fn an_allocation_reads_as_zero_is_aligned_and_is_charged_until_it_goes() {
    for rig in host_rigs() {
        let mut allocation = rig.host.allocate(&rig.backing, &AllocationSpec::new(MIB).align(2 * MIB)).unwrap();
        assert!(allocation.base().is_aligned_to(2 * MIB), "{}", rig.name);
        assert!(allocation.as_slice().unwrap().iter().all(|byte| *byte == 0), "{}", rig.name);
        allocation.as_mut_slice().unwrap().fill(5);
        assert_eq!((rig.used(), resident_bytes(allocation.base(), MIB)), (MIB, MIB), "{}", rig.name);
        allocation.close().unwrap();
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

#[test]
fn an_allocation_is_copied_in_and_out_and_never_past_its_end() {
    for rig in all_rigs() {
        let mut made = rig.host.allocate(&rig.backing, &AllocationSpec::new(1000)).unwrap();
        made.write(990, b"the end...").unwrap();
        made.fill(0, 10, 7).unwrap();
        let mut seen = [1; 20];
        made.read(980, &mut seen).unwrap();
        assert_eq!((&seen[..10], &seen[10..]), (&[0; 10][..], &b"the end..."[..]), "{}", rig.name);
        made.read(9, &mut seen[..2]).unwrap();
        assert_eq!(seen[..2], [7, 0], "{}", rig.name);
        for (offset, bytes) in [(991, 10), (1001, 0), (u64::MAX, 1)] {
            let refused = [made.write(offset, &seen[..bytes]), made.fill(offset, u64::try_from(bytes).unwrap(), 1)];
            for error in refused.into_iter().chain([made.read(offset, &mut [0; 20][..bytes])]).map(Result::unwrap_err) {
                assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{}: {error}", rig.name);
                let words = format!("not copied: {bytes} bytes at offset {offset} pass the allocation's 1000 bytes");
                assert!(error.to_string().contains(&words), "{}: {error}", rig.name);
            }
        }
    }
}
