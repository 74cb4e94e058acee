//! Threads, contexts, devices and peers: whose memory it is, who reaches it, and what the rest of the process must not notice.

use super::setup::{LIMIT, NAMES, UNIT, host, host_with, options, simulator};
use leasehold::{BackingHandle, BufferSet, BufferSpec, Domain, ErrorKind, HolderId, Host, PrefixSpec};
use leasehold_plugin_api::{self as api, Address, BackingRegistration, HostServices, OptionValue, Options};
use leasehold_tests::cuda::{Lasting, Simulator, Touch};
use leasehold_tests::fault::creator;
use leasehold_tests::is_all;
use std::sync::mpsc;

/// What nobody may do with an address.
const ILLEGAL_ADDRESS: u32 = 700;

fn set(host: &Host, backing: &BackingHandle) -> BufferSet {
    host.buffer_set(backing, 2, &BufferSpec::new(16 * UNIT)).unwrap()
}

fn is_filled(set: &BufferSet, plane: usize, mark: u8) -> bool {
    let mut seen = vec![!mark; usize::try_from(set.len()).unwrap()];
    set.read(plane, 0, &mut seen).unwrap();
    is_all(&seen, mark)
}

/// Seen elsewhere: a worker thread had no context, and every call failed. Seen here: the addresses of a region that was going
/// were another thread's already, whose copies were then refused.
#[test]
fn eight_threads_without_a_context_make_grow_copy_and_drop() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                let (host, backing, simulator) = (&host, &backing, &simulator);
                scope.spawn(move || {
                    for round in 1..120 {
                        let spec = BufferSpec::new(16 * UNIT).holder(HolderId::new(u64::from(thread) + 1));
                        let mut set = host.buffer_set(backing, 2, &spec).unwrap();
                        let bytes = UNIT * (1 + u64::from(round % 3));
                        set.grow_to(bytes).unwrap();
                        set.fill(0, 0, bytes, thread).unwrap();
                        set.fill(1, 0, bytes, round).unwrap();
                        assert!(is_filled(&set, 0, thread) && is_filled(&set, 1, round), "{name}: another's bytes");
                        set.shrink_to(UNIT).unwrap();
                        assert_eq!(simulator.current_context(), 0, "{name}: nothing is left current");
                    }
                });
            }
        });
        host.trim(&backing, u64::MAX).unwrap();
        assert_eq!(super::setup::used(&host), 0, "{name}");
    }
    simulator.finish();
}

#[test]
fn another_devices_context_is_current_before_and_after_every_call() {
    let simulator = simulator();
    drop(host("cuda-vmm", &[])); // initialises the driver
    let current = simulator.enter(1);
    let theirs = current.number();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        let same = |call: &str| assert_eq!(simulator.current_context(), theirs, "{name}: after {call}");
        same("create");
        let mut set = set(&host, &backing);
        same("reserve");
        set.grow_to(3 * UNIT).unwrap();
        same("commit");
        set.write(0, 5, b"bytes").unwrap();
        same("write");
        set.fill(1, 0, UNIT, 1).unwrap();
        same("fill");
        set.read(0, 5, &mut [0; 5]).unwrap();
        same("read");
        assert_eq!(set.grow_to(17 * UNIT).unwrap_err().kind(), ErrorKind::CapacityExceeded);
        set.shrink_to(1).unwrap();
        same("decommit");
        let allocation = host.allocate(&backing, &leasehold::AllocationSpec::new(1)).unwrap();
        same("allocate");
        allocation.close().unwrap();
        same("release");
        if backing.capabilities().has_shared_mapping() {
            let mut prefix = host.prefix(&backing, &PrefixSpec::new(UNIT).planes(2)).unwrap();
            same("create_prefix");
            prefix.write(1, 0, b"shared").unwrap();
            let prefix = prefix.seal().unwrap();
            same("seal");
            set.clear().unwrap();
            set.map_prefix(&prefix).unwrap();
            same("map_prefix");
            set.clear().unwrap();
            same("unmap");
            prefix.close().unwrap();
            same("release_prefix");
        }
        set.close().unwrap();
        same("release of a region");
        host.trim(&backing, u64::MAX).unwrap();
        same("trim");
        drop((host, backing));
        assert_eq!(simulator.current_context(), theirs, "{name}: after its end");
    }
    drop(current);
    simulator.finish();
}

