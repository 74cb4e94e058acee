//! Memory of a device and memory of the host behave alike: whatever is done to both, what can be seen of them is the same.
//!
//! Each case plays one sequence of random operations (those of the model suite) twice, on a host backing and on its CUDA
//! counterpart with the same granule and the same bound on what is parked, and compares after each operation: what it
//! answered, every length, every figure of the books, and every byte. Bytes are read and written by copies on both sides.
//! Calls that fail on purpose are the other suites' matter.

mod seen;
mod side;

use super::setup::{DEVICE, options, simulator};
use leasehold::{Domain, HolderId};
use leasehold_plugin_api::{OptionValue, Options};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::model::{Operation, PAGE, sharing, sound};
use proptest::prelude::*;
use side::{Side, number};

/// Two backings, and what they have in common.
#[derive(Clone, Copy)]
struct Pair {
    host: (&'static str, &'static [(&'static str, &'static str)]),
    device: (&'static str, &'static [(&'static str, &'static str)]),
    /// The holder of what is in each slot. Where memory is parked it is nobody in particular, who never sees what was left:
    /// two pools may hand out the granules of one holder in different orders.
    holder: fn(usize) -> HolderId,
}

const MAPPED: Pair = Pair { host: ("host-mmap", &[]), device: ("cuda-vmm", &[]), holder: own };
const POOLED: Pair = Pair {
    host: ("host-pool", &[("granule", "4 KiB"), ("park", "0")]),
    device: ("cuda-pool", &[("park", "0")]),
    holder: own,
};
const PARKING: Pair = Pair {
    host: ("host-pool", &[("granule", "4 KiB"), ("park", "64 KiB")]),
    device: ("cuda-pool", &[("park", "64 KiB")]),
    holder: |_| HolderId::NOBODY,
};

fn own(slot: usize) -> HolderId {
    HolderId::new(number(slot) + 1)
}

fn host_options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().fold(Options::new(), |options, (key, text)| options.with(*key, OptionValue::Text((*text).to_owned())))
}

/// Plays operations on both.
fn play(simulator: &Simulator, pair: Pair, operations: &[Operation]) {
    let mut host = Side::new(Domain::Host, pair.host.0, host_options(pair.host.1), pair.holder);
    let mut device = Side::new(DEVICE, pair.device.0, options(pair.device.1), pair.holder);
    for (step, operation) in operations.iter().enumerate() {
        let place = format_args!("step {step}: {operation:?}: {} left, {} right", pair.host.0, pair.device.0);
        assert_eq!(host.apply(operation), device.apply(operation), "{place}");
        assert_eq!(host.seen(), device.seen(), "{place}");
    }
    drop((host, device));
    assert!(simulator.books().is_empty() && simulator.counts().violations == 0, "{:#?}", simulator.books());
}

/// The simulator, whose granule is that of the operations.
fn paged() -> Simulator {
    let simulator = simulator();
    simulator.set("granularity", PAGE);
    simulator
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cuda_vmm_is_like_host_mmap(operations in prop::collection::vec(sound(), 1..60)) {
        let simulator = paged();
        play(&simulator, MAPPED, &operations);
        simulator.finish();
    }

    #[test]
    fn cuda_pool_is_like_host_pool(operations in prop::collection::vec(sharing(), 1..60)) {
        let simulator = paged();
        play(&simulator, POOLED, &operations.concat());
        simulator.finish();
    }

    #[test]
    fn cuda_pool_that_parks_is_like_host_pool_that_parks(operations in prop::collection::vec(sharing(), 1..60)) {
        let simulator = paged();
        play(&simulator, PARKING, &operations.concat());
        simulator.finish();
    }
}
