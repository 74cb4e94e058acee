//! The budget, the kernel or the number of mappings refuses at the k-th step, for every k: nothing has changed.

use super::memory::{fill, holds, mappings};
use super::*;
use crate::failpoints::{Failpoint, plan};

const PLANES: u64 = 5;

/// Everything that a failed call must leave alone.
fn books_of(pool: &HostPool, books: &Books) -> [u64; 4] {
    let committed = (0..PLANES).map(|id| committed(pool, id)).sum();
    [committed, books.charged(), pool.pool.parked_bytes(), pool.pool.resident_bytes()]
}

fn planes(pool: &HostPool) -> Vec<leasehold_plugin_api::Address> {
    let bases: Vec<_> = (0..PLANES).map(|id| reserve(pool, id, 8 * MIB, ONE).base).collect();
    let before: Vec<_> = (0..PLANES).map(|id| range(id, 0, 2 * MIB)).collect();
    pool.commit(&before).unwrap();
    bases.iter().for_each(|base| fill(*base, 0, 2 * MIB, 7));
    let tails: Vec<_> = (0..PLANES).map(|id| range(id, MIB, MIB)).collect();
    pool.decommit(&tails).unwrap();
    bases
}

#[test]
fn a_commit_that_fails_at_plane_k_changes_nothing_for_every_k() {
    // Each plane is one mapping of parked memory and one of fresh memory.
    for failing in 0..2 * PLANES {
        let (pool, books) = pool(&HostPoolOptions::default());
        let bases = planes(&pool);
        let before = books_of(&pool, &books);
        let more: Vec<_> = (0..PLANES).map(|id| range(id, MIB, 2 * MIB)).collect();
        plan(Failpoint::Map, failing);
        assert_eq!(kind(pool.commit(&more)), ErrorKind::AddressSpaceExhausted);
        assert_eq!(books_of(&pool, &books), before);
        assert!(bases.iter().all(|base| holds(*base, 0, MIB, 7) && mappings(*base, 8 * MIB).len() <= 2));
        assert_eq!(pool.commit(&more), Ok(change(2 * PLANES * MIB, PLANES * MIB)));
    }
}

#[test]
fn a_charge_that_is_refused_changes_nothing_for_every_one_of_a_call() {
    for nth in 1..=2 {
        let (pool, books) = pool(&HostPoolOptions::default());
        planes(&pool);
        let role = MemoryRole::Activation;
        pool.reserve(&ReserveRequest { role, ..request(50, 8 * MIB, OTHER) }).unwrap();
        let before = books_of(&pool, &books);
        let more: Vec<_> = (0..PLANES).map(|id| range(id, MIB, 2 * MIB)).chain([range(50, 0, MIB)]).collect();
        books.refuse(nth);
        assert_eq!(kind(pool.commit(&more)), ErrorKind::BudgetRefused);
        assert_eq!((books_of(&pool, &books), committed(&pool, 50)), (before, 0));
    }
    let (pool, books) = pool(&HostPoolOptions::default());
    planes(&pool);
    let before = books_of(&pool, &books);
    books.refuse(1);
    assert_eq!(kind(allocate(&pool, 1, 64 * MIB, ONE)), ErrorKind::BudgetRefused);
    books.refuse(1);
    assert_eq!(kind(create(&pool, 1, 64 * MIB, ONE)), ErrorKind::BudgetRefused);
    assert_eq!(books_of(&pool, &books), before);
}

