//! Growing, shrinking and reuse, as the kernel and the memory itself show them.

use super::memory::{holds, mark, resident};
use super::*;
use leasehold_plugin_api::{AllocateRequest, AllocationId, Backing, ReleaseOutcome, ReleaseTarget};

#[test]
fn growth_to_4_mib_and_back_to_1_frees_3_and_grows_again_reading_zero() {
    for huge_pages in EVERY_ADVICE {
        let backing = backing(&HostMmapOptions { huge_pages, ..HostMmapOptions::default() });
        let base = reserve(&backing, 1, 64 * MIB).base;
        commit(&backing, 1, 0, 4 * MIB).unwrap();
        mark(base, 0, 4 * MIB, 7);
        assert_eq!(resident(base, 0, 4 * MIB), 4 * MIB);
        assert_eq!(decommit(&backing, 1, MIB, 3 * MIB), Ok(both(3 * MIB)));
        assert_eq!((resident(base, 0, 4 * MIB), committed(&backing, 1)), (MIB, MIB));
        assert_eq!(commit(&backing, 1, MIB, 3 * MIB), Ok(both(3 * MIB)));
        assert!(holds(base, 0, MIB, 7) && holds(base, MIB, 3 * MIB, 0));
    }
}

#[test]
fn growth_in_steps_shrinks_to_where_no_step_ended() {
    let backing = in_mib();
    let base = reserve(&backing, 1, 64 * MIB).base;
    for (from, to) in [(0, 1), (1, 2), (2, 4), (4, 8)] {
        commit(&backing, 1, from * MIB, (to - from) * MIB).unwrap();
        mark(base, from * MIB, (to - from) * MIB, 7);
    }
    assert_eq!(decommit(&backing, 1, 3 * MIB, 5 * MIB), Ok(both(5 * MIB)));
    assert_eq!((resident(base, 0, 8 * MIB), committed(&backing, 1)), (3 * MIB, 3 * MIB));
    assert!(holds(base, 0, 3 * MIB, 7));
}

#[test]
fn a_decommit_never_takes_a_neighbours_bytes() {
    let backing = in_mib();
    let base = reserve(&backing, 1, 8 * MIB).base;
    commit(&backing, 1, 0, 3 * MIB).unwrap();
    mark(base, 0, 3 * MIB, 7);
    assert!(decommit(&backing, 1, MIB + PAGE, MIB).is_err());
    assert!(decommit(&backing, 1, MIB, PAGE).is_err());
    assert_eq!(resident(base, 0, 3 * MIB), 3 * MIB);
    decommit(&backing, 1, MIB, MIB).unwrap();
    assert!(holds(base, 0, MIB, 7) && holds(base, 2 * MIB, MIB, 7));
    assert_eq!(resident(base, MIB, MIB), 0);
}

#[test]
fn memory_of_a_released_region_reads_zero_in_the_next() {
    let backing = in_mib();
    for id in 0..16 {
        let base = reserve(&backing, id, 4 * MIB).base;
        commit(&backing, id, 0, 4 * MIB).unwrap();
        assert!(holds(base, 0, 4 * MIB, 0));
        mark(base, 0, 4 * MIB, 7);
        assert_eq!(backing.release(ReleaseTarget::Region(RegionId::new(id))), ReleaseOutcome::Complete);
    }
}

#[test]
fn a_commit_faults_nothing_in_unless_it_populates() {
    let lazy = in_mib();
    let base = reserve(&lazy, 1, 8 * MIB).base;
    commit(&lazy, 1, 0, 2 * MIB).unwrap();
    assert_eq!(resident(base, 0, 2 * MIB), 0);

    let eager = backing(&HostMmapOptions { populate: true, ..HostMmapOptions::default() });
    let base = reserve(&eager, 1, 8 * MIB).base;
    commit(&eager, 1, 0, 2 * MIB).unwrap();
    assert_eq!(resident(base, 0, 8 * MIB), 2 * MIB);
    assert!(holds(base, 0, 2 * MIB, 0));
    let (role, holder) = (MemoryRole::Weights, HolderId::new(1));
    let request = AllocateRequest { id: AllocationId::new(1), bytes: MIB, align: 1, role, holder };
    assert_eq!(resident(eager.allocate(&request).unwrap().base, 0, MIB), MIB);
}

#[test]
fn a_dropped_backing_unmaps_what_is_live() {
    let (backing, budget) = within(65_530);
    let base = reserve(&backing, 1, 8 * MIB).base;
    commit(&backing, 1, 0, MIB).unwrap();
    mark(base, 0, MIB, 7);
    drop(backing);
    assert_eq!((resident(base, 0, MIB), budget.used()), (0, 0));
}

#[test]
fn threads_commit_different_regions_at_once() {
    let backing = backing(&HostMmapOptions::default());
    std::thread::scope(|scope| {
        for id in 0..4 {
            let backing = &backing;
            scope.spawn(move || {
                let base = reserve(backing, id, 64 * MIB).base;
                let value = u8::try_from(id).unwrap() + 1;
                for round in 0..20 {
                    for page in 0..50 {
                        commit(backing, id, page * PAGE, PAGE).unwrap();
                        assert!(holds(base, page * PAGE, PAGE, 0), "round {round}");
                        mark(base, page * PAGE, PAGE, value);
                    }
                    assert!(holds(base, 0, 50 * PAGE, value));
                    decommit(backing, id, 0, 50 * PAGE).unwrap();
                }
                assert_eq!(backing.release(ReleaseTarget::Region(RegionId::new(id))), ReleaseOutcome::Complete);
            });
        }
    });
}

#[test]
fn calls_over_the_same_regions_in_opposite_order_do_not_wait_for_each_other() {
    let backing = backing(&HostMmapOptions::default());
    reserve(&backing, 0, MIB);
    reserve(&backing, 1, MIB);
    std::thread::scope(|scope| {
        for (page, ids) in [(0, [0, 1]), (1, [1, 0])] {
            let backing = &backing;
            scope.spawn(move || {
                let ranges = ids.map(|id| range(id, page * PAGE, PAGE));
                for _ in 0..2000 {
                    backing.commit(&ranges).unwrap();
                    backing.decommit(&ranges).unwrap();
                }
            });
        }
    });
    assert_eq!((committed(&backing, 0), committed(&backing, 1)), (0, 0));
}
