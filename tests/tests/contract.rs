//! A backing that breaks the contract is caught, put out of service or never let in, and hurts nobody else.
//!
//! Each test runs over both doors: the liar linked into this program, and the one loaded from its library. It does all
//! things well but one. What it makes and ends it logs, so a test can count that whatever was made was also given back.

use leasehold::{
    AllocationSpec, BackingHandle, BackingState, Buffer, BufferSpec, Domain, Error, ErrorKind, Host, MemoryRole, Stage,
};
use leasehold_tests::log::Log;
use leasehold_tests::plugins::{self, Registry};
use tracing::Level;

const CAPACITY: u64 = 64 << 10;
const GRANULE: u64 = 4096;

/// A host with the liar, and two others that must not suffer.
struct Scene<'l> {
    host: Host,
    log: &'l Log,
}

/// Runs a test over both doors with a liar that tells this lie.
fn with_liar(lie: &str, test: impl Fn(Scene<'_>)) {
    for (door, library) in plugins::doors("leasehold_rogue") {
        let lines = format!("backing = \"liar\"\n[backing.options]\nlie = {lie:?}");
        let registry = Registry::new()
            .backing("liar", &library, &lines)
            .backing("ledgered", &library, "backing = \"ledgered\"")
            .backing("host-mmap", "builtin", "");
        println!("{lie} over the door {door}");
        Log::during(|log| {
            test(Scene { host: registry.host(), log });
            assert_eq!(log.count("liar", "destroyed"), log.count("liar", "created"), "{lie}: {:?}", log.lines());
            assert_eq!(log.count("ledgered", "destroyed"), 1, "{lie}");
        });
    }
}

impl Scene<'_> {
    fn liar(&self) -> BackingHandle {
        self.host.backing("liar").expect("the liar is let in")
    }

    fn buffer(&self, backing: &BackingHandle) -> Result<Buffer, Error> {
        self.host.buffer(backing, &BufferSpec::new(CAPACITY))
    }

    fn state(&self) -> BackingState {
        self.host.backings().into_iter().find(|report| report.name == "liar").expect("is reported").state
    }

    fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).expect("has books").used_bytes
    }

    /// Out of service, for a reason with these words; the handle that is still held serves nobody.
    fn assert_retired(&self, liar: &BackingHandle, words: &str) {
        let BackingState::Retired { reason } = self.state() else { panic!("{:?}", self.state()) };
        assert!(reason.contains(words), "{reason}");
        let error = self.buffer(liar).expect_err("it gets no new work");
        assert_error(&error, ErrorKind::OutOfService, &reason);
        let error = self.host.backing("liar").expect_err("it is not handed out");
        assert_error(&error, ErrorKind::NoBackingFits, &format!("backing \"liar\" is retired: {reason}"));
    }

    /// Whatever the liar made, it was asked to give back, once.
    fn assert_all_given_back(&self) {
        for noun in ["region", "allocation"] {
            let made = self.log.count("liar", &format!("reserved {noun}"))
                + self.log.count("liar", &format!("allocated {noun}"));
            assert_eq!(self.log.count("liar", &format!("released {noun}")), made, "{:?}", self.log.lines());
        }
    }

    /// The other backings of this host serve, and the books are as they were.
    fn assert_others_work(&self) {
        let used = self.used();
        for name in ["ledgered", "host-mmap"] {
            let backing = self.host.backing(name).expect("is ready");
            let mut buffer = self.buffer(&backing).expect("is admitted");
            buffer.grow_to(3 * GRANULE).expect("grows");
            buffer.as_mut_slice().expect("is memory of the host").fill(7);
            assert_eq!(self.used(), used + 3 * GRANULE);
        }
        assert_eq!(self.used(), used);
    }

    /// Out of service, with nothing left of what it made, while the others work.
    fn assert_cleaned_up(&self, liar: &BackingHandle, words: &str) {
        self.assert_retired(liar, words);
        self.assert_all_given_back();
        assert_eq!(self.used(), 0);
        self.assert_others_work();
    }
}

/// An error of this kind, with these words.
#[track_caller]
fn assert_error(error: &Error, kind: ErrorKind, words: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_liar_that_tells_no_lie_serves_like_any_other() {
    with_liar("none", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(3 * GRANULE).expect("grows");
        buffer.as_mut_slice().expect("is memory of the host").fill(7);
        buffer.shrink_to(GRANULE).expect("shrinks");
        buffer.grow_to(2 * GRANULE).expect("grows");
        let bytes = buffer.as_slice().expect("is memory of the host");
        let (kept, fresh) = bytes.split_at(4096);
        assert!(kept.iter().all(|byte| *byte == 7) && fresh.iter().all(|byte| *byte == 0));
        let allocation = scene.host.allocate(&liar, &AllocationSpec::new(100)).expect("allocates");
        assert_eq!(scene.used(), 3 * GRANULE);
        drop((buffer, allocation));
        assert_eq!((scene.used(), scene.state()), (0, BackingState::Ready));
        scene.assert_all_given_back();
        scene.assert_others_work();
    });
}

