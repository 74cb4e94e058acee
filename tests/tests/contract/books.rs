//! Charges, refunds and what is given back: the books are believed, not the backing.

use crate::{CAPACITY, GRANULE, assert_error, with_liar};
use leasehold::{BackingState, Domain, ErrorKind, Host, MemoryRole, Stage};
use leasehold_plugin_api::{Backing, BackingError, HostServices, LogLevel};
use leasehold_tests::fault::host_mmap;
use leasehold_tests::log::Log;
use std::sync::{Arc, Mutex};

#[test]
fn a_refund_of_what_was_never_charged_is_refused_and_takes_nobodys_budget() {
    with_liar("refund-more", |scene| {
        let liar = scene.liar();
        let ledgered = scene.host.backing("ledgered").expect("is ready");
        let mut other = scene.buffer(&ledgered).expect("is admitted");
        other.grow_to(4 * GRANULE).expect("grows");
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(2 * GRANULE).expect("the commit itself is right");
        assert_eq!(scene.used(), 6 * GRANULE, "both are charged, and neither was refunded");
        let words = "refunded 8192 bytes on host where it had charged 0";
        assert!(scene.log.has("liar", &format!("refund refused: {words}; refund what was charged")));
        scene.assert_retired(&liar, words);
        assert_eq!(buffer.grow_to(CAPACITY).expect_err("no new work").kind(), ErrorKind::OutOfService);
        buffer.close().expect("what it holds is still given back");
        other.close().expect("is given back");
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn what_a_backing_charged_and_never_refunded_comes_back_with_its_end() {
    with_liar("charge-and-forget", |scene| {
        assert_eq!((scene.used(), scene.state()), (2 * GRANULE, BackingState::Ready));
        scene.assert_others_work();
        let governor = scene.host.governor();
        drop(scene.host);
        assert_eq!(governor.snapshot().domain(Domain::Host).expect("has books").used_bytes, 0);
        assert!(scene.log.has("liar", "ended with 8192 bytes charged to host; they are refunded"));
    });
    with_liar("charge-and-panic", |scene| {
        assert!(matches!(scene.state(), BackingState::Rejected { stage: Stage::Create, .. }), "{:?}", scene.state());
        assert_eq!(scene.used(), 0, "a backing that was not made holds nothing");
        scene.assert_others_work();
    });
}

#[test]
fn of_a_trim_what_the_books_got_back_is_believed() {
    with_liar("trim-more", |scene| {
        let liar = scene.liar();
        assert_eq!(scene.used(), 2 * GRANULE);
        assert_eq!(scene.host.trim(&liar, 1).expect("trims"), 2 * GRANULE);
        assert_eq!((scene.used(), scene.host.trim(&liar, 1).expect("has nothing left")), (0, 0));
        scene.buffer(&liar).expect("its answer is not asked for, so it breaks nothing");
    });
    with_liar("trim-more", |scene| {
        let limit = scene.host.snapshot().domain(Domain::Host).expect("has books").limit_bytes;
        let all = scene.host.governor().lease(Domain::Host, limit, MemoryRole::KvCache);
        assert_eq!(all.expect("the liar gives what it has").bytes(), limit);
    });
}

#[test]
fn a_release_that_keeps_something_back_names_it_and_keeps_just_that_charged() {
    with_liar("release-in-two-steps", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(2 * GRANULE).expect("grows");
        let words = "told to keep one granule back; 4096 bytes stay charged: call reap() to try again";
        assert_error(&buffer.close().expect_err("something is kept back"), ErrorKind::NotReleased, words);
        assert_eq!((scene.used(), scene.state()), (GRANULE, BackingState::Ready), "a backing may do that");
        let report = scene.host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (1, 0, 0));
        assert_eq!(scene.used(), 0);
        scene.assert_all_given_back();
        scene.assert_others_work();
    });
}

#[test]
fn services_used_after_their_end_touch_no_other_backing() {
    Log::during(|log| {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let host = || {
            let keep = Arc::clone(&kept);
            let backing = move |services| -> Result<Box<dyn Backing>, BackingError> {
                keep.lock().expect("nothing panics").push(services);
                Ok(Box::new(host_mmap(services)?))
            };
            Host::builder().limit(Domain::Host, CAPACITY).with_backing("brought", backing).load().expect("it is ready")
        };
        drop(host());
        let next = host();
        let [stale, live] = <[HostServices; 2]>::try_from(kept.lock().expect("nothing panics").clone()).expect("two");
        live.charge(Domain::Host, GRANULE, MemoryRole::KvCache).expect("it fits");
        let calls = std::thread::spawn(move || {
            [
                stale.charge(Domain::Host, GRANULE, MemoryRole::KvCache),
                stale.refund(Domain::Host, GRANULE),
                stale.authority(Domain::Host).map(drop),
            ]
        });
        for call in calls.join().expect("it ends") {
            assert_eq!(call.expect_err("its backing has ended").kind(), leasehold_plugin_api::ErrorKind::WrongState);
        }
        assert_eq!(next.snapshot().domain(Domain::Host).expect("has books").used_bytes, GRANULE);
        stale.log(LogLevel::Warning, "left behind");
        assert!(log.has("", "left behind") && !log.has("brought", "left behind"), "logged without a name");
    });
}
