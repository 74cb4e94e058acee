//! Who pays for a byte is decided by identity: a backing that charges this host's books is charged once, one that keeps
//! other books is admitted nowhere.

use leasehold::{
    Accounting, AllocationSpec, AuthorityId, BackingReport, BufferSpec, Domain, Error, ErrorKind, Governor, Host,
};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Description, DeviceKey, ErrorKind as BackingErrorKind,
    HostServices, MemoryRole, ReleaseOutcome, ReleaseTarget,
};
use leasehold_tests::log::Log;
use leasehold_tests::plugins::{self, Registry};
use std::collections::BTreeSet;
use std::sync::mpsc;

const CAPACITY: u64 = 64 << 10;
const GRANULE: u64 = 4096;

/// A host with one backing of rogue, over each door in turn.
fn over_both_doors(backing: &str, limit: u64, test: impl Fn(&Host, &Log)) {
    for (door, library) in plugins::doors("leasehold_rogue") {
        println!("over the door {door}");
        let registry = Registry::new().backing(backing, &library, &format!("backing = {backing:?}"));
        Log::during(|log| {
            let host = registry.builder().limit(Domain::Host, limit).load().expect("the registry file is right");
            test(&host, log);
        });
    }
}

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).expect("has books").used_bytes
}

fn authority(host: &Host) -> AuthorityId {
    host.governor().authority(Domain::Host).expect("has books")
}

fn report(host: &Host, name: &str) -> BackingReport {
    host.backings().into_iter().find(|report| report.name == name).expect("is reported")
}

/// The books that a backing of this host says it charges.
fn claimed(host: &Host, name: &str) -> AuthorityId {
    match report(host, name).accounting {
        Some(Accounting::Backing { authority }) => authority,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_backing_that_charges_its_host_is_charged_once_and_returns_everything() {
    over_both_doors("ledgered", 1 << 20, |host, _| {
        assert_eq!(claimed(host, "ledgered"), authority(host));
        let ledgered = host.backing("ledgered").expect("is ready");
        let mut planes = host.buffer_set(&ledgered, 3, &BufferSpec::new(CAPACITY)).expect("is admitted");
        assert_eq!(used(host), 0, "a reservation costs no budget");
        planes.grow_to(4 * GRANULE).expect("grows");
        assert_eq!(used(host), 12 * GRANULE);
        planes.shrink_to(GRANULE).expect("shrinks");
        assert_eq!(used(host), 3 * GRANULE);
        let allocation = host.allocate(&ledgered, &AllocationSpec::new(100)).expect("allocates");
        assert_eq!(used(host), 4 * GRANULE);
        drop(allocation);
        assert_eq!(used(host), 3 * GRANULE);
        planes.close().expect("is given back");
        assert_eq!(used(host), 0);
    });
}

#[test]
fn a_charge_that_is_refused_reaches_the_caller_and_changes_nothing() {
    over_both_doors("ledgered", 8 * GRANULE, |host, log| {
        let ledgered = host.backing("ledgered").expect("is ready");
        let mut planes = host.buffer_set(&ledgered, 2, &BufferSpec::new(CAPACITY)).expect("is admitted");
        planes.grow_to(3 * GRANULE).expect("grows");
        planes.plane_mut(1).expect("is memory of the host").fill(7);
        let error = planes.grow_to(5 * GRANULE).expect_err("passes the budget");
        assert_exhausted(&error, 4 * GRANULE, 2 * GRANULE);
        assert_eq!((planes.len(), planes.committed(), used(host)), (3 * GRANULE, 3 * GRANULE, 6 * GRANULE));
        assert!(planes.plane(1).expect("is memory of the host").iter().all(|byte| *byte == 7));
        assert_eq!(log.count("ledgered", "committed"), 1, "refused before anything is committed");
        let error = host.allocate(&ledgered, &AllocationSpec::new(3 * GRANULE)).expect_err("passes the budget");
        assert_exhausted(&error, 3 * GRANULE, 2 * GRANULE);
        assert_eq!(used(host), 6 * GRANULE);
        planes.grow_to(4 * GRANULE).expect("what is left is still to be had");
        assert_eq!(used(host), 8 * GRANULE);
    });
}

/// A refusal of the budget, with its figures and what to do.
#[track_caller]
fn assert_exhausted(error: &Error, requested: u64, available: u64) {
    assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
    assert!(error.is_exhausted());
    let inner = error.backing_error().expect("the backing passed it on");
    assert_eq!((inner.requested_bytes(), inner.available_bytes()), (requested, available));
    let words = format!("{available} of 32768 left; lower the request or raise budget.\"host\" in registry.toml");
    assert!(error.to_string().contains(&words), "{error}");
}

#[test]
fn a_backing_that_keeps_other_books_is_refused_before_anything_is_reserved() {
    over_both_doors("rival", 1 << 20, |host, log| {
        let (ours, theirs) = (authority(host), claimed(host, "rival"));
        assert_ne!(ours, theirs);
        let finding = &report(host, "rival").stages.last().expect("has stages").finding.clone();
        assert!(finding.contains(&theirs.to_string()) && finding.contains("no buffer will be admitted"), "{finding}");
        let rival = host.backing("rival").expect("is ready, and can be told about");
        let buffer = host.buffer(&rival, &BufferSpec::new(CAPACITY)).map(|_| ());
        let set = host.buffer_set(&rival, 2, &BufferSpec::new(CAPACITY)).map(|_| ());
        let allocation = host.allocate(&rival, &AllocationSpec::new(1)).map(|_| ());
        for refused in [buffer, set, allocation] {
            let error = refused.expect_err("is not admitted");
            assert_eq!(error.kind(), ErrorKind::AuthorityMismatch);
            assert_eq!(
                error.to_string(),
                format!(
                    "backing \"rival\": not admitted: it keeps the books {theirs} of host, this governor keeps {ours}; \
                     use the host that created the backing, or let the backing charge through its host's services"
                )
            );
        }
        assert_eq!((log.count("rival", "reserved"), log.count("rival", "allocated"), used(host)), (0, 0, 0));
    });
}

#[test]
fn authorities_that_two_libraries_and_their_host_mint_are_never_equal() {
    let registry = Registry::new();
    let library = registry.copy(&plugins::library("leasehold_rogue"), "librogue.so");
    let copy = registry.copy(&plugins::library("leasehold_rogue"), "libcopy.so");
    let registry = registry
        .backing("linked", "builtin", "backing = \"rival\"")
        .backing("loaded", &library, "backing = \"rival\"")
        .backing("again", &library, "backing = \"rival\"")
        .backing("copied", &copy, "backing = \"rival\"");
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let host = registry.host();
        for name in ["linked", "loaded", "again", "copied"] {
            assert!(seen.insert(claimed(&host, name)), "{name}");
        }
        assert!(seen.insert(authority(&host)));
        let governor = Governor::with_limits([(Domain::Host, 1), (Domain::Device(0), 1)]).expect("is made");
        for domain in [Domain::Host, Domain::Device(0)] {
            assert!(seen.insert(governor.authority(domain).expect("has books")), "{domain}");
        }
    }
    assert_eq!(seen.len(), 21);
}

#[test]
fn two_hosts_in_one_process_refuse_each_others_backings() {
    for (door, library) in plugins::doors("leasehold_rogue") {
        let registry = Registry::new().backing("ledgered", &library, "backing = \"ledgered\"").backing(
            "honest",
            &library,
            "backing = \"liar\"",
        );
        let (one, other) = (registry.host(), registry.host());
        for name in ["ledgered", "honest"] {
            println!("{name} over the door {door}");
            let foreign = other.backing(name).expect("is ready");
            let error = one.buffer(&foreign, &BufferSpec::new(CAPACITY)).expect_err("is another host's");
            assert_eq!(error.kind(), ErrorKind::AuthorityMismatch);
            let (ours, theirs) = (authority(&one).to_string(), authority(&other).to_string());
            assert!(error.to_string().contains(&ours) && error.to_string().contains(&theirs), "{error}");
            let mut buffer = other.buffer(&foreign, &BufferSpec::new(CAPACITY)).expect("is its own host's");
            buffer.grow_to(GRANULE).expect("grows");
            assert_eq!((used(&one), used(&other)), (0, GRANULE));
        }
    }
}

#[test]
fn two_hosts_over_one_library_keep_their_books_apart() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    let registry = Registry::new().backing("ledgered", &library, "backing = \"ledgered\"");
    let (one, other) = (registry.host(), registry.host());
    let grow = |host: &Host, granules: u64| {
        let mut buffer = host.buffer(&host.backing("ledgered").unwrap(), &BufferSpec::new(CAPACITY)).unwrap();
        buffer.grow_to(granules * GRANULE).expect("grows");
        buffer
    };
    let (of_one, of_other) = (grow(&one, 1), grow(&other, 5));
    assert_eq!((used(&one), used(&other)), (GRANULE, 5 * GRANULE));
    drop(of_one);
    assert_eq!((used(&one), used(&other)), (0, 5 * GRANULE));
    drop((other, of_other));
    assert_eq!(grow(&one, 2).len(), 2 * GRANULE, "the end of one host takes nothing from another");
}