/// One host with a backing on each of two devices.
fn two_devices(name: &'static str) -> (Host, [BackingHandle; 2]) {
    let create = |device| creator(name, options(&[("device", device)]));
    let host = Host::builder()
        .limit(Domain::Device(0), 8 * UNIT)
        .limit(Domain::Device(1), 4 * UNIT)
        .with_backing("first", create("0"))
        .with_backing("second", create("1"))
        .load()
        .unwrap();
    let backings = ["first", "second"].map(|name| host.backing(name).unwrap());
    (host, backings)
}

#[test]
fn two_devices_have_budgets_of_their_own() {
    let simulator = simulator();
    for name in NAMES {
        let (host, [first, second]) = two_devices(name);
        assert_eq!([first.domain(), second.domain()], [Domain::Device(0), Domain::Device(1)], "{name}");
        let (mut one, mut other) = (set(&host, &first), set(&host, &second));
        one.grow_to(4 * UNIT).unwrap();
        other.grow_to(2 * UNIT).unwrap();
        let used = |domain| host.snapshot().domain(domain).unwrap().used_bytes;
        assert_eq!([used(Domain::Device(0)), used(Domain::Device(1))], [8 * UNIT, 4 * UNIT], "{name}");
        assert_eq!(other.grow_to(3 * UNIT).unwrap_err().kind(), ErrorKind::TierExhausted, "{name}");
        one.shrink_to(UNIT).unwrap();
        assert_eq!(other.grow_to(3 * UNIT).unwrap_err().kind(), ErrorKind::TierExhausted, "{name}: not its own");
        let books = simulator.books();
        assert_eq!(books.used(1), 4 * UNIT, "{name}: of its own device");
        one.fill(0, 0, UNIT, 1).unwrap();
        other.fill(0, 0, 2 * UNIT, 2).unwrap();
        assert!(is_filled(&other, 0, 2), "{name}");
        drop((one, other, host, first, second));
    }
    simulator.finish();
}

/// Options by which device 1 gets access too.
fn with_peer() -> Options {
    options(&[]).with("peers", integers(&[1]))
}

fn integers(numbers: &[i64]) -> OptionValue {
    OptionValue::List(numbers.iter().copied().map(OptionValue::Integer).collect())
}

fn touched(simulator: &Simulator, device: u32, base: Option<Address>, offset: u64, touch: Touch) -> u32 {
    simulator.touch(device, base.unwrap().get() + offset, touch)
}

/// Seen elsewhere: access was set for the owner only, and a peer read.
#[test]
fn peers_reach_what_is_committed_and_read_what_is_sealed() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = host_with(name, with_peer());
        let mut set = set(&host, &backing);
        set.grow_to(2 * UNIT).unwrap();
        for (device, touch) in [(0, Touch::Store), (1, Touch::Load), (1, Touch::Store)] {
            assert_eq!(touched(&simulator, device, set.base(1), 2 * UNIT - 1, touch), 0, "{name}: {device} {touch:?}");
        }
        set.grow_to(3 * UNIT).unwrap();
        assert_eq!(touched(&simulator, 1, set.base(0), 3 * UNIT - 1, Touch::Store), 0, "{name}: what grew");
        if backing.capabilities().has_shared_mapping() {
            let prefix = host.prefix(&backing, &PrefixSpec::new(UNIT).planes(2)).unwrap();
            assert_eq!(touched(&simulator, 1, prefix.base(1), 0, Touch::Store), 0, "{name}: the window, before");
            let prefix = prefix.seal().unwrap();
            set.clear().unwrap();
            set.map_prefix(&prefix).unwrap();
            for base in [prefix.base(1), set.base(1)] {
                assert_eq!(touched(&simulator, 1, base, 0, Touch::Load), 0, "{name}: sealed");
            }
            let access = |base: Option<Address>| {
                let books = simulator.books();
                let base = base.unwrap().get();
                let holds = |start: u64, bytes: u64| (start..start + bytes).contains(&base);
                books
                    .mappings
                    .iter()
                    .find(|mapping| holds(mapping.base, mapping.bytes))
                    .map(|found| found.access.clone())
            };
            for base in [prefix.base(1), set.base(1)] {
                assert_eq!(access(base), Some(vec![(0, 1), (1, 1)]), "{name}: read-only for both");
            }
        }
    }
    simulator.finish();
}

