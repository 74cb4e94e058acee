//! The words of every refusal: what failed, why (seen, wanted), what to do.

use crate::{MIB, PAGE, faulty, governor};
use leasehold::{AllocationSpec, BufferSpec, Domain, MemoryRole, Requirements, Tier};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Strikes};

fn refusal<T>(outcome: Result<T, leasehold::Error>) -> String {
    outcome.err().expect("is refused").to_string()
}

#[test]
fn of_a_budget_that_is_used_up() {
    let (_, host, backing) = faulty(8 * PAGE);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(6 * PAGE).unwrap();
    assert_eq!(
        refusal(buffer.grow_to(9 * PAGE)),
        "backing \"faulty\": not grown: asks 12288 bytes on host for kv-cache, 8192 of 32768 left; lower the request \
         or raise budget.\"host\" in registry.toml"
    );
    assert_eq!(
        refusal(host.allocate(&backing, &AllocationSpec::new(3 * PAGE))),
        "backing \"faulty\": not allocated: asks 12288 bytes on host for workspace, 8192 of 32768 left; lower the \
         request or raise budget.\"host\" in registry.toml"
    );
    assert_eq!(
        refusal(host.governor().lease(Domain::Host, 3 * PAGE, MemoryRole::Weights)),
        "lease refused: asks 12288 bytes on host for weights, 8192 of 32768 left; lower the request or raise \
         budget.\"host\" in registry.toml"
    );
}

/// A device whose size its backing doesn't report, and which has nothing.
struct Unsized;

impl api::Backing for Unsized {
    fn describe(&self) -> api::Description {
        api::Description::new(api::DeviceKey::device(0), "of no size")
    }

    fn allocate(&self, _request: &api::AllocateRequest) -> Result<api::Allocation, api::BackingError> {
        Err(api::BackingError::unsupported("allocate"))
    }

    fn release(&self, _target: api::ReleaseTarget) -> api::ReleaseOutcome {
        api::ReleaseOutcome::Complete
    }
}

#[test]
fn of_a_device_that_does_not_report_its_size() {
    let host = leasehold::Host::builder().with_backing("unsized", |_| Ok(Box::new(Unsized))).load().unwrap();
    let backing = host.backing("unsized").unwrap();
    assert_eq!(
        refusal(host.allocate(&backing, &AllocationSpec::new(1))),
        "backing \"unsized\": not allocated: asks 1 bytes on device:0 for workspace, 0 of 0 left: no backing reports \
         the size of device:0; set budget.\"device:0\" in bytes in registry.toml"
    );
    host.governor().set_limit(Domain::Device(0), 1).unwrap();
    assert_eq!(
        refusal(host.governor().lease(Domain::Device(0), 2, MemoryRole::KvCache)),
        "lease refused: asks 2 bytes on device:0 for kv-cache, 1 of 1 left; lower the request or raise \
         budget.\"device:0\" in registry.toml"
    );
}

#[test]
fn of_a_domain_without_books() {
    assert_eq!(
        refusal(governor(1).lease(Domain::Device(3), 1, MemoryRole::KvCache)),
        "domain device:3 has no books: no backing serves it and [budget] does not name it; name it in [budget] of \
         registry.toml"
    );
}

#[test]
fn of_a_growth_past_the_capacity() {
    let (_, host, backing) = faulty(MIB);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(6912)).unwrap();
    assert_eq!(
        refusal(buffer.grow_to(8193)),
        "backing \"faulty\": asks 8193 bytes a plane, the capacity is 8192; make the buffer with a larger \
         capacity, which costs address space only"
    );
}

#[test]
fn of_other_books() {
    let faults = Faults::new();
    let elsewhere = leasehold::AuthorityId::from_bytes([0xAB; 16]);
    let host = faults.host_with(MIB, move |_| Books::Elsewhere(elsewhere)).unwrap();
    let ours = host.governor().authority(Domain::Host).unwrap();
    assert_eq!(
        refusal(host.buffer(&host.backing("faulty").unwrap(), &BufferSpec::new(1))),
        format!(
            "backing \"faulty\": not admitted: it keeps the books abababababababababababababababab of host, this \
             governor keeps {ours}; use the host that created the backing, or let the backing charge through its \
             host's services"
        )
    );
}