#[test]
fn a_mapping_that_children_would_inherit_is_undone() {
    let (pool, books, budget) = within(65_530);
    planes(&pool);
    create(&pool, 1, MIB, ONE).unwrap();
    let (before, used) = (books_of(&pool, &books), budget.used());
    let ranges: Vec<_> = (0..PLANES).map(|id| range(id, 6 * MIB, MIB)).collect();
    for failing in 0..PLANES {
        plan(Failpoint::KeepFromChildren, failing);
        assert_eq!(kind(pool.commit(&ranges)), ErrorKind::AddressSpaceExhausted);
        let [now @ .., _exchanged] = books_of(&pool, &books);
        assert_eq!((&now[..], budget.used()), (&before[..3], used), "{failing}");
    }
    for call in [allocate(&pool, 1, MIB, OTHER).map(drop), create(&pool, 2, MIB, OTHER).map(drop)] {
        call.unwrap();
    }
    pool.release(ReleaseTarget::Allocation(AllocationId::new(1)));
    release_prefix(&pool, 2);
    plan(Failpoint::KeepFromChildren, 0);
    assert_eq!(kind(allocate(&pool, 1, MIB, OTHER)), ErrorKind::AddressSpaceExhausted);
    plan(Failpoint::KeepFromChildren, 0);
    assert_eq!(kind(create(&pool, 2, MIB, OTHER)), ErrorKind::AddressSpaceExhausted);
    plan(Failpoint::KeepFromChildren, 0);
    assert_eq!(kind(pool.seal(PrefixId::new(1))), ErrorKind::AddressSpaceExhausted);
    pool.seal(PrefixId::new(1)).unwrap();
    let places: Vec<_> = (0..PLANES).map(|id| place(1, 0, MIB, id, 6 * MIB)).collect();
    for failing in 0..PLANES {
        plan(Failpoint::KeepFromChildren, failing);
        assert_eq!(kind(pool.map_prefix(&places)), ErrorKind::AddressSpaceExhausted);
        assert_eq!(kind(pool.unmap(&places[..1])), ErrorKind::NotCommitted);
    }
}

#[test]
fn allocations_and_prefixes_that_fail_leave_nothing_behind() {
    for failing in 0..2 {
        let (pool, books, budget) = within(65_530);
        planes(&pool);
        let (before, used) = (books_of(&pool, &books), budget.used());
        plan(Failpoint::Map, failing);
        assert_eq!(kind(allocate(&pool, 1, 64 * MIB, OTHER)), ErrorKind::AddressSpaceExhausted);
        plan(Failpoint::Map, failing);
        assert_eq!(kind(create(&pool, 1, 64 * MIB, OTHER)), ErrorKind::AddressSpaceExhausted);
        let [now @ .., resident] = books_of(&pool, &books);
        assert_eq!((&now[..], budget.used()), (&before[..3], used));
        assert!(resident <= before[3], "small pieces of parked memory may have been exchanged for holes");
        let window = create(&pool, 1, 64 * MIB, OTHER).unwrap().window;
        assert!(holds(window, 0, 64 * MIB, 0));
        // A seal that fails leaves all of it writable.
        plan(Failpoint::Map, failing);
        assert_eq!(kind(pool.seal(PrefixId::new(1))), ErrorKind::AddressSpaceExhausted);
        fill(window, 0, 64 * MIB, 9);
        assert_eq!(kind(pool.map_prefix(&[place(1, 0, MIB, 0, 4 * MIB)])), ErrorKind::WrongState);
        pool.seal(PrefixId::new(1)).unwrap();
    }
}

#[test]
fn a_prefix_whose_mapping_fails_at_place_k_is_mapped_nowhere_for_every_k() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let window = create(&pool, 1, MIB, ONE).unwrap().window;
    fill(window, 0, MIB, 7);
    pool.seal(PrefixId::new(1)).unwrap();
    let bases: Vec<_> = (0..PLANES).map(|id| reserve(&pool, id, 8 * MIB, ONE).base).collect();
    let places: Vec<_> = (0..PLANES).map(|id| place(1, 0, MIB, id, MIB)).collect();
    let is_bare =
        |base: &leasehold_plugin_api::Address| mappings(*base, 8 * MIB).iter().all(|one| one.permissions == "---p");
    for failing in 0..PLANES {
        plan(Failpoint::Map, failing);
        assert_eq!(kind(pool.map_prefix(&places)), ErrorKind::AddressSpaceExhausted);
        assert!(bases.iter().all(is_bare));
        assert_eq!(kind(pool.unmap(&places[..1])), ErrorKind::NotCommitted);
    }
    pool.map_prefix(&places).unwrap();
    for failing in 0..PLANES {
        plan(Failpoint::Withdraw, failing);
        assert_eq!(kind(pool.unmap(&places)), ErrorKind::AddressSpaceExhausted);
        assert!(bases.iter().all(|base| holds(*base, MIB, MIB, 7)));
    }
    pool.unmap(&places).unwrap();
    assert!(bases.iter().all(is_bare));
    release_prefix(&pool, 1);
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (MIB, MIB));
}

