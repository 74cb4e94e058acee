//! Growing and shrinking, as the kernel and the memory itself show them.

use super::memory::{fill, holds, mappings};
use super::*;

#[test]
fn growth_keeps_the_base_and_reads_zero() {
    let (pool, books) = pool(&parking(0));
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    assert_eq!(commit(&pool, 1, 0, 4 * MIB), Ok(change(4 * MIB, 4 * MIB)));
    assert!(holds(base, 0, 4 * MIB, 0));
    fill(base, 0, 4 * MIB, 7);
    assert_eq!(decommit(&pool, 1, MIB, 3 * MIB), Ok(change(3 * MIB, 3 * MIB)));
    assert_eq!((committed(&pool, 1), books.charged(), pool.pool.resident_bytes()), (MIB, MIB, MIB));
    assert_eq!(commit(&pool, 1, MIB, 3 * MIB), Ok(change(3 * MIB, 3 * MIB)));
    assert!(holds(base, 0, MIB, 7) && holds(base, MIB, 3 * MIB, 0));
    release(&pool, 1);
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}

#[test]
fn a_decommit_in_the_middle_leaves_both_ends() {
    let (pool, books) = pool(&parking(0));
    let base = reserve(&pool, 1, 8 * MIB, ONE).base;
    commit(&pool, 1, 0, 3 * MIB).unwrap();
    fill(base, 0, 3 * MIB, 7);
    assert_eq!(kind(decommit(&pool, 1, 2 * MIB, 2 * MIB)), ErrorKind::NotCommitted);
    decommit(&pool, 1, MIB, MIB).unwrap();
    assert!(holds(base, 0, MIB, 7) && holds(base, 2 * MIB, MIB, 7));
    assert_eq!((books.charged(), committed(&pool, 1)), (2 * MIB, 2 * MIB));
    commit(&pool, 1, MIB, MIB).unwrap();
    assert!(holds(base, 0, MIB, 7) && holds(base, MIB, MIB, 0));
    assert!(mappings(base, 8 * MIB).len() <= 2);
}

#[test]
fn regions_that_grow_by_turns_stay_two_mappings_each() {
    let (pool, _) = pool(&HostPoolOptions::default());
    let bases: Vec<_> = (0..48).map(|id| reserve(&pool, id, 16 * MIB, ONE).base).collect();
    for granule in 0..40 {
        let ranges: Vec<_> = (0..48).map(|id| range(id, granule * GRANULE, GRANULE)).collect();
        pool.commit(&ranges).unwrap();
    }
    for base in bases {
        assert!(mappings(base, 16 * MIB).len() <= 2);
    }
}

#[test]
fn mappings_are_counted_as_the_kernel_counts_them() {
    let (pool, _, budget) = within(65_530);
    let bases: Vec<_> = (0..8).map(|id| reserve(&pool, id, 4 * MIB, ONE).base).collect();
    create(&pool, 1, MIB, ONE).unwrap();
    pool.seal(PrefixId::new(1)).unwrap();
    // Nothing; the beginning; both ends; side by side out of order; all of it; a prefix and what is behind it.
    let places: [&[u64]; 6] = [&[], &[0], &[0, 63], &[9, 8, 7], &[31, 32], &[16, 17]];
    for (id, granules) in (0..).zip(places) {
        granules.iter().for_each(|granule| _ = commit(&pool, id, granule * GRANULE, GRANULE).unwrap());
    }
    commit(&pool, 6, 0, 4 * MIB).unwrap();
    decommit(&pool, 6, MIB, MIB).unwrap();
    pool.map_prefix(&[place(1, 0, MIB, 5, 0), place(1, 0, MIB, 7, 3 * MIB)]).unwrap();
    let in_regions: usize = bases.iter().map(|base| mappings(*base, 4 * MIB).len()).sum();
    assert_eq!(budget.used(), u64::try_from(in_regions).unwrap() + 1, "and the prefix's window");
}

