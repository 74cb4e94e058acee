//! What the contract asks of every backing, asked of each: called directly, as no host would, linked in and through the
//! interface of its library.

use leasehold::{Domain, Host, HostBuilder};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Description, ErrorKind, Options, Region,
    RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use leasehold_tests::conformance::{self, CASES, Capability, HOST_MMAP_LACKS, MOST_BYTES, Report, Verdict};
use leasehold_tests::fault::linked_in;
use leasehold_tests::plugins::{Registry, doors};

const NO_SHARING: (Capability, &str) = (Capability::SharedMapping, "it is a fixture for other things");
const NO_REGIONS: (Capability, &str) = (Capability::VirtualBacking, "it is a fixture that can't reserve");

/// Puts the backing of a host through every case; in the end nothing may be charged.
fn report(builder: HostBuilder, lacks: &'static [(Capability, &'static str)]) -> Report {
    let builder = builder.limit(Domain::Host, MOST_BYTES);
    let (host, report) = conformance::of_host(builder, lacks).unwrap_or_else(|why| panic!("{why}"));
    let used = host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    assert!(used == 0 || !report.is_conforming(), "{used} bytes are left");
    report
}

/// The reports of a backing of that crate through both doors. `lines` are its options.
fn conforming(name: &str, crate_name: &str, lines: &str, lacks: &'static [(Capability, &'static str)]) -> [Report; 2] {
    doors(crate_name).map(|(door, library)| {
        let lines = format!("required = true\n[backing.options]\n{lines}");
        let report = report(Registry::new().backing(name, &library, &lines).builder(), lacks);
        assert!(report.is_conforming(), "{name}, {door:?}, {lines}: {report}");
        report
    })
}

#[test]
fn host_mmap_conforms() {
    for granule in ["4 KiB", "64 KiB", "2 MiB"] {
        let lines = format!("granule = {granule:?}");
        for report in conforming("host-mmap", "leasehold_host_mmap", &lines, &[HOST_MMAP_LACKS]) {
            let unsupported = CASES.iter().filter(|case| case.needs.contains(&Capability::SharedMapping)).count();
            assert_eq!(report.passed(), CASES.len() - unsupported);
        }
    }
}

#[test]
fn host_pool_conforms() {
    for granule in ["4 KiB", "64 KiB", "2 MiB"] {
        for (park, scrub) in [("0", "holders"), ("1 MiB", "holders"), ("128 MiB", "holders"), ("128 MiB", "always")] {
            let lines = format!("granule = {granule:?}\npark = {park:?}\nscrub = {scrub:?}");
            for report in conforming("host-pool", "leasehold_host_pool", &lines, &[]) {
                assert_eq!(report.passed(), CASES.len());
            }
        }
    }
}

#[test]
fn the_fixtures_conform_in_what_they_offer() {
    conforming("ledgered", "leasehold_rogue", "", &[NO_SHARING]);
    for report in conforming("shared-only", "leasehold_rogue", "", &[NO_REGIONS]) {
        assert!(report.passed() > 10 && report.passed() < CASES.len());
    }
}

/// A host with host-mmap or host-pool, changed.
fn changed(name: &'static str, change: impl FnOnce(Box<dyn Backing>) -> Box<dyn Backing> + 'static) -> HostBuilder {
    Host::builder().with_backing("subject", move |services| Ok(change(linked_in(name, &Options::new(), services)?)))
}

#[test]
fn an_expectation_that_no_longer_holds_is_stale_either_way() {
    let stale = |report: &Report| report.stale.join("; ");
    let offered = report(changed("host-pool", |backing| backing), &[NO_SHARING]);
    assert_eq!(stale(&offered), format!("shared-mapping is offered, though declared absent: {}", NO_SHARING.1));
    let absent = report(changed("host-mmap", |backing| backing), &[]);
    assert_eq!(stale(&absent), "shared-mapping is not offered, and no reason is declared");
    assert!(!offered.is_conforming() && !absent.is_conforming());
    assert_eq!((offered.failures().count(), absent.failures().count()), (0, 0), "{offered} {absent}");
}

#[test]
fn what_a_backing_lacks_is_told_with_the_reason_for_each_case_that_needs_it() {
    let report = report(changed("host-mmap", |backing| backing), &[HOST_MMAP_LACKS]);
    let lines = report.to_string();
    let expected = format!("unsupported: a_prefix_is_sealed_once needs shared-mapping: {}", HOST_MMAP_LACKS.1);
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
        let report = report(changed("host-mmap", change), &[HOST_MMAP_LACKS]);
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
