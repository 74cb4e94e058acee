//! What the books make of the answers.

use crate::{Held, giver, governor, lease, used};
use leasehold::{Domain, ReclaimOrder};
use leasehold_tests::asked::{Asked, register};
use leasehold_tests::log::Log;
use std::sync::Mutex;

#[test]
fn whoever_says_that_it_gave_and_gave_nothing_is_not_believed() {
    let (governor, asked) = (governor(100), Asked::default());
    let held = lease(&governor, 80).unwrap();
    let _liar = asked.register(&governor, "liar", ReclaimOrder::new(), |shortfall| shortfall.bytes + 100);
    let before = governor.snapshot();
    let figures = lease(&governor, 50).unwrap_err().tier_exhausted().unwrap().clone();
    assert_eq!((figures.requested_bytes, figures.used_bytes, figures.limit_bytes), (50, 80, 100));
    assert_eq!((governor.snapshot(), held.bytes()), (before, 80), "a refusal changes nothing");
    assert_eq!(asked.take(), [("liar", 30)], "nor asked again");
}

#[test]
fn whoever_has_given_all_that_it_has_is_not_asked_again() {
    let (governor, asked) = (governor(100), Asked::default());
    let held = Held::new(&governor, 10);
    let _others = lease(&governor, 80).unwrap();
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, u64::MAX);
    lease(&governor, 50).unwrap_err();
    assert_eq!(asked.take(), [("held", 40)]);
}

#[test]
fn what_another_thread_took_of_what_was_given_is_asked_for_again() {
    let (governor, asked) = (governor(100), Asked::default());
    let held = Held::new(&governor, 100);
    let (giving, books, taken) = (held.clone(), governor.clone(), Mutex::new(None));
    let _held = asked.register(&governor, "held", ReclaimOrder::new(), move |shortfall| {
        let gave = giving.give(shortfall.bytes);
        let mut taken = taken.lock().unwrap();
        if taken.is_none() {
            let books = books.clone();
            *taken = std::thread::spawn(move || lease(&books, gave).ok()).join().unwrap();
        }
        gave
    });
    assert_eq!(lease(&governor, 7).expect("there is more").bytes(), 7);
    assert_eq!((asked.take(), held.bytes()), (vec![("held", 7), ("held", 7)], 86));
}

#[test]
fn whoever_says_that_it_gave_nothing_and_gave_is_not_believed_either() {
    let governor = governor(100);
    let held = Held::new(&governor, 80);
    let modest = held.clone();
    let _modest = register(&governor, ReclaimOrder::new(), move |shortfall| {
        modest.give(shortfall.bytes);
        0
    });
    assert_eq!(lease(&governor, 50).expect("it gave").bytes(), 50);
    assert_eq!((used(&governor), held.bytes()), (50, 50), "the lease ended at once");
}

#[test]
fn a_refusal_tells_the_figures_after_the_last_answer() {
    let governor = governor(100);
    let (asked, held) = (Asked::default(), Held::new(&governor, 80));
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, 20);
    let mut mine = lease(&governor, 10).unwrap();
    let figures = mine.grow(50).unwrap_err();
    assert_eq!((figures.used_bytes, figures.available_bytes(), mine.bytes()), (70, 30, 10));
}

#[test]
fn whoever_panics_gave_nothing_and_the_next_is_asked() {
    let governor = governor(100);
    let (asked, held) = (Asked::default(), Held::new(&governor, 100));
    let first = ReclaimOrder::new().priority(1);
    let _panics = asked.register(&governor, "panics", first, |_| panic!("the cache is broken"));
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, u64::MAX);
    Log::during(|log| {
        for bytes in [10, 20] {
            let _granted = lease(&governor, bytes).expect("the other gives");
            assert_eq!(asked.names(), ["panics", "held"], "it is asked the next time too");
        }
        assert!(log.has("", "gave none: a reclaimer panicked: the cache is broken"), "{:?}", log.lines());
    });
}

#[test]
fn what_was_given_is_no_peak_and_what_failed_is_none() {
    let governor = governor(100);
    let (asked, held) = (Asked::default(), Held::new(&governor, 90));
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, u64::MAX);
    let _granted = lease(&governor, 5).unwrap();
    assert_eq!(governor.snapshot().domain(Domain::Host).unwrap().peak_bytes, 95);
    let _more = lease(&governor, 50).unwrap();
    assert_eq!(governor.snapshot().domain(Domain::Host).unwrap().peak_bytes, 100);
}
