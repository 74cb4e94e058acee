//! The budget of a device: what an `"auto"` one is reckoned from, and who gives where it is short.

use super::setup::{self, DEVICE, LIMIT, NAMES, UNIT, simulator, used};
use leasehold::{BufferSpec, Host};
use leasehold_cuda_driver::{Device, Driver};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::plugins::{Registry, library, text};
use leasehold_tests::victim::Victim;

const MIB: u64 = 1 << 20;
/// What is left to others of it.
const MARGIN: u64 = LIMIT / 16;

/// A host for each backing and each way in, with no budget written; its only backing is `"device"`.
fn hosts() -> impl Iterator<Item = (String, Host)> {
    let libraries = [("cuda-vmm", "leasehold_cuda_vmm"), ("cuda-pool", "leasehold_cuda_pool")];
    let ways = libraries.into_iter().flat_map(|(name, file)| {
        ["builtin".to_owned(), text(&library(file))].map(|library| (name.to_owned(), library))
    });
    ways.map(|(name, library)| {
        let driver = text(&Simulator::path());
        let lines = format!("backing = {name:?}\nrequired = true\n[backing.options]\ndriver = {driver:?}");
        let host = Registry::new().backing("device", &library, &lines).builder().load();
        (format!("{name}, {library}"), host.unwrap_or_else(|error| panic!("{name}, {library}: {error}")))
    })
}

fn limit(host: &Host) -> u64 {
    host.snapshot().domain(DEVICE).expect("the device has books").limit_bytes
}

/// The device, for some other code in this process.
fn device() -> Device {
    Driver::open(Some(&Simulator::path())).unwrap().device(0).unwrap()
}

/// What is free takes a context to ask, and leaves reclaimable memory out on some devices.
#[test]
fn an_auto_budget_is_reckoned_from_all_memory_of_the_device() {
    let simulator = simulator();
    let device = device();
    let held = device.allocate(256 * MIB).unwrap();
    simulator.set("reported_free", 1);
    for (way, host) in hosts() {
        let description = host.backing("device").unwrap().description().clone();
        assert_eq!((description.total_bytes, description.free_bytes), (LIMIT, None), "{way}");
        assert_eq!(limit(&host), LIMIT - MARGIN, "{way}");
    }
    held.close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn what_others_take_or_give_back_later_changes_neither_the_answer_nor_the_budget() {
    let simulator = simulator();
    let device = device();
    for (way, host) in hosts() {
        let held = device.allocate(256 * MIB).unwrap();
        let backing = host.backing("device").unwrap();
        let mut buffer =
            host.buffer(&backing, &BufferSpec::new(16 * UNIT)).expect("an answer that changed is a breach");
        buffer.grow_to(UNIT).unwrap();
        assert_eq!(limit(&host), LIMIT - MARGIN, "{way}");
        held.close().unwrap();
    }
    drop(device);
    simulator.finish();
}

#[test]
fn one_victim_is_enough_where_its_memory_is_parked_too() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = setup::host(name, &[]);
        let buffer = |units| {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(16 * UNIT)).unwrap();
            buffer.grow_to(units * UNIT).unwrap();
            buffer
        };
        let mut grows = buffer(0);
        let victims = [(); 5].map(|()| Victim::register(&host, DEVICE, buffer(4)));
        host.governor().set_limit(DEVICE, used(&host)).unwrap();
        grows.grow_to(3 * UNIT).expect("the first gives");
        assert_eq!(victims.each_ref().map(|victim| victim.len() / UNIT), [1, 4, 4, 4, 4], "{name}");
        assert_eq!(used(&host), 20 * UNIT, "{name}");
        drop((victims, grows, backing, host));
    }
    simulator.finish();
}
