//! What is parked, what serves again, and what goes back to the machine.

use super::memory::{fill, first_byte, holds};
use super::*;
use crate::Scrub;
use crate::failpoints::{Failpoint, plan};

#[test]
fn parked_memory_serves_without_a_charge() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    commit(&pool, 1, 0, 4 * MIB).unwrap();
    fill(base, 0, 4 * MIB, 7);
    assert_eq!(decommit(&pool, 1, 0, 4 * MIB), Ok(change(4 * MIB, 0)));
    assert_eq!((books.charged(), books.charges(), committed(&pool, 1)), (4 * MIB, 1, 0));
    assert_eq!(pool.cost(&[range(1, 0, 6 * MIB)]), Ok(change(6 * MIB, 2 * MIB)));
    assert_eq!(commit(&pool, 1, 0, MIB), Ok(change(MIB, 0)));
    assert_eq!(allocate(&pool, 1, MIB, ONE).unwrap().bytes, MIB);
    assert_eq!(create(&pool, 1, MIB, ONE).unwrap().owned_bytes, 0);
    assert_eq!(books.charges(), 1);
    assert_eq!(create(&pool, 2, 2 * MIB, ONE).unwrap().owned_bytes, MIB);
    assert_eq!((books.charged(), books.charges()), (5 * MIB, 2));
}

#[test]
fn a_holder_may_see_what_it_left_itself_unless_everything_is_scrubbed() {
    for (scrub, left) in [(Scrub::Holders, 7), (Scrub::Always, 0)] {
        let (pool, _) = pool(&HostPoolOptions { scrub, ..HostPoolOptions::default() });
        let base = reserve(&pool, 1, MIB, ONE).base;
        commit(&pool, 1, 0, MIB).unwrap();
        fill(base, 0, MIB, 7);
        decommit(&pool, 1, 0, MIB).unwrap();
        commit(&pool, 1, 0, MIB).unwrap();
        assert!(holds(base, 0, MIB, left), "{scrub:?}");
    }
}

#[test]
fn no_more_than_the_bound_is_parked() {
    let (pool, books) = pool(&parking(MIB + GRANULE + 1));
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    commit(&pool, 1, 0, 4 * MIB).unwrap();
    fill(base, 0, 4 * MIB, 7);
    assert_eq!(decommit(&pool, 1, 3 * MIB, MIB), Ok(change(MIB, 0)));
    assert_eq!(decommit(&pool, 1, 0, 3 * MIB), Ok(change(3 * MIB, 3 * MIB - GRANULE)));
    let parked = MIB + GRANULE;
    assert_eq!((books.charged(), pool.pool.parked_bytes(), pool.pool.resident_bytes()), (parked, parked, parked));
}

#[test]
fn a_trim_gives_back_what_was_asked_rounded_up_and_the_oldest_first() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    commit(&pool, 1, 0, 4 * MIB).unwrap();
    (0..4).for_each(|part| fill(base, part * MIB, MIB, u8::try_from(part).unwrap() + 1));
    for part in [2, 0] {
        decommit(&pool, 1, part * MIB, MIB).unwrap();
    }
    assert_eq!(pool.trim(1), Ok(GRANULE));
    assert_eq!(pool.trim(MIB - GRANULE), Ok(MIB - GRANULE));
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (3 * MIB, 3 * MIB));
    let second = reserve(&pool, 2, 64 * MIB, ONE).base;
    commit(&pool, 2, 0, MIB).unwrap();
    assert_eq!((first_byte(second, 0), pool.pool.parked_bytes()), (1, 0));
    assert_eq!((pool.trim(0), pool.trim(u64::MAX)), (Ok(0), Ok(0)));
}

#[test]
fn what_the_kernel_will_not_take_stays_parked_and_charged_past_the_bound() {
    let (pool, books) = pool(&parking(0));
    reserve(&pool, 1, MIB, ONE);
    commit(&pool, 1, 0, MIB).unwrap();
    plan(Failpoint::Punch, 0);
    assert_eq!(decommit(&pool, 1, 0, MIB), Ok(change(MIB, 0)));
    assert_eq!((books.charged(), pool.pool.parked_bytes(), books.reports().len()), (MIB, MIB, 1));
    plan(Failpoint::Punch, 0);
    let error = pool.trim(MIB).unwrap_err();
    let words = "parked memory can't be given back: a planned failure failed: ENOMEM (12); it stays parked and charged; \
                 try again";
    assert_eq!(error.message(), words);
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (MIB, MIB));
    assert_eq!(pool.trim(MIB), Ok(MIB));
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (0, 0));
}

#[test]
fn a_commit_takes_what_is_parked_and_charges_only_the_rest() {
    let (pool, books) = pool(&HostPoolOptions::default());
    reserve(&pool, 1, 8 * MIB, ONE);
    reserve(&pool, 2, 8 * MIB, OTHER);
    commit(&pool, 1, 0, MIB).unwrap();
    release(&pool, 1);
    assert_eq!(commit(&pool, 2, 0, 3 * MIB), Ok(change(3 * MIB, 2 * MIB)));
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (3 * MIB, 0));
}

#[test]
fn parked_memory_that_was_never_touched_stays_a_hole_and_the_rest_reads_zero() {
    let (pool, _) = pool(&parking(MIB));
    let first = reserve(&pool, 1, MIB, ONE);
    commit(&pool, 1, 0, MIB).unwrap();
    for granule in [3, 4, 15] {
        fill(first.base, granule * GRANULE, 4 * KIB, 7);
    }
    let touched = pool.pool.resident_bytes();
    decommit(&pool, 1, 0, MIB).unwrap();
    let second = reserve(&pool, 2, MIB, OTHER);
    commit(&pool, 2, 0, MIB).unwrap();
    assert_eq!(touched, 3 * 4 * KIB);
    assert_eq!(pool.pool.resident_bytes(), 3 * GRANULE, "only the granules that held something were zeroed");
    assert!(holds(second.base, 0, MIB, 0));
}

#[test]
fn an_allocation_reads_as_zero_whoever_left_what_in_its_frames() {
    let (pool, _) = pool(&parking(MIB));
    let base = reserve(&pool, 1, MIB, ONE).base;
    commit(&pool, 1, 0, MIB).unwrap();
    fill(base, 0, MIB, 7);
    decommit(&pool, 1, 0, MIB).unwrap();
    let allocation = allocate(&pool, 1, MIB, ONE).unwrap();
    assert!(holds(allocation.base, 0, MIB, 0));
}
