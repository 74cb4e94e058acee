//! One holder's bytes never show to another, whichever way the memory goes.

use super::memory::{fill, holds};
use super::*;

/// Leaves 4 MiB of one holder's bytes behind, in every way that there is.
fn leave_behind(pool: &HostPool, holder: HolderId) {
    let base = reserve(pool, 100, 2 * MIB, holder).base;
    commit(pool, 100, 0, 2 * MIB).unwrap();
    fill(base, 0, 2 * MIB, 7);
    decommit(pool, 100, 0, MIB).unwrap();
    let allocation = allocate(pool, 100, MIB, holder).unwrap();
    fill(allocation.base, 0, MIB, 7);
    let window = create(pool, 100, 2 * MIB, holder).unwrap().window;
    fill(window, 0, 2 * MIB, 7);
    release(pool, 100);
    assert_eq!(pool.release(ReleaseTarget::Allocation(AllocationId::new(100))), ReleaseOutcome::Complete);
    release_prefix(pool, 100);
    assert_eq!(pool.pool.parked_bytes(), 4 * MIB);
}

#[test]
fn what_one_holder_left_reads_zero_for_another_and_for_nobody() {
    let pairs = [(ONE, OTHER), (ONE, HolderId::NOBODY), (HolderId::NOBODY, ONE), (HolderId::NOBODY, HolderId::NOBODY)];
    for (left, taker) in pairs {
        let (pool, books) = pool(&HostPoolOptions::default());
        leave_behind(&pool, left);
        let base = reserve(&pool, 1, 4 * MIB, taker).base;
        for granule in 0..4 * MIB / GRANULE {
            assert_eq!(commit(&pool, 1, granule * GRANULE, GRANULE), Ok(change(GRANULE, 0)));
        }
        assert!(holds(base, 0, 4 * MIB, 0), "{left} to {taker}");
        release(&pool, 1);

        pool.trim(u64::MAX).unwrap();
        leave_behind(&pool, left);
        let allocation = allocate(&pool, 1, 4 * MIB, taker).unwrap();
        assert!(holds(allocation.base, 0, 4 * MIB, 0), "{left} to {taker}");
        pool.release(ReleaseTarget::Allocation(AllocationId::new(1)));

        pool.trim(u64::MAX).unwrap();
        leave_behind(&pool, left);
        let prefix = create(&pool, 1, 4 * MIB, taker).unwrap();
        assert!(holds(prefix.window, 0, 4 * MIB, 0), "{left} to {taker}");
        assert_eq!((prefix.owned_bytes, books.charged()), (0, 4 * MIB));
    }
}

#[test]
fn a_commit_that_mixes_ones_own_anothers_and_fresh_memory_shows_nothing_of_the_other() {
    let (pool, _) = pool(&HostPoolOptions::default());
    for (id, holder, value) in [(1, ONE, 1), (2, OTHER, 2)] {
        let base = reserve(&pool, id, MIB, holder).base;
        commit(&pool, id, 0, MIB).unwrap();
        fill(base, 0, MIB, value);
    }
    release(&pool, 1);
    release(&pool, 2);
    let base = reserve(&pool, 3, 4 * MIB, ONE).base;
    assert_eq!(commit(&pool, 3, 0, 4 * MIB), Ok(change(4 * MIB, 2 * MIB)));
    let granules = 0..4 * MIB / GRANULE;
    let own = granules.clone().filter(|granule| holds(base, granule * GRANULE, GRANULE, 1)).count();
    let zero = granules.clone().filter(|granule| holds(base, granule * GRANULE, GRANULE, 0)).count();
    assert_eq!((own, zero), (16, 48));
}

#[test]
fn a_commit_that_failed_after_zeroing_leaves_the_memory_its_former_holders() {
    use crate::failpoints::{Failpoint, plan};
    let (pool, _) = pool(&HostPoolOptions::default());
    leave_behind(&pool, ONE);
    reserve(&pool, 1, 4 * MIB, OTHER);
    reserve(&pool, 2, 4 * MIB, OTHER);
    plan(Failpoint::Map, 1);
    pool.commit(&[range(1, 0, MIB), range(2, 0, MIB)]).unwrap_err();
    assert_eq!(pool.pool.parked_bytes(), 4 * MIB);
    let base = reserve(&pool, 3, 4 * MIB, OTHER).base;
    commit(&pool, 3, 0, 4 * MIB).unwrap();
    assert!(holds(base, 0, 4 * MIB, 0));
}
