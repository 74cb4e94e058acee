//! The kernel refuses a step, and then the undoing of it: the answer leaves doubt, and the books are right.

use super::memory::{fill, holds, mappings};
use super::*;
use crate::failpoints::{Failpoint, plan};
use leasehold_plugin_api::Address;

const PLACES: u64 = 4;

/// Parks three frames of one holder, no two of which follow each other, and leaves three others in region 100.
fn park_apart(pool: &HostPool, holder: HolderId) {
    reserve(pool, 100, MIB, holder);
    commit(pool, 100, 0, 6 * GRANULE).unwrap();
    pool.decommit(&[0, 2, 4].map(|granule| range(100, granule * GRANULE, GRANULE))).unwrap();
}

/// A sealed prefix, four regions, and a place in each.
fn places(pool: &HostPool) -> (Vec<Address>, Vec<PrefixMapping>) {
    let window = create(pool, 1, MIB, ONE).unwrap().window;
    fill(window, 0, MIB, 7);
    pool.seal(PrefixId::new(1)).unwrap();
    let bases = (0..PLACES).map(|id| reserve(pool, id, 4 * MIB, ONE).base).collect();
    (bases, (0..PLACES).map(|id| place(1, 0, MIB, id, MIB)).collect())
}

fn is_bare(base: &Address) -> bool {
    mappings(*base, 4 * MIB).iter().all(|mapping| mapping.permissions == "---p")
}

fn release_all(pool: &HostPool, books: &Books) {
    (0..PLACES).for_each(|id| release(pool, id));
    release_prefix(pool, 1);
    pool.trim(u64::MAX).unwrap();
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}

#[test]
fn a_seal_whose_undo_fails_at_any_map_leaves_doubt_and_one_that_is_undone_leaves_none() {
    let id = PrefixId::new(1);
    for (failing, undoing) in (0..3).flat_map(|failing| (0..4).map(move |undoing| (failing, undoing))) {
        let (pool, books) = pool(&HostPoolOptions::default());
        park_apart(&pool, ONE);
        let window = create(&pool, 1, 3 * GRANULE, ONE).unwrap().window;
        fill(window, 0, 3 * GRANULE, 7);
        plan(Failpoint::Map, failing);
        let error = if undoing < 3 {
            plan(Failpoint::Map, failing + 1 + undoing);
            pool.seal(id).unwrap_err()
        } else {
            let error = pool.seal(id).unwrap_err();
            fill(window, 0, 3 * GRANULE, 7);
            error
        };
        let wanted = if undoing < 3 { ErrorKind::BrokenOff } else { ErrorKind::AddressSpaceExhausted };
        assert_eq!((error.kind(), error.native_code()), (wanted, Some(12)), "{failing}, {undoing}");
        assert_eq!(kind(pool.map_prefix(&[place(1, 0, GRANULE, 100, 8 * GRANULE)])), ErrorKind::WrongState);
        pool.seal(id).unwrap();
        assert!(holds(window, 0, 3 * GRANULE, 7));
        assert!(mappings(window, 3 * GRANULE).iter().all(|mapping| mapping.permissions == "r--s"));
        release_prefix(&pool, 1);
        assert_eq!(books.charged(), 6 * GRANULE);
    }
}

#[test]
fn a_seal_that_broke_off_says_what_failed_first_and_what_failed_then() {
    let (pool, _) = pool(&HostPoolOptions::default());
    create(&pool, 1, MIB, ONE).unwrap();
    [0, 1].iter().for_each(|call| plan(Failpoint::Map, *call));
    assert_eq!(
        pool.seal(PrefixId::new(1)).unwrap_err().message(),
        "prefix 1 is not sealed: a planned failure failed: ENOMEM (12); unmap others first, or raise vm.max_map_count; \
         and undoing it failed: a planned failure failed: ENOMEM (12)"
    );
}

#[test]
fn a_mapping_whose_undo_fails_at_any_place_leaves_doubt_and_can_be_unmapped() {
    for (failing, undoing) in (0..PLACES).flat_map(|failing| (0..=failing).map(move |undoing| (failing, undoing))) {
        let (pool, books) = pool(&HostPoolOptions::default());
        let (bases, places) = places(&pool);
        plan(Failpoint::Map, failing);
        plan(Failpoint::Withdraw, undoing);
        assert_eq!(kind(pool.map_prefix(&places)), ErrorKind::BrokenOff, "{failing}, {undoing}");
        // The part that failed is undone first, then those before it.
        let stuck = if undoing == 0 { failing } else { undoing - 1 };
        assert_eq!(kind(commit(&pool, stuck, MIB, GRANULE)), ErrorKind::AlreadyCommitted);
        assert_eq!(committed(&pool, stuck), 0);
        for (id, place) in (0..).zip(&places) {
            let unmapped = pool.unmap(&[*place]);
            assert_eq!(unmapped.is_ok(), id == stuck, "{failing}, {undoing}: {id}");
        }
        assert!(bases.iter().all(is_bare));
        pool.map_prefix(&places).unwrap();
        release_all(&pool, &books);
    }
}