#[test]
fn of_a_search_that_found_nothing() {
    let (_, host, _) = faulty(MIB);
    assert_eq!(
        refusal(host.find(&Requirements::growable().tier(Tier::Device))),
        "no backing fits: faulty is on host:0, not device; lower the requirements, or add a backing to registry.toml"
    );
    assert_eq!(
        refusal(host.find(&Requirements::growable().shared_mapping())),
        "no backing fits: faulty offers no shared-mapping; lower the requirements, or add a backing to registry.toml"
    );
    assert_eq!(
        refusal(host.backing("falty")),
        "no backing is called \"falty\": there are faulty; correct the name, or add the backing to registry.toml"
    );
}

#[test]
fn of_a_backing_that_is_out_of_service() {
    let (faults, host, backing) = faulty(MIB);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Panic);
    assert_eq!(
        refusal(buffer.grow_to(1)),
        "backing \"faulty\": commit failed: the plugin panicked: Commit panics as planned; the backing is out of \
         service from now on: use another, and report this to its author"
    );
    assert_eq!(
        refusal(buffer.grow_to(1)),
        "backing \"faulty\": commit refused: the backing is out of service: commit: the plugin panicked: Commit \
         panics as planned; use another backing, and report this to the plugin's author"
    );
    assert_eq!(
        refusal(host.backing("faulty")),
        "backing \"faulty\" is retired: commit: the plugin panicked: Commit panics as planned"
    );
}

#[test]
fn of_a_shrink_and_a_release_that_failed() {
    let (faults, host, backing) = faulty(MIB);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(8 * PAGE).unwrap();
    faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
    assert_eq!(
        refusal(buffer.shrink_to(2 * PAGE)),
        "not shrunk to 8192 bytes a plane: backing \"faulty\": decommit failed: Decommit fails as planned; 20480 of \
         32768 bytes stay charged: call shrink_to again"
    );
    faults.plan(Call::Release, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
    assert_eq!(
        refusal(buffer.close()),
        "backing \"faulty\": release failed: Release fails as planned; 20480 bytes stay charged: call reap() to try \
         again"
    );
}

#[test]
fn of_specs_that_could_never_be_granted() {
    let (_, host, backing) = faulty(MIB);
    let words = |spec: BufferSpec| refusal(host.buffer(&backing, &spec));
    assert_eq!(
        words(BufferSpec::new(0)),
        "backing \"faulty\": buffer not made: a capacity of 0 bytes can hold nothing; ask for at least one"
    );
    assert_eq!(
        words(BufferSpec::new(1).align(3)),
        "backing \"faulty\": buffer not made: an alignment of 3 bytes is no power of two; ask for one"
    );
    assert_eq!(
        words(BufferSpec::new(u64::MAX)),
        "backing \"faulty\": buffer not made: a capacity of 18446744073709551615 bytes passes the address space; ask \
         for less"
    );
    assert_eq!(
        words(BufferSpec::new(1 << 47)),
        "backing \"faulty\": reserve failed: no address space for 140737488355328 bytes aligned to 4096: \
         mmap(PROT_NONE) failed: ENOMEM (12); ask for less, or raise the address space limit (ulimit -v, RLIMIT_AS) or \
         vm.max_map_count"
    );
    assert_eq!(
        refusal(host.allocate(&backing, &AllocationSpec::new(0))),
        "backing \"faulty\": allocation not made: an allocation of 0 bytes can hold nothing; ask for at least one"
    );
    assert_eq!(
        refusal(host.buffer_set(&backing, 0, &BufferSpec::new(1))),
        "backing \"faulty\": buffer not made: a set of 0 planes can hold nothing; ask for at least one"
    );
}
