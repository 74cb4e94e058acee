//! Many threads that grow under pressure.

use crate::{ALL_BOOKS, Held, MIB, PAGE, faulty, governor, lease, used};
use leasehold::{BufferSpec, ErrorKind, ReclaimOrder};
use leasehold_tests::asked::register;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

#[test]
fn many_threads_that_grow_under_pressure_stay_within_the_limit_and_end() {
    const LIMIT: u64 = 64 * PAGE;
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(LIMIT, books);
        let governor = host.governor();
        let stock = Arc::new(Mutex::new(lease(&governor, 48 * PAGE).unwrap()));
        let (given, giving) = (Arc::new(AtomicU64::new(0)), Arc::clone(&stock));
        let counting = Arc::clone(&given);
        let _stock = register(&governor, ReclaimOrder::new(), move |shortfall| {
            // Whoever refills the stock holds it while it asks for memory.
            let Ok(mut stock) = giving.try_lock() else { return 0 };
            counting.fetch_add(shortfall.bytes.min(stock.bytes()), Ordering::AcqRel);
            stock.shrink(shortfall.bytes);
            shortfall.bytes
        });
        let (start, done) = (Barrier::new(8), AtomicBool::new(false));
        let work = |thread: u64| {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
            start.wait();
            for round in 1..300 {
                let wanted = (round * 7 + thread * 13) % 16 * PAGE;
                if let Err(error) = buffer.grow_to(wanted) {
                    assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
                    buffer.shrink_to(0).unwrap();
                }
                if round % 3 == thread % 3 {
                    buffer.shrink_to(wanted / 2).unwrap();
                    let _ = stock.lock().unwrap().grow(wanted);
                }
            }
        };
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    assert!(used(&governor) <= LIMIT);
                }
            });
            let workers: Vec<_> = (0..8).map(|thread| scope.spawn(move || work(thread))).collect();
            // A failure is passed on only after all have ended: otherwise the watcher would never be stopped.
            let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Ordering::Release);
            watcher.join().unwrap();
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        });
        assert!(given.load(Ordering::Acquire) > 0, "there was pressure");
        assert_eq!((used(&governor), faults.held().owned_bytes), (stock.lock().unwrap().bytes(), 0));
    }
}

#[test]
fn nobody_is_refused_while_somebody_has_plenty_to_give() {
    for _ in 0..40 {
        let governor = governor(4000);
        let held = Held::new(&governor, 4000);
        let giving = held.clone();
        let _held = register(&governor, ReclaimOrder::new(), move |shortfall| giving.give(shortfall.bytes));
        let start = Barrier::new(4);
        let take = || {
            start.wait();
            (0..500).map(|_| lease(&governor, 1).expect("half of it is left")).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let leases: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            assert_eq!((leases.len(), used(&governor) <= 4000), (2000, true));
        });
    }
}
