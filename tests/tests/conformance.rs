//! What the contract asks of every backing, asked of each: called directly, as no host would.
//!
//! A library's backings can't be called directly from here: what they share with their built-in twins is asked there, and
//! what crosses the boundary in the suites over every way in (`promises`, `buffers`, `sharing`). Here they must offer what
//! their twins offer.

use leasehold::{Domain, Host};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Description, ErrorKind, OptionValue,
    Options, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use leasehold_tests::conformance::{self, CASES, Capability, MOST_BYTES, Report, Verdict};
use leasehold_tests::fault::linked_in;
use leasehold_tests::plugins::{Registry, library, text};
use std::sync::mpsc;

const PRIVATE: (Capability, &str) =
    (Capability::SharedMapping, "its memory is anonymous and private, so that no second address can show it");
const NO_SHARING: (Capability, &str) = (Capability::SharedMapping, "it is a fixture for other things");
const NO_REGIONS: (Capability, &str) = (Capability::VirtualBacking, "it is a fixture that can't reserve");

/// Puts a backing that is linked in through every case; in the end nothing may be charged.
fn report(
    name: &'static str,
    options: &[(&str, &str)],
    lacks: &'static [(Capability, &'static str)],
    change: impl FnOnce(Box<dyn Backing>) -> Box<dyn Backing> + 'static,
) -> Report {
    let text = |value: &str| OptionValue::Text(value.to_owned());
    let options = options.iter().fold(Options::new(), |options, (key, value)| options.with(*key, text(value)));
    let (sender, receiver) = mpsc::channel();
    let create = move |services| -> Result<Box<dyn Backing>, BackingError> {
        let backing = change(linked_in(name, &options, services)?);
        sender.send(conformance::run(&*backing, lacks)).unwrap();
        Ok(backing)
    };
    let host = Host::builder().limit(Domain::Host, MOST_BYTES).with_backing("subject", create).load().unwrap();
    let report = receiver.recv().unwrap_or_else(|_| panic!("{:?}", host.backings()));
    let used = host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    assert!(used == 0 || !report.is_conforming(), "{name}: {used} bytes are left");
    report
}

fn ensure_conforming(
    name: &'static str,
    options: &[(&str, &str)],
    lacks: &'static [(Capability, &'static str)],
) -> Report {
    let report = report(name, options, lacks, |backing| backing);
    println!("{name} {options:?}: {report}");
    assert!(report.is_conforming(), "{name} {options:?}: {report}");
    report
}

#[test]
fn host_mmap_conforms() {
    for granule in ["4 KiB", "64 KiB", "2 MiB"] {
        let report = ensure_conforming("host-mmap", &[("granule", granule)], &[PRIVATE]);
        let unsupported = CASES.iter().filter(|case| case.needs.contains(&Capability::SharedMapping)).count();
        assert_eq!(report.passed(), CASES.len() - unsupported);
    }
}

#[test]
fn host_pool_conforms() {
    for granule in ["4 KiB", "64 KiB", "2 MiB"] {
        for (park, scrub) in [("0", "holders"), ("1 MiB", "holders"), ("128 MiB", "holders"), ("128 MiB", "always")] {
            let report = ensure_conforming("host-pool", &[("granule", granule), ("park", park), ("scrub", scrub)], &[]);
            assert_eq!(report.passed(), CASES.len());
        }
    }
}

#[test]
fn the_fixtures_conform_in_what_they_offer() {
    ensure_conforming("ledgered", &[], &[NO_SHARING]);
    let report = ensure_conforming("shared-only", &[], &[NO_REGIONS]);
    assert!(report.passed() > 10 && report.passed() < CASES.len());
}

#[test]
fn the_libraries_offer_what_their_twins_offer() {
    for (name, crate_name, shares) in
        [("host-mmap", "leasehold_host_mmap", false), ("host-pool", "leasehold_host_pool", true)]
    {
        let registry = Registry::new().backing(name, &text(&library(crate_name)), "");
        let handle = registry.host().backing(name).unwrap();
        let offers = handle.capabilities();
        assert!(offers.granularity().is_some() && offers.has_shared_mapping() == shares, "{name}");
    }
}