#[test]
fn calls_past_the_budget_of_mappings_change_nothing_and_freeing_works() {
    for limit in 20..80 {
        let (pool, books, budget) = within(limit);
        let Ok(prefix) = create(&pool, 1, GRANULE, ONE) else { continue };
        fill(prefix.window, 0, GRANULE, 7);
        pool.seal(prefix.id).unwrap();
        let reserved = (0..3).all(|id| pool.reserve(&request(id, 8 * MIB, ONE)).is_ok());
        assert!(reserved);
        for round in 0..8 {
            let at = round * 4 * GRANULE;
            let state = (books.charged(), pool.pool.parked_bytes(), budget.used());
            let ranges: Vec<_> = (0..3).map(|id| range(id, at, GRANULE)).collect();
            let places: Vec<_> = (0..3).map(|id| place(1, 0, GRANULE, id, at + 2 * GRANULE)).collect();
            if let Err(error) = pool.commit(&ranges) {
                assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted);
                assert_eq!((books.charged(), pool.pool.parked_bytes(), budget.used()), state);
                break;
            }
            let state = (books.charged(), pool.pool.parked_bytes(), budget.used());
            if let Err(error) = pool.map_prefix(&places) {
                assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted);
                assert_eq!((books.charged(), pool.pool.parked_bytes(), budget.used()), state);
                break;
            }
            pool.decommit(&ranges[..1]).unwrap();
            pool.unmap(&places[..1]).unwrap();
        }
        (0..3).for_each(|id| release(&pool, id));
        release_prefix(&pool, 1);
        assert_eq!((budget.used(), books.charged()), (0, pool.pool.parked_bytes()));
    }
}

#[test]
fn frames_behind_a_mapping_that_stays_go_to_nobody_before_it_is_gone() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 1, 4 * MIB, ONE).base;
    commit(&pool, 1, 0, 2 * MIB).unwrap();
    fill(base, 0, 2 * MIB, 7);
    plan(Failpoint::Withdraw, 0);
    assert_eq!(decommit(&pool, 1, MIB, MIB), Ok(change(MIB, MIB)));
    assert_eq!((books.charged(), committed(&pool, 1), pool.pool.resident_bytes()), (MIB, MIB, MIB));
    // They are still mapped there: others get other frames, and writing there shows to nobody.
    let other = reserve(&pool, 2, 4 * MIB, OTHER).base;
    commit(&pool, 2, 0, 4 * MIB).unwrap();
    fill(base, MIB, MIB, 9);
    assert!(holds(other, 0, 4 * MIB, 0));
    // The place can be committed again, and is zero.
    commit(&pool, 1, MIB, MIB).unwrap();
    assert!(holds(base, 0, MIB, 7) && holds(base, MIB, MIB, 0));
    release(&pool, 1);
    release(&pool, 2);
    assert_eq!(books.charged(), pool.pool.parked_bytes());
    pool.trim(u64::MAX).unwrap();
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}

