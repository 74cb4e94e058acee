//! Panics in each call, and what is charged after them.

use crate::{GRANULE, assert_error, with_liar};
use leasehold::{Domain, ErrorKind, MemoryRole};
use tracing::Level;

#[test]
fn a_panic_in_reserve_is_an_error_and_reserves_nothing_whatever_its_payload() {
    for (lie, words) in [
        ("panic-in-reserve", "the plugin panicked: told to: PanicInReserve"),
        ("panic-with-bomb", "the plugin panicked: a payload that is no text"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            assert_error(&scene.buffer(&liar).expect_err("panics"), ErrorKind::OutOfService, words);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_panic_in_commit_is_an_error_and_charges_nothing() {
    with_liar("panic-in-commit", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        let words = "the plugin panicked: told to: PanicInCommit";
        assert_error(&buffer.grow_to(1).expect_err("panics"), ErrorKind::OutOfService, words);
        assert_eq!((buffer.len(), buffer.committed(), scene.used()), (0, 0, 0));
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn a_panic_in_trim_gives_nothing_and_takes_it_out_of_service() {
    with_liar("panic-in-trim", |scene| {
        let liar = scene.liar();
        let governor = scene.host.governor();
        let limit = scene.host.snapshot().domain(Domain::Host).expect("has books").limit_bytes;
        let all = governor.lease(Domain::Host, limit, MemoryRole::KvCache).expect("fits");
        let refused = governor.lease(Domain::Host, 1, MemoryRole::KvCache).expect_err("nobody gives");
        assert_eq!(refused.kind(), ErrorKind::TierExhausted, "{refused}");
        assert_eq!(scene.used(), limit);
        drop(all);
        let words = "trim: the plugin panicked: told to: PanicInTrim";
        scene.assert_retired(&liar, words);
        assert!(scene.log.has("liar", "trim failed: the plugin panicked"), "{:?}", scene.log.lines());
    });
}

#[test]
fn a_panic_in_decommit_is_an_error_and_keeps_what_is_charged() {
    with_liar("panic-in-decommit", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(2 * GRANULE).expect("grows");
        let words = "the plugin panicked: told to: PanicInDecommit";
        assert_error(&buffer.shrink_to(0).expect_err("panics"), ErrorKind::OutOfService, words);
        assert_eq!((buffer.committed(), scene.used()), (2 * GRANULE, 2 * GRANULE));
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn a_panic_in_release_keeps_the_bytes_charged_until_the_backing_ends() {
    with_liar("panic-in-release", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(2 * GRANULE).expect("grows");
        let words = "the plugin panicked: told to: PanicInRelease";
        assert_error(&buffer.close().expect_err("panics"), ErrorKind::NotReleased, words);
        assert_eq!(scene.used(), 2 * GRANULE);
        scene.assert_retired(&liar, words);
        let report = scene.host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (0, 1, 2 * GRANULE));
        scene.assert_others_work();
        let governor = scene.host.governor();
        drop((liar, scene.host));
        let used = governor.snapshot().domain(Domain::Host).expect("has books").used_bytes;
        assert_eq!(used, 0, "with the backing go its bytes, and their charge");
    });
}

#[test]
fn a_panic_at_the_end_of_a_backing_is_logged_under_its_name() {
    with_liar("panic-in-drop", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(GRANULE).expect("grows");
        let governor = scene.host.governor();
        drop((liar, scene.host));
        assert_eq!(scene.log.count("liar", "destroyed"), 0, "a backing lives while a buffer is on it");
        drop(buffer);
        let line = scene.log.lines().into_iter().find(|line| line.message.contains("told to: PanicInDrop"));
        let line = line.expect("the panic is logged");
        assert_eq!((line.level, line.backing.as_str()), (Level::ERROR, "liar"));
        assert_eq!(governor.snapshot().domain(Domain::Host).expect("has books").used_bytes, 0);
    });
}