#[test]
fn an_unmapping_whose_undo_fails_at_any_place_leaves_doubt_and_maps_all_others_again() {
    for (failing, undoing) in (1..PLACES).flat_map(|failing| (0..failing).map(move |undoing| (failing, undoing))) {
        let (pool, books) = pool(&HostPoolOptions::default());
        let (bases, places) = places(&pool);
        pool.map_prefix(&places).unwrap();
        plan(Failpoint::Withdraw, failing);
        plan(Failpoint::Map, undoing);
        assert_eq!(kind(pool.unmap(&places)), ErrorKind::BrokenOff, "{failing}, {undoing}");
        for (id, base) in (0..).zip(&bases) {
            assert_eq!(is_bare(base), id == undoing);
            assert!(id == undoing || holds(*base, MIB, MIB, 7));
        }
        let lost = usize::try_from(undoing).unwrap();
        pool.map_prefix(&places[lost..=lost]).unwrap();
        pool.unmap(&places).unwrap();
        release_all(&pool, &books);
    }
}

#[test]
fn an_unmapping_leaves_doubt_too_where_what_could_not_be_mapped_again_can_not_go_either() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let (_, places) = places(&pool);
    pool.map_prefix(&places).unwrap();
    [2, 3].iter().for_each(|call| plan(Failpoint::Withdraw, *call));
    plan(Failpoint::Map, 1);
    assert_eq!(kind(pool.unmap(&places)), ErrorKind::BrokenOff);
    assert_eq!(kind(commit(&pool, 1, MIB, GRANULE)), ErrorKind::AlreadyCommitted);
    pool.unmap(&places).unwrap();
    release_all(&pool, &books);
}

#[test]
fn a_commit_whose_undo_fails_leaves_no_doubt_since_nothing_of_it_counts_and_its_place_is_free() {
    for undoing in 0..3 {
        let (pool, books) = pool(&parking(0));
        let bases: Vec<_> = (0..3).map(|id| reserve(&pool, id, MIB, ONE).base).collect();
        let ranges: Vec<_> = (0..3).map(|id| range(id, 0, GRANULE)).collect();
        plan(Failpoint::Map, 2);
        plan(Failpoint::Withdraw, undoing);
        assert_eq!(kind(pool.commit(&ranges)), ErrorKind::AddressSpaceExhausted);
        assert!((0..3).all(|id| committed(&pool, id) == 0));
        assert_eq!(books.charged(), 0);
        assert_eq!(pool.commit(&ranges), Ok(change(3 * GRANULE, 3 * GRANULE)));
        assert!(bases.iter().all(|base| holds(*base, 0, GRANULE, 0)));
    }
}

#[test]
fn a_decommit_that_the_kernel_refuses_half_way_keeps_the_beginning() {
    let (pool, books) = pool(&parking(MIB));
    let base = reserve(&pool, 1, MIB, ONE).base;
    // The one in the middle first: three frames, no two of which follow each other.
    for granule in [1, 0, 2] {
        commit(&pool, 1, granule * GRANULE, GRANULE).unwrap();
    }
    assert_eq!(mappings(base, 3 * GRANULE).len(), 3);
    fill(base, 0, 3 * GRANULE, 7);
    plan(Failpoint::Withdraw, 0);
    plan(Failpoint::Punch, 1);
    assert_eq!(kind(decommit(&pool, 1, 0, 3 * GRANULE)), ErrorKind::Internal);
    assert_eq!((committed(&pool, 1), books.charged()), (2 * GRANULE, 2 * GRANULE));
    assert!(holds(base, 0, 2 * GRANULE, 7));
    commit(&pool, 1, 2 * GRANULE, GRANULE).unwrap();
    assert!(holds(base, 0, 2 * GRANULE, 7) && holds(base, 2 * GRANULE, GRANULE, 0));
}

#[test]
fn an_allocation_whose_undo_fails_is_closed_and_its_frames_come_back() {
    let (pool, books) = pool(&HostPoolOptions::default());
    plan(Failpoint::Map, 0);
    plan(Failpoint::Withdraw, 0);
    assert_eq!(kind(allocate(&pool, 1, MIB, ONE)), ErrorKind::AddressSpaceExhausted);
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (0, 0));
    let hole = pool.pool.lock().take_anywhere(u64::MAX).unwrap();
    assert_eq!(hole.frames, pool.pool.store.frames_per_segment());
}

#[test]
fn what_could_neither_be_removed_nor_emptied_is_refunded_when_it_goes() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 0, MIB, ONE).base;
    commit(&pool, 0, 0, MIB).unwrap();
    fill(base, 0, MIB, 7);
    decommit(&pool, 0, 0, MIB).unwrap();
    reserve(&pool, 1, MIB, ONE);
    for failpoint in [Failpoint::Map, Failpoint::Withdraw, Failpoint::Punch] {
        plan(failpoint, 0);
    }
    commit(&pool, 1, 0, MIB).unwrap_err();
    assert_eq!(books.charged(), MIB, "it is owned still");
    (0..2).for_each(|id| release(&pool, id));
    pool.trim(u64::MAX).unwrap();
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}
