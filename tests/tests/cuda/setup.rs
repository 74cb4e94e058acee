//! Hosts with one CUDA backing each, linked in, over the simulated driver.

use leasehold::{BackingHandle, BufferSet, Domain, Host};
use leasehold_plugin_api::{OptionValue, Options};
use leasehold_tests::cuda::{Counts, Simulator};
use leasehold_tests::fault::creator;

/// The granule that the simulator is given here, and so the unit of both backings: small, since it copies byte by byte.
pub(crate) const UNIT: u64 = 64 << 10;
/// The budget of the device.
pub(crate) const LIMIT: u64 = 1 << 30;
pub(crate) const DEVICE: Domain = Domain::Device(0);

/// Both backings, by the names that they are linked in under.
pub(crate) const NAMES: [&str; 2] = ["cuda-vmm", "cuda-pool"];

/// The simulator, with a device that has room for everything.
pub(crate) fn simulator() -> Simulator {
    let simulator = Simulator::start();
    simulator.limit_memory(0, LIMIT);
    simulator.set("granularity", UNIT);
    simulator.set("recommended", UNIT);
    simulator
}

/// Options that name the simulator as the driver.
pub(crate) fn options(pairs: &[(&str, &str)]) -> Options {
    let value = |text: &str| {
        let number = text.parse().map(OptionValue::Integer);
        number.unwrap_or_else(|_| OptionValue::Text(text.to_owned()))
    };
    let driver = Simulator::path();
    let options = Options::new().with("driver", value(driver.to_str().expect("the path is text")));
    pairs.iter().fold(options, |options, (key, text)| options.with(*key, value(text)))
}

/// A host with that backing, of these options, which may not be ready.
pub(crate) fn load(name: &'static str, options: Options) -> Host {
    let builder = Host::builder().limit(DEVICE, LIMIT).with_backing(name, creator(name, options));
    builder.load().expect("needs nothing else")
}

/// A host with that backing.
pub(crate) fn host(name: &'static str, pairs: &[(&str, &str)]) -> (Host, BackingHandle) {
    host_with(name, options(pairs))
}

/// A host with that backing, of these options.
pub(crate) fn host_with(name: &'static str, options: Options) -> (Host, BackingHandle) {
    let host = load(name, options);
    let backing = host.backing(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    (host, backing)
}

/// Bytes that are charged to the device.
pub(crate) fn used(host: &Host) -> u64 {
    host.snapshot().domain(DEVICE).expect("the device has books").used_bytes
}

/// What is live but for the contexts that backings retain, and their streams.
pub(crate) fn live(simulator: &Simulator) -> Counts {
    Counts { context_retains: 0, streams: 0, ..simulator.counts() }
}

/// What a set says of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetFigures {
    len: u64,
    committed: u64,
    shared: u64,
    owned_bytes: u64,
    mapped_bytes: u64,
}

impl SetFigures {
    pub(crate) fn of(set: &BufferSet) -> Self {
        Self {
            len: set.len(),
            committed: set.committed(),
            shared: set.shared(),
            owned_bytes: set.owned_bytes(),
            mapped_bytes: set.mapped_bytes(),
        }
    }
}
