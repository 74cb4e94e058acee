//! What suites run on: a host over each way in for each backing, so that one suite runs over all of them.
//!
//! A rig says what its backing does not offer and why; a suite that needs it is then left out there, with the reason.

mod device;

use crate::conformance::{Capability, HOST_MMAP_LACKS};
use crate::fault::{Books, Faults};
use crate::observe;
use crate::plugins::{Registry, library_by};
use device::{CudaWayIn, Device};
use leasehold::{Address, BackingHandle, Domain, Door, Host, Requirements};
use std::sync::Arc;

/// 1024 bytes.
pub const KIB: u64 = 1 << 10;
/// 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// 1024 MiB.
pub const GIB: u64 = 1 << 30;

/// The budget of every host here.
pub const LIMIT: u64 = GIB;

/// What a suite runs on: one host with one backing that grows.
#[derive(Debug)]
pub struct TestRig {
    /// For messages.
    pub name: &'static str,
    /// The host.
    pub host: Host,
    /// Its backing.
    pub backing: BackingHandle,
    /// The domain that its memory is charged to.
    pub domain: Domain,
    /// The backing's unit of commit, in bytes.
    pub granule: u64,
    /// Why it can't share, where it can't.
    lacks_sharing: Option<&'static str>,
    /// The most that it parks, in bytes.
    park: u64,
    /// The device that it is on, where that is simulated. It comes last, since it ends last.
    device: Option<Arc<Device>>,
}

impl TestRig {
    /// A host whose first backing that grows parks and shares nothing.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn over(name: &'static str, host: Host) -> Self {
        let backing = host.find(&Requirements::growable()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let granule = backing.capabilities().granularity().expect("it grows");
        let domain = backing.domain();
        Self { name, host, backing, domain, granule, lacks_sharing: None, park: 0, device: None }
    }

    fn without_sharing(self, (_, reason): (Capability, &'static str)) -> Self {
        Self { lacks_sharing: Some(reason), ..self }
    }

    fn parking(self, park: u64) -> Self {
        Self { park, ..self }
    }

    fn on_device(self, device: Arc<Device>) -> Self {
        Self { device: Some(device), ..self }
    }

    /// Whether the CPU can touch its memory.
    #[must_use]
    pub fn is_of_the_host(&self) -> bool {
        self.device.is_none()
    }

    /// Bytes of a range that can be read and written: what the kernel says, or the driver.
    #[must_use]
    pub fn open_bytes(&self, base: Address, bytes: u64) -> u64 {
        self.device.as_ref().map_or_else(|| observe::open_bytes(base, bytes), |device| device.open_bytes(base, bytes))
    }

    /// Bytes of a range that have memory behind them: what the kernel says, once they are touched, or the driver.
    #[must_use]
    pub fn resident_bytes(&self, base: Address, bytes: u64) -> u64 {
        let device = self.device.as_ref();
        device.map_or_else(|| observe::resident_bytes(base, bytes), |device| device.mapped_bytes(base, bytes))
    }

    /// Whether a range is reserved as a whole, or was taken again: what the kernel says, or the driver.
    #[must_use]
    pub fn is_taken_whole(&self, base: Address, bytes: u64) -> bool {
        self.device
            .as_ref()
            .map_or_else(|| observe::is_taken_whole(base, bytes), |device| device.is_reserved(base, bytes))
    }

    /// Physical bytes behind some ranges, each counted once however often it is mapped.
    #[must_use]
    pub fn physical_bytes(&self, ranges: &[(Address, u64)]) -> u64 {
        self.device.as_ref().map_or_else(|| observe::proportional_bytes(ranges), |device| device.used_bytes())
    }

    /// Bytes that are charged.
    ///
    /// # Panics
    ///
    /// Where the host keeps no books of its backing's domain.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.host.snapshot().domain(self.domain).expect("the host has books").used_bytes
    }

