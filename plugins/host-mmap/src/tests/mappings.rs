//! How many kernel mappings a region costs, and that the process never runs out of them.

use super::memory::{holds, is_child, lock, mappings, mark, resident, take_last_mappings};
use super::*;
use leasehold_host_memory::max_map_count;
use leasehold_plugin_api::{Address, Backing, ErrorKind, ReleaseOutcome, ReleaseTarget};

#[test]
fn a_region_that_moves_its_watermark_is_at_most_two_mappings() {
    for huge_pages in EVERY_ADVICE {
        let backing = backing(&HostMmapOptions { huge_pages, ..HostMmapOptions::default() });
        let base = reserve(&backing, 1, 64 * MIB).base;
        let mut watermark = 0;
        for target in [1, 2, 9, 4, 16, 0, 3, 64, 63, 1, 2, 0, 64] {
            let (from, to) = (watermark.min(target) * MIB, watermark.max(target) * MIB);
            if target > watermark {
                commit(&backing, 1, from, to - from).unwrap();
                mark(base, from, to - from, 7);
            } else {
                decommit(&backing, 1, from, to - from).unwrap();
            }
            watermark = target;
            assert!(mappings(base, 64 * MIB) <= 2, "{huge_pages:?} at {target} MiB");
        }
    }
}

/// Commits every other page until that is refused; says how many went.
fn commit_odd_pages(backing: &HostMmap, id: u64, base: Address, most: u64) -> (u64, BackingError) {
    for index in 0..most {
        match commit(backing, id, 2 * index * PAGE + PAGE, PAGE) {
            Ok(_) => mark(base, 2 * index * PAGE + PAGE, PAGE, 7),
            Err(error) => return (index, error),
        }
    }
    panic!("{most} scattered pages were granted");
}

#[test]
fn odd_granules_alone_are_refused_before_the_mappings_run_out() {
    let (backing, budget) = within(400);
    let base = reserve(&backing, 1, 64 * MIB).base;
    let (granted, error) = commit_odd_pages(&backing, 1, base, 1000);
    assert_eq!((granted, error.kind()), (149, ErrorKind::AddressSpaceExhausted));
    assert!(error.message().contains("vm.max_map_count (400)"), "{error}");
    assert!(mappings(base, 64 * MIB) <= 300);
    assert_eq!(committed(&backing, 1), 149 * PAGE);
    // Filling a gap costs nothing, and freeing always works, the middle of a piece included.
    commit(&backing, 1, 2 * PAGE, PAGE).unwrap();
    decommit(&backing, 1, 3 * PAGE, PAGE).unwrap();
    for index in (0..149).filter(|index| *index != 1) {
        decommit(&backing, 1, 2 * index * PAGE + PAGE, PAGE).unwrap();
    }
    decommit(&backing, 1, 2 * PAGE, PAGE).unwrap();
    assert_eq!((committed(&backing, 1), budget.used()), (0, 1));
    assert_eq!(resident(base, 0, 300 * PAGE), 0);
}

#[test]
fn pages_that_grew_apart_stay_counted_where_they_meet() {
    let (backing, budget) = within(400);
    let base = reserve(&backing, 1, 64 * MIB).base;
    for page in (0..100).step_by(2).chain((1..100).step_by(2)) {
        commit(&backing, 1, page * PAGE, PAGE).unwrap();
        mark(base, page * PAGE, PAGE, 7);
        assert!(u64::try_from(mappings(base, 64 * MIB)).unwrap() <= budget.used());
    }
}

#[test]
fn this_process_may_use_three_quarters_of_its_mappings() {
    if !is_child("mappings::this_process_may_use_three_quarters_of_its_mappings") {
        return;
    }
    let backing = backing(&HostMmapOptions::default());
    let base = reserve(&backing, 1, 1 << 32).base;
    let (granted, error) = commit_odd_pages(&backing, 1, base, max_map_count());
    assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted);
    assert!(granted > max_map_count() / 3, "{granted}");
    assert!(u64::try_from(mappings(base, 1 << 32)).unwrap() <= max_map_count() * 3 / 4);
}

