//! A backing that breaks the contract is caught, put out of service or never let in, and hurts nobody else.
//!
//! Each test runs over both doors: the liar linked into this program, and the one loaded from its library. It does one
//! thing wrong and all others right. It logs what it makes and what it ends, so a test can count that all that was made
//! was given back.

mod admission;
mod answers;
mod books;
mod changes;
mod logging;
mod panics;

use leasehold::{BackingHandle, BackingState, Buffer, BufferSpec, Domain, Error, ErrorKind, Host};
use leasehold_tests::log::Log;
use leasehold_tests::plugins::{self, Registry};

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

    /// Out of service, for a reason with these words; a handle that somebody still has gets no new work done.
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