#[test]
fn who_is_no_peer_reaches_nothing() {
    let simulator = simulator();
    let (host, backing) = host("cuda-vmm", &[]);
    let mut set = set(&host, &backing);
    set.grow_to(UNIT).unwrap();
    // Somebody retains the other device's context, which the fault then poisons.
    let current = simulator.enter(1);
    assert_eq!(touched(&simulator, 1, set.base(0), 0, Touch::Load), ILLEGAL_ADDRESS);
    drop(current);
    assert_eq!(touched(&simulator, 0, set.base(0), 0, Touch::Load), 0, "its own device goes on");
    drop((set, host, backing));
    simulator.finish();
}

#[test]
fn a_store_into_what_is_sealed_is_a_fault_of_the_kernel_for_a_peer_too() {
    let simulator = simulator();
    let (host, backing) = host_with("cuda-pool", with_peer());
    let prefix = host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap().seal().unwrap();
    let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(UNIT)).unwrap();
    set.map_prefix(&prefix).unwrap();
    // Somebody retains the other device's context, which the fault then poisons.
    let current = simulator.enter(1);
    assert_eq!(touched(&simulator, 1, set.base(0), 0, Touch::Load), 0, "a peer may read it");
    assert_eq!(touched(&simulator, 1, set.base(0), 0, Touch::Store), ILLEGAL_ADDRESS);
    drop(current);
    drop((set, prefix, host, backing));
    simulator.finish();
}

/// Why a backing with these options is not made.
fn refusal(name: &'static str, options: Options) -> api::BackingError {
    let (sender, receiver) = mpsc::channel();
    let create = creator(name, options);
    let create = move |services: HostServices| {
        let outcome = create(services);
        sender.send(outcome.as_ref().err().cloned()).unwrap();
        outcome
    };
    let builder = Host::builder().limit(Domain::Device(0), LIMIT).limit(Domain::Device(1), LIMIT);
    let host = builder.with_backing("refused", create).load().unwrap();
    let error = receiver.recv().unwrap();
    error.unwrap_or_else(|| panic!("{name} is made: {:?}", host.backings()))
}

/// A context takes memory of its device: a peer without room for one took the backing out of service.
#[test]
fn asking_whether_a_peer_reaches_a_device_makes_no_context_there() {
    let simulator = simulator();
    for name in NAMES {
        let before = simulator.books();
        let (host, backing) = host_with(name, options(&[]).with("peers", integers(&[1])));
        let books = simulator.books();
        let made = |function| books.count(function) - before.count(function);
        assert_eq!((made("cuDevicePrimaryCtxRetain"), made("cuDeviceCanAccessPeer")), (0, 1), "{name}");
        let mut set = set(&host, &backing);
        set.grow_to(UNIT).unwrap();
        drop(set);
        let books = simulator.books();
        assert_eq!(books.devices[1].context_retains, 0, "{name}");
        drop((backing, host));
        simulator.plan("cuDeviceCanAccessPeer", 1, Lasting::Once, 101);
        let error = refusal(name, options(&[]).with("peers", integers(&[1])));
        assert!(error.message().contains("device 1 does not tell whether it reaches device 0"), "{name}: {error}");
    }
    simulator.finish();
}

