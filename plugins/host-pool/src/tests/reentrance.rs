//! Charges that come back into the pool, and many threads at once.

use super::memory::{fill, holds};
use super::*;
use std::sync::Weak;

#[test]
fn a_charge_may_come_back_and_take_from_the_same_pool() {
    let (pool, books) = pool(&parking(0));
    let pool = Arc::new(pool);
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    reserve(&pool, 2, 64 * MIB, OTHER);
    reserve(&pool, 3, 64 * MIB, OTHER);
    commit(&pool, 1, 0, MIB).unwrap();
    commit(&pool, 2, 0, 8 * MIB).unwrap();
    commit(&pool, 3, 0, MIB).unwrap();
    create(&pool, 1, MIB, ONE).unwrap();
    pool.seal(PrefixId::new(1)).unwrap();
    let inner: Weak<HostPool> = Arc::downgrade(&pool);
    let calls = books.charges();
    let seen = books.clone();
    books.call_back(Some(Box::new(move |_| {
        let Some(pool) = inner.upgrade() else { return };
        match seen.charges() - calls {
            1 => drop(decommit(&pool, 2, 4 * MIB, 4 * MIB).unwrap()),
            2 => release(&pool, 3),
            3 => release_prefix(&pool, 1),
            4 => drop(commit(&pool, 2, 4 * MIB, MIB).unwrap()),
            _ => assert!(pool.trim(MIB).is_ok()),
        }
    })));
    for step in 1..8 {
        commit(&pool, 1, step * MIB, MIB).unwrap();
    }
    books.call_back(None);
    assert!(holds(base, 0, 8 * MIB, 0));
    assert_eq!((committed(&pool, 1), committed(&pool, 2)), (8 * MIB, 5 * MIB));
    assert_eq!(books.charged(), 13 * MIB + pool.pool.parked_bytes());
}

#[test]
fn what_is_parked_while_a_charge_is_refused_serves_and_only_the_rest_is_charged() {
    let (pool, books) = pool(&parking(64 * MIB));
    let pool = Arc::new(pool);
    reserve(&pool, 1, 8 * MIB, ONE);
    pool.reserve(&ReserveRequest { role: MemoryRole::Weights, ..request(2, 8 * MIB, ONE) }).unwrap();
    let victim = reserve(&pool, 3, 8 * MIB, OTHER).base;
    commit(&pool, 3, 0, 4 * MIB).unwrap();
    fill(victim, 0, 4 * MIB, 7);
    let inner: Weak<HostPool> = Arc::downgrade(&pool);
    books.call_back(Some(Box::new(move |bytes| {
        let Some(pool) = inner.upgrade().filter(|_| bytes == 3 * MIB) else { return };
        decommit(&pool, 3, 2 * MIB, 2 * MIB).unwrap();
    })));
    books.refuse(2);
    let calls = books.charges();
    // The one role is charged for already when the charge for the other is refused.
    let grown = pool.commit(&[range(1, 0, 2 * MIB), range(2, 0, 3 * MIB)]).unwrap();
    assert_eq!((grown, books.charges() - calls), (change(5 * MIB, 3 * MIB), 3));
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (7 * MIB, 0));

    books.refuse(1);
    assert_eq!(kind(commit(&pool, 1, 2 * MIB, MIB)), ErrorKind::BudgetRefused, "nothing was parked meanwhile");
    assert_eq!((books.charged(), books.charges() - calls), (7 * MIB, 4));
    books.call_back(None);
}

#[test]
fn threads_grow_shrink_share_and_trim_at_once() {
    let (pool, books) = pool(&parking(2 * MIB));
    let window = create(&pool, 1, MIB, ONE).unwrap().window;
    fill(window, 0, MIB, 99);
    pool.seal(PrefixId::new(1)).unwrap();
    std::thread::scope(|scope| {
        for id in 0..4 {
            let pool = &pool;
            scope.spawn(move || hammer(pool, id));
        }
    });
    assert_eq!(books.charged(), MIB + pool.pool.parked_bytes());
    assert!(pool.pool.parked_bytes() <= 2 * MIB);
    pool.trim(u64::MAX).unwrap();
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (MIB, MIB));
}

/// One thread's work on regions and prefixes of its own.
fn hammer(pool: &HostPool, thread: u64) {
    let value = u8::try_from(thread).unwrap() + 1;
    let holder = HolderId::new(thread + 1);
    for round in 0..60 {
        let id = thread * 1000 + round + 10;
        let base = reserve(pool, id, 8 * MIB, holder).base;
        for granule in 0..10 {
            commit(pool, id, granule * GRANULE, GRANULE).unwrap();
            let own = [0, value].map(|value| holds(base, granule * GRANULE, GRANULE, value));
            assert!(own.contains(&true), "thread {thread}, round {round}");
            fill(base, granule * GRANULE, GRANULE, value);
        }
        pool.map_prefix(&[place(1, 0, MIB, id, 4 * MIB)]).unwrap();
        assert!(holds(base, 0, 10 * GRANULE, value) && holds(base, 4 * MIB, MIB, 99));
        decommit(pool, id, 5 * GRANULE, 5 * GRANULE).unwrap();
        let window = create(pool, id, 2 * GRANULE, holder).unwrap().window;
        fill(window, 0, 2 * GRANULE, value);
        if round % 3 == 0 {
            pool.unmap(&[place(1, 0, MIB, id, 4 * MIB)]).unwrap();
            pool.trim(4 * GRANULE).unwrap();
        }
        release(pool, id);
        release_prefix(pool, id);
    }
}

#[test]
fn calls_over_the_same_regions_in_opposite_order_do_not_wait_for_each_other() {
    let (pool, books) = pool(&HostPoolOptions::default());
    reserve(&pool, 0, MIB, ONE);
    reserve(&pool, 1, MIB, OTHER);
    std::thread::scope(|scope| {
        for (granule, ids) in [(0, [0, 1]), (1, [1, 0])] {
            let pool = &pool;
            scope.spawn(move || {
                let ranges = ids.map(|id| range(id, granule * GRANULE, GRANULE));
                for _ in 0..500 {
                    pool.commit(&ranges).unwrap();
                    pool.decommit(&ranges).unwrap();
                }
            });
        }
    });
    assert_eq!(books.charged(), pool.pool.parked_bytes());
}