#[test]
fn an_expectation_that_no_longer_holds_is_stale_either_way() {
    let stale = |report: &Report| report.stale.join("; ");
    let offered = report("host-pool", &[], &[NO_SHARING], |backing| backing);
    assert_eq!(stale(&offered), format!("shared-mapping is offered, though declared absent: {}", NO_SHARING.1));
    let absent = report("host-mmap", &[], &[], |backing| backing);
    assert_eq!(stale(&absent), "shared-mapping is not offered, and no reason is declared");
    assert!(!offered.is_conforming() && !absent.is_conforming());
    assert_eq!((offered.failures().count(), absent.failures().count()), (0, 0), "{offered} {absent}");
}

#[test]
fn what_a_backing_lacks_is_told_with_the_reason_for_each_case_that_needs_it() {
    let report = report("host-mmap", &[], &[PRIVATE], |backing| backing);
    let lines = report.to_string();
    let expected = format!("unsupported: a_prefix_is_sealed_once needs shared-mapping: {}", PRIVATE.1);
    assert!(lines.contains(&expected), "{lines}");
    let told = report.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Unsupported { .. })).count();
    assert_eq!(lines.matches("unsupported: ").count(), told);
}

/// host-mmap that does one thing wrong.
struct Wrong {
    inner: Box<dyn Backing>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    CommitsMoreThanItSays,
    CommitsHalfOfACall,
    ForgetsAfterRelease,
    Panics,
}

impl Wrong {
    fn growing(&self) -> &dyn VirtualBacking {
        self.inner.as_virtual_backing().unwrap()
    }
}

impl Backing for Wrong {
    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.inner.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match self.inner.release(target) {
            ReleaseOutcome::Failed(error) if self.how == How::ForgetsAfterRelease => {
                assert_eq!(error.kind(), ErrorKind::UnknownId);
                ReleaseOutcome::Complete
            }
            outcome => outcome,
        }
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }
}

impl VirtualBacking for Wrong {
    fn granularity(&self) -> u64 {
        self.growing().granularity()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.growing().reserve(request)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        match self.how {
            How::CommitsMoreThanItSays => {
                let Change { mapped_bytes, owned_bytes } = self.growing().commit(ranges)?;
                Ok(Change { mapped_bytes, owned_bytes: owned_bytes / 2 })
            }
            How::CommitsHalfOfACall => {
                let mut sum = Change::default();
                for range in ranges {
                    let change = self.growing().commit(&[*range])?;
                    sum.mapped_bytes += change.mapped_bytes;
                    sum.owned_bytes += change.owned_bytes;
                }
                Ok(sum)
            }
            How::ForgetsAfterRelease => self.growing().commit(ranges),
            How::Panics => panic!("as planned"),
        }
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.growing().decommit(ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.growing().cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.growing().committed_bytes(region)
    }
}

#[test]
fn a_backing_that_does_one_thing_wrong_fails_the_cases_that_ask_for_it() {
    let wrongs = [
        (How::CommitsMoreThanItSays, "changes_are_exact", "commit answered"),
        (How::CommitsHalfOfACall, "a_commit_is_all_or_nothing_at_each_index", "bytes committed, wanted"),
        (How::ForgetsAfterRelease, "a_region_is_dead_after_its_release", "wanted a failure"),
        (How::Panics, "a_granule_is_committed_once", "it panicked: as planned"),
    ];
    for (how, case, words) in wrongs {
        let change = move |inner| -> Box<dyn Backing> { Box::new(Wrong { inner, how }) };
        let report = report("host-mmap", &[], &[PRIVATE], change);
        let found = report.failures().find(|(failed, _)| *failed == case);
        assert!(found.is_some_and(|(_, why)| why.contains(words)), "{how:?}: {report}");
        assert!(report.passed() > 5, "{how:?}: {report}");
    }
}

#[test]
fn names_of_cases_are_unique() {
    let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CASES.len());
}
