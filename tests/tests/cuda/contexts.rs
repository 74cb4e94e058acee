//! When a host makes a context on a device, and what it does once that is gone.

use super::setup::{LIMIT, NAMES, UNIT, host, load, options, simulator, used};
use leasehold::{AllocationSpec, BackingHandle, BufferSpec, Error, ErrorKind, Host, PrefixSpec};
use leasehold_plugin_api as api;
use leasehold_tests::cuda::{Counts, Lasting, Simulator};
use leasehold_tests::fork::{How, in_fork};
use leasehold_tests::plugins::{Registry, doors, text};

/// The calls that are made of a device that is only listed: none needs a context, none takes memory.
const OF_LISTING: [&str; 8] = [
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuInit",
    "cuMemGetAllocationGranularity",
    "cuDeviceCanAccessPeer",
];

/// A host with one backing, `"device"`, loaded by a registry file.
fn registry(backing: &str, library: &str) -> Host {
    let lines =
        format!("backing = {backing:?}\n[backing.options]\ndriver = {:?}\npeers = [1]", text(&Simulator::path()));
    Registry::new().backing("device", library, &lines).builder().load().unwrap()
}

/// A context takes seconds and hundreds of MiB, and workers that are forked afterwards can't use it.
#[test]
fn a_registry_is_loaded_and_listed_without_a_context() {
    let simulator = simulator();
    for (name, crate_name) in [("cuda-vmm", "leasehold_cuda_vmm"), ("cuda-pool", "leasehold_cuda_pool")] {
        for (door, library) in doors(crate_name) {
            let host = registry(name, &library);
            let backing = host.backing("device").unwrap();
            assert_eq!(backing.capabilities().granularity(), Some(UNIT));
            assert_eq!(backing.description().device_name, "Leasehold simulated device 0");
            assert_eq!(host.backings().len(), 1);
            assert_eq!(host.trim(&backing, u64::MAX).unwrap_or(0), 0, "nor does a trim of nothing make one");
            drop((backing, host));
            let made: Vec<_> =
                simulator.books().calls.into_keys().filter(|call| !OF_LISTING.contains(&&**call)).collect();
            assert_eq!(made, [""; 0], "{name}, {door:?}");
        }
    }
    simulator.finish();
}

type Use = fn(&Host, &BackingHandle) -> Result<(), Error>;

#[test]
fn the_first_use_of_memory_makes_the_context() {
    let uses: [Use; 3] = [
        |host, backing| host.buffer_set(backing, 2, &BufferSpec::new(UNIT)).map(drop),
        |host, backing| host.allocate(backing, &AllocationSpec::new(1)).map(drop),
        |host, backing| host.prefix(backing, &PrefixSpec::new(UNIT)).map(drop),
    ];
    let simulator = simulator();
    for name in NAMES {
        for use_of in &uses[..if name == "cuda-pool" { 3 } else { 2 }] {
            let (host, backing) = host(name, &[]);
            assert_eq!(simulator.counts().context_retains, 0, "{name}");
            simulator.plan("cuDevicePrimaryCtxRetain", 1, Lasting::Once, 46);
            let error = use_of(&host, &backing).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Backing, "{name}: {error}");
            assert!(error.to_string().contains("another process has the device to itself"), "{name}: {error}");
            use_of(&host, &backing).unwrap();
            assert_eq!((simulator.counts().context_retains, simulator.counts().streams), (1, 2), "{name}");
        }
    }
    simulator.finish();
}

#[test]
fn a_context_that_is_not_made_leaves_nothing() {
    let simulator = simulator();
    let calls = [
        ("cuDevicePrimaryCtxRetain", 1),
        ("cuCtxGetId", 2),
        ("cuCtxGetCurrent", 1),
        ("cuCtxSetCurrent", 1),
        ("cuThreadExchangeStreamCaptureMode", 1),
        ("cuStreamCreate", 2),
    ];
    for (name, (function, count)) in NAMES.into_iter().flat_map(|name| calls.map(|call| (name, call))) {
        for nth in 1..=count {
            let (host, backing) = host(name, &[]);
            let make = || host.buffer_set(&backing, 1, &BufferSpec::new(UNIT));
            simulator.plan(function, nth, Lasting::Once, 2);
            // A thread of its own: where the context that was current could not be made so again, the thread keeps another.
            let error = std::thread::scope(|scope| scope.spawn(|| make().map(drop).unwrap_err()).join().unwrap());
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{name}: {function}, {nth}: {error}");
            assert_eq!(simulator.counts(), Counts::default(), "{name}: {function}, {nth}");
            drop(make().unwrap());
        }
    }
    simulator.finish();
}