#[test]
fn regions_that_grow_by_turns_from_recycled_memory_stay_few_mappings_each() {
    let (pool, books) = pool(&HostPoolOptions::default());
    for round in 0..4 {
        let ids = round * 48..(round + 1) * 48;
        let bases: Vec<_> = ids.clone().map(|id| reserve(&pool, id, 4 * MIB, ONE).base).collect();
        for granule in 0..40 {
            for id in ids.clone() {
                commit(&pool, id, granule * GRANULE, GRANULE).unwrap();
            }
        }
        assert_eq!(books.charges(), 48 * 40);
        let most = bases.iter().map(|base| mappings(*base, 4 * MIB).len()).max().unwrap();
        assert!(most <= 3, "{most} in round {round}");
        ids.for_each(|id| release(&pool, id));
    }
}

#[test]
fn regions_sharing_one_parked_block_stay_few_mappings() {
    let (pool, books) = pool(&HostPoolOptions::default());
    allocate(&pool, 1, 120 * MIB, ONE).unwrap();
    pool.release(ReleaseTarget::Allocation(AllocationId::new(1)));
    let bases: Vec<_> = (0..48).map(|id| reserve(&pool, id, 4 * MIB, ONE).base).collect();
    for granule in 0..40 {
        for id in 0..48 {
            commit(&pool, id, granule * GRANULE, GRANULE).unwrap();
        }
    }
    assert_eq!(books.charges(), 1);
    let all: usize = bases.iter().map(|base| mappings(*base, 4 * MIB).len()).sum();
    assert!(all <= 48 * 3, "{all} mappings");
}

#[test]
fn more_than_a_segment_comes_from_several() {
    let settings = HostPoolOptions::default().resolve(4 * KIB).unwrap();
    let store = Store::with_segments_of(GRANULE, 10 * GRANULE + 5).unwrap();
    let books = Arc::new(Books::default());
    let pool = Pool::new(settings, store, Box::new(books.clone())).unwrap();
    let pool = HostPool::over(pool, Accounting::Buffer, MapBudget::of_library());
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    commit(&pool, 1, 0, 4 * MIB).unwrap();
    fill(base, 0, 4 * MIB, 7);
    commit(&pool, 1, 4 * MIB, 4 * MIB).unwrap();
    assert!(holds(base, 0, 4 * MIB, 7) && holds(base, 4 * MIB, 4 * MIB, 0));
    create(&pool, 1, 2 * MIB, ONE).unwrap();
    assert_eq!(books.charged(), 10 * MIB);
    release(&pool, 1);
    release_prefix(&pool, 1);
    assert_eq!(pool.trim(u64::MAX), Ok(10 * MIB));
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
}

#[test]
fn a_dropped_pool_unmaps_what_is_live_and_refunds_nothing() {
    let (pool, books, budget) = within(65_530);
    let base = reserve(&pool, 1, 8 * MIB, ONE).base;
    commit(&pool, 1, 0, MIB).unwrap();
    allocate(&pool, 1, MIB, ONE).unwrap();
    create(&pool, 1, MIB, ONE).unwrap();
    pool.seal(PrefixId::new(1)).unwrap();
    pool.map_prefix(&[place(1, 0, MIB, 1, 2 * MIB)]).unwrap();
    drop(pool);
    assert_eq!((mappings(base, 8 * MIB).len(), budget.used()), (0, 0));
    assert_eq!((books.charged(), books.reports().len()), (3 * MIB, 0));
}

#[test]
fn parked_pieces_serve_side_by_side_without_a_charge() {
    let (pool, books) = pool(&parking(8 * MIB));
    let base = reserve(&pool, 1, 8 * MIB, ONE).base;
    commit(&pool, 1, 0, 8 * MIB).unwrap();
    fill(base, 0, 8 * MIB, 7);
    // Every other granule: 64 pieces.
    for granule in (0..128).step_by(2) {
        decommit(&pool, 1, granule * GRANULE, GRANULE).unwrap();
    }
    let charges = books.charges();
    let second = reserve(&pool, 2, 8 * MIB, OTHER);
    assert_eq!(pool.cost(&[range(2, 0, 4 * MIB)]), Ok(change(4 * MIB, 0)));
    assert_eq!(commit(&pool, 2, 0, 4 * MIB), Ok(change(4 * MIB, 0)));
    assert!(mappings(second.base, 4 * MIB).len() <= 2);
    assert_eq!((books.charges(), books.charged(), pool.pool.parked_bytes()), (charges, 8 * MIB, 0));
    assert_eq!(pool.pool.resident_bytes(), 4 * MIB + GRANULE, "what was exchanged is given back");
    assert!(holds(second.base, 0, 4 * MIB, 0));
}
