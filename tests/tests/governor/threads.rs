//! The governor under contention.

use crate::{MIB, PAGE, faulty, governor, used};
use leasehold::{Buffer, BufferSpec, Domain, ErrorKind, MemoryRole};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn the_sum_of_the_leases_of_many_threads_never_passes_the_limit() {
    const LIMIT: u64 = 1000;
    let governor = governor(LIMIT);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let host = governor.snapshot().domain(Domain::Host).unwrap().clone();
                assert!(host.used_bytes <= LIMIT && host.peak_bytes <= LIMIT, "{host}");
            }
        });
        let workers: Vec<_> = (0..8_u64)
            .map(|thread| {
                let governor = &governor;
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..5000_u64 {
                        let bytes = (round * 31 + thread * 17) % 300;
                        match governor.lease(Domain::Host, bytes, MemoryRole::KvCache) {
                            Ok(lease) => held.push(lease),
                            Err(error) => {
                                let figures = error.tier_exhausted().unwrap();
                                assert!(figures.used_bytes + bytes > LIMIT, "refused though it fitted: {figures:?}");
                                held.clear();
                            }
                        }
                    }
                })
            })
            .collect();
        // A failure is passed on only after all have ended: otherwise the watcher would never be stopped.
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Release);
        watcher.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert_eq!(used(&governor), 0);
}

#[test]
fn of_many_threads_that_ask_at_once_exactly_as_many_are_granted_as_fit() {
    for _ in 0..50 {
        let governor = governor(10);
        let start = Barrier::new(8);
        let granted = std::thread::scope(|scope| {
            let ask = || {
                start.wait();
                governor.lease(Domain::Host, 3, MemoryRole::Weights).ok()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!((granted.len(), used(&governor)), (3, 9));
    }
}

#[test]
fn two_charges_that_do_not_fit_together_are_never_held_together() {
    let governor = governor(10);
    let holders = AtomicU64::new(0);
    let start = Barrier::new(4);
    let work = || {
        let mut lease = governor.lease(Domain::Host, 0, MemoryRole::KvCache).unwrap();
        start.wait();
        let mut granted = 0;
        for _ in 0..200_000 {
            if lease.grow(6).is_ok() {
                assert_eq!(holders.fetch_add(1, Ordering::AcqRel), 0, "12 of 10 bytes are held");
                granted += 1;
                holders.fetch_sub(1, Ordering::AcqRel);
                lease.shrink(6);
            }
        }
        granted
    };
    let granted: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(granted > 0);
    assert_eq!(used(&governor), 0);
}

#[test]
fn a_doomed_large_request_never_makes_a_small_one_fail() {
    let governor = governor(MIB);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let doomed = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                for bytes in [MIB + 1, u64::MAX / 2, u64::MAX] {
                    governor.lease(Domain::Host, bytes, MemoryRole::KvCache).unwrap_err();
                }
            }
        });
        let small = || governor.lease(Domain::Host, MIB, MemoryRole::KvCache).map(drop);
        let outcome = (0..100_000).try_for_each(|_| small());
        done.store(true, Ordering::Release);
        doomed.join().unwrap();
        outcome.expect("it has the budget to itself");
    });
}

#[test]
fn buffers_of_many_threads_are_exact_under_a_budget_that_is_too_small() {
    const LIMIT: u64 = 64 * PAGE;
    let (faults, host, backing) = faulty(LIMIT);
    let work = |thread: u64| {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        for round in 1..200 {
            let wanted = (round * 7 + thread * 13) % 40 * PAGE;
            match buffer.grow_to(wanted) {
                Ok(()) => buffer.as_mut_slice().unwrap().fill(1),
                Err(error) => assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}"),
            }
            assert!(used(&host.governor()) <= LIMIT);
            buffer.shrink_to(wanted / 3).unwrap();
        }
        buffer
    };
    let buffers: Vec<Buffer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let committed: u64 = buffers.iter().map(Buffer::committed).sum();
    assert_eq!((used(&host.governor()), faults.held().owned_bytes), (committed, committed));
    drop(buffers);
    assert_eq!(used(&host.governor()), 0);
}

#[test]
fn a_peak_that_is_restarted_beside_charges_is_never_less_than_what_is_used() {
    const ROUNDS: u64 = 100_000;
    let governor = governor(u64::MAX);
    // Odd where the peak is to be restarted, even where it was.
    let state = AtomicU64::new(0);
    let wait_for = |wanted| {
        while state.load(Ordering::Acquire) != wanted {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(2 * round - 1);
                governor.restart_peak(Domain::Host).unwrap();
                state.store(2 * round, Ordering::Release);
            }
        });
        let mut lost = 0;
        for round in 1..=ROUNDS {
            state.store(2 * round - 1, Ordering::Release);
            (0..round % 40).for_each(|_| std::hint::spin_loop());
            let _lease = governor.lease(Domain::Host, 100, MemoryRole::KvCache).unwrap();
            wait_for(2 * round);
            let host = governor.snapshot().domain(Domain::Host).unwrap().clone();
            lost += u64::from(host.peak_bytes < host.used_bytes);
        }
        assert_eq!(lost, 0);
    });
}