#[test]
fn a_backing_that_could_never_be_used_is_rejected_and_destroyed() {
    for (lie, stage, words) in [
        ("panic-in-create", Stage::Create, "the plugin panicked: told to: PanicInCreate"),
        ("panic-in-describe", Stage::Discover, "the plugin panicked: told to: PanicInDescribe; report this"),
        ("panic-in-discovery", Stage::Discover, "the plugin panicked: told to: PanicInDiscovery; report this"),
        ("panic-in-granularity", Stage::Discover, "the plugin panicked: told to: PanicInGranularity; report this"),
        ("granularity-zero", Stage::Discover, "its granularity is 0, which is not a power of two; report this"),
        ("granularity-three", Stage::Discover, "its granularity is 3, which is not a power of two; report this"),
    ] {
        with_liar(lie, |scene| {
            let BackingState::Rejected { stage: at, reason } = scene.state() else { panic!("{:?}", scene.state()) };
            assert_eq!(at, stage, "{reason}");
            assert!(reason.starts_with(words), "{reason}");
            assert_eq!((scene.log.count("liar", "created"), scene.log.count("liar", "destroyed")), (1, 1));
            let error = scene.host.backing("liar").expect_err("it is not handed out");
            assert_error(&error, ErrorKind::NoBackingFits, &format!("backing \"liar\" is rejected: {reason}"));
            assert_eq!(scene.host.snapshot().domains.len(), 1, "no books are opened for what was rejected");
            scene.assert_others_work();
        });
    }
}

