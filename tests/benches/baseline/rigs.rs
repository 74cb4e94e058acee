//! Hosts to measure on: one backing, through its shared library or linked in.

use leasehold::{BackingHandle, BufferSet, BufferSpec, Domain, Door, GrowthPolicy, Host};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::plugins::{Registry, library_by, text};

/// What the books allow: more than any operation takes.
const BUDGET: u64 = 64 << 30;

/// A host with one backing.
pub(crate) struct Rig {
    pub(crate) host: Host,
    pub(crate) backing: BackingHandle,
    /// The unit of commit.
    pub(crate) granule: u64,
}

impl Rig {
    /// host-mmap by this door.
    pub(crate) fn mmap(door: Door) -> Self {
        Self::new(door, "leasehold_host_mmap", "host-mmap", Domain::Host, "")
    }

    /// host-pool through its library, with default options.
    pub(crate) fn pool() -> Self {
        Self::new(Door::AbiStable, "leasehold_host_pool", "host-pool", Domain::Host, "")
    }

    /// A CUDA backing through its library, over the simulated driver.
    pub(crate) fn cuda(name: &str) -> Self {
        let options = format!("[backing.options]\ndriver = {:?}\n", text(&Simulator::path()));
        Self::new(Door::AbiStable, &format!("leasehold_{}", name.replace('-', "_")), name, Domain::Device(0), &options)
    }

    fn new(door: Door, crate_name: &str, backing: &str, domain: Domain, options: &str) -> Self {
        let lines = format!("required = true\nbacking = {backing:?}\n{options}");
        let registry = Registry::new().backing("measured", &library_by(door, crate_name), &lines);
        let host = registry.builder().limit(domain, BUDGET).load().expect("its backing is ready");
        let backing = host.backing("measured").expect("it is there");
        let granule = backing.capabilities().granularity().expect("it grows");
        Self { host, backing, granule }
    }

    /// A set that may grow to so many granules a plane.
    pub(crate) fn set(&self, planes: usize, granules: u64) -> BufferSet {
        let spec = BufferSpec::new(granules * self.granule).growth(GrowthPolicy::Exact);
        self.host.buffer_set(&self.backing, planes, &spec).expect("address space costs nothing")
    }
}