#[test]
fn an_undo_that_the_kernel_refuses_keeps_the_books_right() {
    let (pool, books) = pool(&HostPoolOptions::default());
    planes(&pool);
    let more: Vec<_> = (0..PLANES).map(|id| range(id, MIB, 2 * MIB)).collect();
    plan(Failpoint::Map, 2 * PLANES - 1);
    plan(Failpoint::Withdraw, 1);
    pool.commit(&more).unwrap_err();
    let committed: u64 = (0..PLANES).map(|id| committed(&pool, id)).sum();
    assert_eq!(books.charged(), committed + pool.pool.parked_bytes());
    assert!(pool.pool.resident_bytes() <= books.charged());
    pool.commit(&more).unwrap();
    (0..PLANES).for_each(|id| release(&pool, id));
    pool.trim(u64::MAX).unwrap();
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}

#[test]
fn a_region_that_the_kernel_will_not_unmap_is_emptied_and_unmapped_later() {
    let (pool, books) = pool(&parking(0));
    let base = reserve(&pool, 1, 4 * MIB, ONE).base;
    commit(&pool, 1, 0, MIB).unwrap();
    commit(&pool, 1, 2 * MIB, MIB).unwrap();
    fill(base, 0, MIB, 7);
    create(&pool, 1, MIB, ONE).unwrap();
    pool.seal(PrefixId::new(1)).unwrap();
    pool.map_prefix(&[place(1, 0, MIB, 1, 3 * MIB)]).unwrap();
    release_prefix(&pool, 1);
    let target = ReleaseTarget::Region(RegionId::new(1));
    plan(Failpoint::Unmap, 0);
    plan(Failpoint::Withdraw, 0);
    let outcome = pool.release(target);
    assert!(matches!(outcome, ReleaseOutcome::Quarantined { remaining_bytes: 0, .. }), "{outcome:?}");
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
    assert_eq!(kind(commit(&pool, 1, MIB, MIB)), ErrorKind::UnknownId);
    release(&pool, 1);
    assert_eq!(mappings(base, 4 * MIB).len(), 0);
    assert!(matches!(pool.release(target), ReleaseOutcome::Failed(error) if error.kind() == ErrorKind::UnknownId));
}

#[test]
fn a_prefix_that_the_kernel_will_not_unmap_can_be_released_again() {
    let (pool, books) = pool(&parking(0));
    create(&pool, 1, MIB, ONE).unwrap();
    let id = PrefixId::new(1);
    plan(Failpoint::Unmap, 0);
    plan(Failpoint::Withdraw, 0);
    assert!(matches!(pool.release_prefix(id), ReleaseOutcome::Failed(_)));
    assert_eq!(books.charged(), MIB);
    plan(Failpoint::Unmap, 0);
    assert!(matches!(pool.release_prefix(id), ReleaseOutcome::Quarantined { remaining_bytes: 0, .. }));
    assert_eq!((books.charged(), kind(pool.seal(id))), (0, ErrorKind::UnknownId));
    release_prefix(&pool, 1);
}

#[test]
fn a_commit_that_fails_after_an_exchange_owns_as_much_as_before() {
    let (pool, books) = pool(&parking(8 * MIB));
    reserve(&pool, 1, 8 * MIB, ONE);
    commit(&pool, 1, 0, 8 * MIB).unwrap();
    for granule in (0..128).step_by(2) {
        decommit(&pool, 1, granule * GRANULE, GRANULE).unwrap();
    }
    reserve(&pool, 2, 8 * MIB, OTHER);
    let before = (books.charged(), pool.pool.parked_bytes());
    plan(Failpoint::Map, 0);
    assert!(commit(&pool, 2, 0, 5 * MIB).is_err());
    assert_eq!((books.charged(), pool.pool.parked_bytes(), committed(&pool, 2)), (before.0, before.1, 0));
    books.refuse(1);
    assert!(commit(&pool, 2, 0, 5 * MIB).is_err());
    assert_eq!((books.charged(), pool.pool.parked_bytes()), before);
    commit(&pool, 2, 0, 4 * MIB).unwrap();
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (before.0, 0));
}