#[test]
fn options_that_can_not_be_served_are_refused_in_words() {
    let simulator = simulator();
    simulator.separate(1, 0);
    for name in NAMES {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let cases: [(&str, OptionValue, api::ErrorKind, &str); 13] = [
            ("peers", integers(&[1]), api::ErrorKind::InvalidRequest, "`peers` refused: device 1 can't reach device 0"),
            ("peers", integers(&[0]), api::ErrorKind::InvalidRequest, "`peers` refused: 0 is the device itself"),
            ("peers", integers(&[2]), api::ErrorKind::Unavailable, "device 2 is not here"),
            (
                "device",
                OptionValue::Integer(2),
                api::ErrorKind::Unavailable,
                "device 2 is not here: the CUDA driver shows",
            ),
            ("device", OptionValue::Integer(-1), api::ErrorKind::InvalidRequest, "device"),
            ("peers", integers(&[1, 1]), api::ErrorKind::InvalidRequest, "`peers` refused: 1 is written twice"),
            (
                "handle",
                OptionValue::Integer(3),
                api::ErrorKind::InvalidRequest,
                "`handle` refused: 3 is no power of two",
            ),
            (
                "handle",
                OptionValue::Integer(0),
                api::ErrorKind::InvalidRequest,
                "`handle` refused: 0 is no power of two",
            ),
            ("handle", OptionValue::Integer(1 << 62), api::ErrorKind::InvalidRequest, "no power of two that"),
            ("handle", OptionValue::Integer(1 << 20), api::ErrorKind::InvalidRequest, "bytes have room for"),
            ("driver", text("libcuda.so.1"), api::ErrorKind::InvalidRequest, "libcuda.so.1 is no absolute path"),
            ("granularity", text("huge"), api::ErrorKind::InvalidRequest, "huge"),
            ("divice", OptionValue::Integer(0), api::ErrorKind::InvalidRequest, "divice"),
        ];
        for (key, value, kind, words) in cases {
            let error = refusal(name, options(&[]).with(key, value.clone()));
            assert_eq!(error.kind(), kind, "{name}: {key} = {value:?}: {error}");
            assert!(error.message().contains(words), "{name}: {key} = {value:?}: {error}");
        }
    }
    let error = refusal("cuda-vmm", options(&[("park", "0")]));
    assert!(error.message().contains("park"), "cuda-vmm parks nothing: {error}");
    simulator.finish();
}

#[test]
fn the_unit_of_commit_is_a_handle_of_granules_of_either_kind() {
    let simulator = simulator();
    simulator.set("recommended", 2 * UNIT);
    for name in NAMES {
        for (granularity, handle, unit) in [
            ("minimum", "1", UNIT),
            ("minimum", "8", 8 * UNIT),
            ("recommended", "1", 2 * UNIT),
            ("recommended", "2", 4 * UNIT),
        ] {
            let (host, backing) = host(name, &[("granularity", granularity), ("handle", handle)]);
            assert_eq!(backing.capabilities().granularity(), Some(unit), "{name}: {granularity} {handle}");
            let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(16 * UNIT)).unwrap();
            set.grow_to(unit + 1).unwrap();
            assert_eq!(set.committed(), 2 * unit, "{name}");
            let handles = simulator.books().handles;
            assert!(handles.iter().all(|handle| handle.bytes == unit), "{name}: {handles:?}");
        }
    }
    simulator.finish();
}

#[test]
fn both_are_linked_in_under_their_names() {
    let linked_in = BackingRegistration::linked_in();
    for name in NAMES {
        assert!(linked_in.iter().any(|registration| registration.name() == name), "{name}");
    }
}