/// A backing that only holds its services.
struct Idle;

impl Backing for Idle {
    fn describe(&self) -> Description {
        Description::new(DeviceKey::HOST, "idle")
    }

    fn allocate(&self, _request: &AllocateRequest) -> Result<Allocation, BackingError> {
        Err(BackingError::unsupported("allocate"))
    }

    fn release(&self, _target: ReleaseTarget) -> ReleaseOutcome {
        ReleaseOutcome::Failed(BackingError::unsupported("release"))
    }
}

#[test]
fn the_services_of_a_backing_that_has_ended_answer_failures_and_change_nothing() {
    let (sender, receiver) = mpsc::channel::<HostServices>();
    let create = move |services| {
        sender.send(services).expect("the test waits");
        Ok(Box::new(Idle) as Box<dyn Backing>)
    };
    let host = Host::builder().limit(Domain::Host, 1 << 20).with_backing("idle", create).load().expect("is made");
    let services = receiver.recv().expect("was created");
    services.charge(Domain::Host, 3 * GRANULE, MemoryRole::Weights).expect("fits");
    services.refund(Domain::Host, GRANULE).expect("was charged");
    assert_eq!(used(&host), 2 * GRANULE);
    assert_eq!(services.authority(Domain::Host), Ok(authority(&host)));

    let governor = host.governor();
    drop(host);
    // A thread of a plugin may still hold them.
    let answers = std::thread::spawn(move || {
        [
            services.charge(Domain::Host, GRANULE, MemoryRole::Weights),
            services.charge(Domain::Device(3), GRANULE, MemoryRole::Weights),
            services.refund(Domain::Host, GRANULE),
            services.refund(Domain::Device(3), GRANULE),
            services.authority(Domain::Device(3)).map(|_| ()),
        ]
    });
    for answer in answers.join().expect("no service panics") {
        assert_eq!(answer.expect_err("the backing has ended").kind(), BackingErrorKind::WrongState);
    }
    let snapshot = governor.snapshot();
    assert_eq!((snapshot.domains.len(), snapshot.domains[0].used_bytes), (1, 0));
}