#[test]
fn a_device_on_which_no_context_can_be_made_is_unavailable() {
    let simulator = simulator();
    simulator.set("compute_mode", 2);
    for name in NAMES {
        let state = load(name, options(&[])).backings().remove(0).state;
        assert_eq!(state.name(), "unavailable", "{name}");
        assert!(state.reason().unwrap_or_default().contains("its compute mode is prohibited"), "{name}: {state:?}");
    }
    simulator.finish();
}

/// The driver serves no process that was forked after `cuInit`.
#[test]
fn a_host_that_a_forked_child_makes_says_what_is_wrong() {
    let simulator = simulator();
    let parent = load("cuda-vmm", options(&[]));
    let is_told = in_fork(How::Fork, || {
        let report = load("cuda-pool", options(&[])).backings().remove(0);
        let reason = report.state.reason().unwrap_or_default().to_owned();
        report.state.name() == "unavailable" && reason.contains("this process was forked") && reason.contains("by exec")
    });
    assert_eq!(is_told, Ok(true));
    drop(parent);
    simulator.finish();
}

/// Memory belongs to no context, so it outlives a reset, after which the context is made anew at the same address.
#[test]
fn after_a_reset_the_backing_is_retired_and_gives_back() {
    let simulator = simulator();
    simulator.set("gives_back_without_context", 1);
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(16 * UNIT)).unwrap();
        set.grow_to(4 * UNIT).unwrap();
        set.fill(0, 0, UNIT, 1).unwrap();
        let prefix =
            (name == "cuda-pool").then(|| host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap().seal().unwrap());
        simulator.reset_context(0);
        let theirs = simulator.enter(0);
        let error = set.grow_to(8 * UNIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfService, "{name}: {error}");
        assert_eq!(error.backing_error().and_then(api::BackingError::native_code), Some(709), "{name}: {error}");
        assert!(error.to_string().contains("the device's primary context was reset"), "{name}: {error}");
        set.close().unwrap();
        prefix.map_or(Ok(()), leasehold::SharedPrefix::close).unwrap();
        assert_eq!(host.reap().remaining, 0, "{name}");
        drop((backing, host));
        assert_eq!(simulator.counts().bytes, 0, "{name}: what was parked too");
        drop(theirs);

        let (host, backing) = super::setup::host(name, &[]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(16 * UNIT)).unwrap();
        set.grow_to(UNIT).unwrap();
        assert_eq!(used(&host), UNIT, "{name}: the device serves a new host");
    }
    simulator.limit_memory(0, LIMIT);
    simulator.finish();
}

#[test]
fn a_device_that_maps_nothing_read_only_shares_nothing() {
    let simulator = simulator();
    let (host, backing) = host("cuda-pool", &[]);
    simulator.set("read_only", 0);
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap();
    prefix.write(0, 0, b"bytes").unwrap();
    let unsealed = prefix.seal().unwrap_err();
    assert_eq!(unsealed.error.kind(), ErrorKind::Unsupported, "{}", unsealed.error);
    assert!(unsealed.error.to_string().contains("nothing can be shared on it"), "{}", unsealed.error);
    drop(unsealed);
    let before = simulator.books().calls;
    let error = host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("maps no memory read-only; nothing can be shared on it"), "{error}");
    assert_eq!(simulator.books().calls, before, "it is known from then on");
    let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(UNIT)).unwrap();
    set.grow_to(UNIT).unwrap();
    drop((set, backing, host));
    simulator.finish();
}

/// A driver that takes the call and lets writing go on.
#[test]
fn access_that_is_set_to_reading_is_looked_at() {
    let simulator = simulator();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap();
    simulator.plan("cuMemSetAccess", 1, Lasting::Once, 0);
    let unsealed = prefix.seal().unwrap_err();
    assert_eq!(unsealed.error.kind(), ErrorKind::Unsupported, "{}", unsealed.error);
    drop((unsealed, backing, host));
    simulator.finish();
}