#[test]
fn a_region_that_is_not_what_was_asked_for_is_refused_and_given_back() {
    for (lie, words) in [
        ("null-base", "it broke the contract: reserve answered the null address"),
        ("misaligned-base", "asked for an alignment of 4096"),
        ("wrong-region-id", "it broke the contract: reserve answered region "),
        ("wrong-region-size", "reserve answered a region of 69632 bytes, asked for 65536"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let error = scene.buffer(&liar).expect_err("the region is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!(scene.log.count("liar", "reserved"), 1);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_base_inside_a_live_region_is_refused_and_the_live_one_keeps_its_bytes() {
    with_liar("base-of-another", |scene| {
        let liar = scene.liar();
        let mut first = scene.buffer(&liar).expect("the first region is its own");
        first.grow_to(2 * GRANULE).expect("grows");
        first.as_mut_slice().expect("is memory of the host").fill(7);
        let used = scene.used();
        let error = scene.buffer(&liar).expect_err("the region is refused");
        let words = format!("inside the live range {}..", first.base());
        assert_error(&error, ErrorKind::OutOfService, &words);
        assert_eq!(scene.log.count("liar", "released region"), 1, "the refused region is given back");
        scene.assert_retired(&liar, &words);
        assert!(first.as_slice().expect("is memory of the host").iter().all(|byte| *byte == 7));
        assert_eq!(first.grow_to(CAPACITY).expect_err("no new work").kind(), ErrorKind::OutOfService);
        assert_eq!((first.len(), scene.used()), (2 * GRANULE, used));
        first.shrink_to(GRANULE).expect("what it holds is still taken back");
        first.close().expect("and given back");
        scene.assert_cleaned_up(&liar, &words);
    });
}

#[test]
fn an_allocation_that_is_not_what_was_asked_for_is_refused_and_given_back() {
    for (lie, words) in [
        ("wrong-allocation-id", "it broke the contract: allocate answered allocation "),
        ("small-allocation", "allocate answered 4095 bytes, asked for 4096"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let error = scene.host.allocate(&liar, &AllocationSpec::new(GRANULE)).expect_err("is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_commit_that_says_more_or_less_than_was_asked_is_undone() {
    for (lie, words) in [
        ("owned-more", "commit answered 12288 bytes newly owned, asked for 8192"),
        ("owned-less", "commit answered 4096 bytes newly owned, asked for 8192"),
        ("mapped-more", "commit answered 12288 bytes newly mapped, asked for 8192"),
        ("mapped-less", "commit answered 4096 bytes newly mapped, asked for 8192"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let mut buffer = scene.buffer(&liar).expect("is admitted");
            let error = buffer.grow_to(2 * GRANULE).expect_err("the answer is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!((buffer.len(), buffer.committed(), scene.used()), (0, 0, 0));
            assert_eq!(scene.log.count("liar", "decommitted 8192 bytes"), 1, "what it took it gave back");
            drop(buffer);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_cost_of_more_than_was_asked_takes_the_backing_out_of_service() {
    with_liar("cost-more", |scene| {
        let liar = scene.liar();
        let buffer = scene.host.buffer_set(&liar, 1, &BufferSpec::new(CAPACITY)).expect("is admitted");
        let error = buffer.growth_cost(2 * GRANULE).expect_err("the answer is refused");
        let words = "cost answered 8192 bytes mapped, 12288 owned, asked for 8192";
        assert_error(&error, ErrorKind::OutOfService, words);
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}

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
fn an_answer_that_changes_after_creation_takes_the_backing_out_of_service() {
    for (lie, words) in [
        ("granularity-changes", "its capabilities or granularity changed after creation"),
        ("capability-goes", "its capabilities or granularity changed after creation"),
        ("description-changes", "its description changed after creation"),
        ("accounting-changes", "its accounting changed after creation"),
        ("describe-panics-later", "the plugin panicked: told to: DescribePanicsLater"),
        ("discovery-panics-later", "the plugin panicked: told to: DiscoveryPanicsLater"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let first = scene.buffer(&liar).expect("the answers change with the first region");
            let error = scene.buffer(&liar).expect_err("the second is not admitted");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!(scene.log.count("liar", "reserved"), 1, "refused before anything is reserved");
            assert_eq!(scene.host.snapshot().domains.len(), 1, "no books are opened for what it says now");
            drop(first);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_capability_that_goes_under_a_live_buffer_refuses_the_growth() {
    // Without a panic nothing was tried, so nothing is charged; after one nobody can tell, until the release.
    for (lie, words, used) in [
        ("capability-goes", "it no longer offers virtual-backing, as it did at first", 0),
        ("discovery-panics-later", "commit: the plugin panicked: told to: DiscoveryPanicsLater", GRANULE),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let mut buffer = scene.buffer(&liar).expect("it goes with the first region");
            let error = buffer.grow_to(GRANULE).expect_err("can't grow");
            assert_eq!(error.kind(), ErrorKind::OutOfService, "{error}");
            assert_eq!((buffer.len(), buffer.committed(), scene.used()), (0, 0, used));
            buffer.close().expect("release is no capability's");
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn nonsense_about_what_is_left_after_a_failed_decommit_counts_as_everything_left() {
    with_liar("nonsense-left", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(4 * GRANULE).expect("grows");
        let error = buffer.shrink_to(GRANULE).expect_err("the decommit fails");
        assert_error(&error, ErrorKind::Backing, "told to fail; 16384 of 16384 bytes stay charged");
        // Charged is all that may be there, used only what was to stay.
        assert_eq!((buffer.len(), buffer.committed(), scene.used()), (GRANULE, GRANULE, 4 * GRANULE));
        buffer.close().expect("the release is right");
        let words = "committed_bytes answered 12345 after a failed decommit from 16384 to 4096 in granules of 4096";
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn a_decommit_that_says_more_than_was_asked_refunds_what_is_really_gone() {
    with_liar("decommit-owned-more", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(4 * GRANULE).expect("grows");
        let error = buffer.shrink_to(GRANULE).expect_err("the answer is refused");
        let words = "decommit answered 16384 bytes no longer owned, asked for 12288";
        assert_error(&error, ErrorKind::OutOfService, words);
        assert_eq!((buffer.len(), buffer.committed(), scene.used()), (GRANULE, GRANULE, GRANULE));
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}

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

#[test]
fn lines_of_every_level_and_content_reach_the_log_under_the_backings_name() {
    with_liar("log-noise", |scene| {
        let lines: Vec<_> = scene.log.lines().into_iter().filter(|line| line.backing == "liar").collect();
        for (level, name) in [
            (Level::ERROR, "Error"),
            (Level::WARN, "Warning"),
            (Level::INFO, "Information"),
            (Level::DEBUG, "Debugging"),
            (Level::TRACE, "Tracing"),
        ] {
            let message = format!("a line of level {name}");
            assert!(lines.iter().any(|line| line.level == level && line.message == message), "{message}");
        }
        let bytes = lines.iter().find(|line| line.message.starts_with("no text")).expect("is logged");
        assert_eq!((bytes.level, bytes.message.as_str()), (Level::ERROR, "no text: \u{fffd}\u{fffd}"));
        assert!(lines.iter().any(|line| line.message.is_empty()), "an empty line is a line");
        assert_eq!(scene.state(), BackingState::Ready);
        scene.assert_others_work();
    });
}

#[test]
fn a_backing_that_shares_but_does_not_reserve_serves_what_it_can() {
    for (door, library) in plugins::doors("leasehold_rogue") {
        println!("over the door {door}");
        let host = Registry::new().backing("sharing", &library, "backing = \"shared-only\"").host();
        let sharing = host.backing("sharing").expect("is ready");
        assert_eq!(sharing.capabilities().names(), ["allocate", "shared-mapping"]);
        let error = host.buffer(&sharing, &BufferSpec::new(CAPACITY)).expect_err("it can't reserve");
        assert_error(&error, ErrorKind::Unsupported, "offers no virtual-backing; choose a backing that does");
        let allocation = host.allocate(&sharing, &AllocationSpec::new(100)).expect("allocates");
        assert_eq!(allocation.as_slice().expect("is memory of the host"), [0; 100]);
        let state = host.backings().into_iter().next().expect("is reported").state;
        assert_eq!(state, BackingState::Ready, "what it does not offer is no fault");
    }
}