#[test]
fn freeing_works_when_the_kernel_has_no_mappings_left() {
    if !is_child("mappings::freeing_works_when_the_kernel_has_no_mappings_left") {
        return;
    }
    let (filler, _) = within(1 << 40);
    let filled = reserve(&filler, 0, 1 << 32).base;
    let backing = backing(&HostMmapOptions::default());
    // Three neighbours, which the kernel holds as one mapping; the middle one can't be cut out at the limit.
    let bases = [1, 2, 3].map(|id| reserve(&backing, id, 4 * MIB).base);
    assert!(mappings(bases[2], 12 * MIB) == 1 || mappings(bases[0], 12 * MIB) == 1, "{bases:?}");
    let grown = reserve(&backing, 4, 4 * MIB).base;
    commit(&backing, 4, 0, 3 * MIB).unwrap();
    mark(grown, 0, 3 * MIB, 7);
    let (_, error) = commit_odd_pages(&filler, 0, filled, max_map_count());
    assert_eq!((error.kind(), error.native_code()), (ErrorKind::OutOfMemory, Some(12)));
    assert!(error.message().contains("mprotect failed: ENOMEM (12)"), "{error}");

    // The middle of a piece: its pages go without a new mapping, and are zero when they come back.
    decommit(&backing, 4, MIB, MIB).unwrap();
    assert_eq!((resident(grown, 0, 3 * MIB), committed(&backing, 4)), (2 * MIB, 2 * MIB));
    commit(&backing, 4, MIB, MIB).unwrap();
    assert!(holds(grown, 0, MIB, 7) && holds(grown, MIB, MIB, 0) && holds(grown, 2 * MIB, MIB, 7));

    take_last_mappings();
    let middle = ReleaseTarget::Region(RegionId::new(2));
    let refused = match backing.release(middle) {
        ReleaseOutcome::Quarantined { remaining_bytes: 0, error } => {
            assert!(error.message().contains("munmap failed: ENOMEM (12)"), "{error}");
            true
        }
        // Now and then the kernel has a mapping to spare all the same.
        ReleaseOutcome::Complete => false,
        outcome => panic!("{outcome:?}"),
    };
    assert!(backing.committed_bytes(RegionId::new(2)).is_err());
    assert_eq!(filler.release(ReleaseTarget::Region(RegionId::new(0))), ReleaseOutcome::Complete);
    if refused {
        assert_eq!(backing.release(middle), ReleaseOutcome::Complete);
    }
}

#[test]
fn a_decommit_that_the_kernel_refuses_half_way_keeps_the_part_before_and_says_how_much() {
    if !is_child("mappings::a_decommit_that_the_kernel_refuses_half_way_keeps_the_part_before_and_says_how_much") {
        return;
    }
    let (filler, _) = within(1 << 40);
    let filled = reserve(&filler, 0, 1 << 32).base;
    let backing = in_mib();
    let base = reserve(&backing, 1, 64 * MIB).base;
    commit(&backing, 1, 0, 12 * MIB).unwrap();
    lock(base, 4 * MIB, 4 * MIB);
    mark(base, 0, 12 * MIB, 7);
    commit_odd_pages(&filler, 0, filled, max_map_count());

    // At the limit nothing can be cut out of a mapping, and the second range is locked.
    let ranges = [range(1, MIB, MIB), range(1, 5 * MIB, MIB), range(1, 10 * MIB, MIB)];
    let error = backing.decommit(&ranges).unwrap_err();
    assert_eq!(
        error.message(),
        "region 1, 1048576 bytes at offset 5242880: madvise(MADV_DONTNEED) failed: EINVAL (22); unlock the range \
         (munlock), or free others first: the process is at vm.max_map_count"
    );
    assert_eq!((committed(&backing, 1), resident(base, 0, 12 * MIB)), (11 * MIB, 11 * MIB));
    assert!(holds(base, 0, 10 * MIB, 7));
    filler.release(ReleaseTarget::Region(RegionId::new(0)));
    assert_eq!(backing.decommit(&ranges[..2]), Ok(both(2 * MIB)));
    assert_eq!(resident(base, 0, 12 * MIB), 9 * MIB);
}
