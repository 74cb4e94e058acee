//! Trouble from outside: addresses that belong to another host, a log that can't be written, attempts that fail.
#![expect(unsafe_code, reason = "claims that the CPU can touch a backing's memory, which hands out none")]

use leasehold::{AllocationSpec, BufferSpec, Domain, Host};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Faults, Strikes};
use leasehold_tests::plugins;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const PAGE: u64 = 4096;

#[test]
fn two_hosts_in_one_process_never_get_overlapping_regions_admitted() {
    let faults = Faults::new();
    let first = faults.host(1 << 20).unwrap();
    let mut buffer = first.buffer(&first.backing("faulty").unwrap(), &BufferSpec::new(PAGE)).unwrap();
    buffer.grow_to(PAGE).unwrap();
    let base = buffer.base();
    // A backing of another domain, on another host, that the CPU can touch as well.
    let second = Host::builder()
        .limit(Domain::Device(0), 1 << 20)
        .with_accessible_backing("thief", Thief::ACCESS, move |_| Ok(Thief { base }))
        .load()
        .unwrap();
    let error = second.buffer(&second.backing("thief").unwrap(), &BufferSpec::new(PAGE)).unwrap_err();
    assert!(error.to_string().contains("inside the live range"), "{error}");
}

/// Answers an address that is somebody else's.
struct Thief {
    base: api::Address,
}

impl Thief {
    // SAFETY: it hands out no byte, since neither a commit nor an allocation of it succeeds.
    const ACCESS: api::HostAccess<Self> = unsafe { api::HostAccess::direct() };
}

impl api::Backing for Thief {
    fn describe(&self) -> api::Description {
        api::Description::new(api::DeviceKey::device(0), "a thief")
    }

    fn allocate(&self, _request: &api::AllocateRequest) -> Result<api::Allocation, api::BackingError> {
        Err(api::BackingError::unsupported("allocate"))
    }

    fn release(&self, _target: api::ReleaseTarget) -> api::ReleaseOutcome {
        api::ReleaseOutcome::Complete
    }

    fn as_virtual_backing(&self) -> Option<&dyn api::VirtualBacking> {
        Some(self)
    }
}

impl api::VirtualBacking for Thief {
    fn granularity(&self) -> u64 {
        PAGE
    }

    fn reserve(&self, request: &api::ReserveRequest) -> Result<api::Region, api::BackingError> {
        Ok(api::Region { id: request.id, base: self.base, bytes: request.bytes })
    }

    fn commit(&self, _ranges: &[api::CommitRange]) -> Result<api::Change, api::BackingError> {
        Err(api::BackingError::unsupported("commit"))
    }

    fn decommit(&self, _ranges: &[api::CommitRange]) -> Result<api::Change, api::BackingError> {
        Err(api::BackingError::unsupported("decommit"))
    }

    fn cost(&self, _ranges: &[api::CommitRange]) -> Result<api::Change, api::BackingError> {
        Err(api::BackingError::unsupported("cost"))
    }

    fn committed_bytes(&self, _region: api::RegionId) -> Result<u64, api::BackingError> {
        Ok(0)
    }
}

/// A log whose writer is gone. It behaves as a subscriber that prints its own trouble to a closed standard error.
struct BrokenLog;

impl Subscriber for BrokenLog {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target().starts_with("leasehold") {
            panic!("the log can't be written");
        }
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[test]
fn what_could_not_be_given_back_stays_charged_whatever_becomes_of_the_log() {
    let faults = Faults::new();
    let host = faults.host(1 << 20).unwrap();
    let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    let mut buffer = host.buffer(&host.backing("faulty").unwrap(), &BufferSpec::new(16 * PAGE)).unwrap();
    buffer.grow_to(10 * PAGE).unwrap();
    faults.plan(Call::Release, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
    tracing::subscriber::with_default(BrokenLog, || drop(buffer));
    assert_eq!(used(), 10 * PAGE);
    assert_eq!(host.reap().released, 1);
    assert_eq!(used(), 0);
}

#[test]
fn an_attempt_that_fails_is_no_peak() {
    let faults = Faults::new();
    let host = faults.host(1 << 30).unwrap();
    let peak = || host.snapshot().domain(Domain::Host).unwrap().peak_bytes;
    let backing = host.backing("faulty").unwrap();
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).unwrap();
    buffer.grow_to(2 * PAGE).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    buffer.grow_to(100 * PAGE).unwrap_err();
    faults.plan(Call::Allocate, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    host.allocate(&backing, &AllocationSpec::new(100 * PAGE)).unwrap_err();
    assert_eq!(peak(), 2 * PAGE);
    buffer.grow_to(3 * PAGE).unwrap();
    buffer.shrink_to(PAGE).unwrap();
    assert_eq!(peak(), 3 * PAGE);
    host.governor().restart_peak(Domain::Host).unwrap();
    assert_eq!(peak(), PAGE);
}

/// Shrinks as it is dropped, so that it calls the backing from whatever is left of a thread.
struct ShrinksAtTheEnd(leasehold::Buffer);

impl Drop for ShrinksAtTheEnd {
    fn drop(&mut self) {
        self.0.shrink_to(PAGE).unwrap();
    }
}

thread_local! {
    static LAST: std::cell::RefCell<Option<ShrinksAtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_buffer_that_ends_with_its_thread_is_given_back_and_its_backing_goes_on() {
    let registry =
        plugins::Registry::new().backing("host-mmap", &plugins::text(&plugins::library("leasehold_host_mmap")), "");
    let host = registry.builder().limit(Domain::Host, 1 << 20).load().unwrap();
    let backing = host.backing("host-mmap").unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Made before the first call of this thread, and so destroyed after all that the calls keep for it.
            LAST.with(|last| assert!(last.borrow().is_none()));
            let mut buffer = host.buffer(&backing, &BufferSpec::new(16 * PAGE)).unwrap();
            buffer.grow_to(10 * PAGE).unwrap();
            LAST.set(Some(ShrinksAtTheEnd(buffer)));
        });
        // A scope ends with its closures; only a join waits for the thread itself.
        thread.join().unwrap();
    });
    assert_eq!(host.backings()[0].state, leasehold::BackingState::Ready);
    assert_eq!(host.snapshot().domain(Domain::Host).unwrap().used_bytes, 0);
}