    /// How many of `bytes` bytes it still owns after they were given back to it.
    #[must_use]
    pub fn parked(&self, bytes: u64) -> u64 {
        bytes.min(self.park)
    }

    /// Whether the suite of shared mapping runs here; where it doesn't, prints the reason. Fails where the backing offers
    /// what it is said to lack, or lacks what it is said to offer.
    ///
    /// # Panics
    ///
    /// When what the rig says of itself is no longer true.
    #[must_use]
    pub fn shares(&self) -> bool {
        let offers = self.backing.capabilities().has_shared_mapping();
        assert_eq!(offers, self.lacks_sharing.is_none(), "{}: {:?} is no longer true", self.name, self.lacks_sharing);
        if let Some(reason) = self.lacks_sharing {
            println!("unsupported: shared-mapping of {}: {reason}", self.name);
        }
        offers
    }
}

/// Every way in to memory of the host: linked in, loaded from its library, and charging by itself. None of them parks
/// anything: what is given back is no longer owned.
///
/// # Panics
///
/// When one of them can't be had.
#[must_use]
pub fn host_rigs() -> Vec<TestRig> {
    let builtin = Host::builder().limit(Domain::Host, LIMIT).load().expect("needs nothing");
    let charging = Faults::new().host_with(LIMIT, Books::OfItsHost).expect("needs nothing");
    let loaded = host_of(Door::AbiStable, "leasehold_host_mmap", "", Domain::Host);
    vec![
        TestRig::over("built-in host-mmap", builtin).without_sharing(HOST_MMAP_LACKS),
        TestRig::over("libleasehold_host_mmap.so", loaded).without_sharing(HOST_MMAP_LACKS),
        TestRig::over("host-mmap that charges by itself", charging).without_sharing(HOST_MMAP_LACKS),
        pool("built-in host-pool", Door::Builtin, "4 KiB", 0),
        pool("libleasehold_host_pool.so", Door::AbiStable, "4 KiB", 0),
    ]
}

/// Those of [`host_rigs`] that share, and one that parks what it is given back.
///
/// # Panics
///
/// When one of them can't be had.
#[must_use]
pub fn sharing_host_rigs() -> Vec<TestRig> {
    let mut rigs: Vec<_> = host_rigs().into_iter().filter(TestRig::shares).collect();
    rigs.push(pool("host-pool that parks", Door::AbiStable, "64 KiB", 256 * MIB));
    rigs
}

/// Every way in to memory of the host, then every way in to memory of a device. A rig on the device keeps other tests from
/// it while it lives.
///
/// # Panics
///
/// When one of them can't be had.
pub fn all_rigs() -> impl Iterator<Item = TestRig> {
    host_rigs().into_iter().chain(CudaWayIn::ALL.into_iter().map(CudaWayIn::rig))
}

/// Those of [`all_rigs`] that share, and those that park what they are given back.
///
/// # Panics
///
/// When one of them can't be had.
pub fn all_sharing_rigs() -> impl Iterator<Item = TestRig> {
    let on_device = CudaWayIn::ALL.into_iter().map(CudaWayIn::rig).filter(TestRig::shares);
    sharing_host_rigs().into_iter().chain(on_device).chain(std::iter::once_with(|| CudaWayIn::PARKING.rig()))
}

fn pool(name: &'static str, door: Door, granule: &str, park: u64) -> TestRig {
    let options = format!("backing = \"host-pool\"\n[backing.options]\ngranule = {granule:?}\npark = \"{park}\"\n");
    TestRig::over(name, host_of(door, "leasehold_host_pool", &options, Domain::Host)).parking(park)
}

/// A host with the one backing of a crate that comes in by that door. `lines` are further ones of its table.
fn host_of(door: Door, crate_name: &str, lines: &str, domain: Domain) -> Host {
    let lines = format!("required = true\n{lines}");
    let registry = Registry::new().backing("its-name", &library_by(door, crate_name), &lines);
    registry.builder().limit(domain, LIMIT).load().unwrap_or_else(|error| panic!("{error}"))
}
