//! Rigs over the CUDA backings, on the simulated driver. Whoever has one of them has the simulator's turn; when a test drops
//! its last one, nothing may be left on the device.

use super::{GIB, TestRig, host_of};
use crate::conformance::CUDA_VMM_LACKS;
use crate::cuda::{Books, MappingBooks, ReservationBooks, Simulator};
use crate::plugins::text;
use leasehold::{Address, Domain, Door};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// The unit of commit there.
const GRANULE: u64 = 64 << 10;

/// How the books write that a device may read and write.
const READ_WRITE: u32 = 3;

thread_local! {
    /// The device that this test has already: it may have two rigs at once.
    static HELD: RefCell<Weak<Device>> = const { RefCell::new(Weak::new()) };
}

/// The simulated device, for one test.
#[derive(Debug)]
pub(super) struct Device(Option<Simulator>);

impl Device {
    fn hold() -> Arc<Self> {
        HELD.with_borrow_mut(|held| {
            held.upgrade().unwrap_or_else(|| {
                let simulator = Simulator::start();
                simulator.set("granularity", GRANULE);
                simulator.limit_memory(0, 4 * GIB);
                let device = Arc::new(Self(Some(simulator)));
                *held = Arc::downgrade(&device);
                device
            })
        })
    }
}

/// What the driver says: its books.
impl Device {
    fn books(&self) -> Books {
        self.0.as_ref().expect("it lives").books()
    }

    fn mappings(&self, base: Address, bytes: u64, is_wanted: impl Fn(&MappingBooks) -> bool) -> u64 {
        let (begin, end) = (base.get(), base.get() + bytes);
        let within = |mapping: &&MappingBooks| mapping.base >= begin && mapping.base + mapping.bytes <= end;
        self.books()
            .mappings
            .iter()
            .filter(within)
            .filter(|mapping| is_wanted(mapping))
            .map(|mapping| mapping.bytes)
            .sum()
    }

    /// Bytes of a range that the device can read and write.
    pub(super) fn open_bytes(&self, base: Address, bytes: u64) -> u64 {
        self.mappings(base, bytes, |mapping| mapping.access.contains(&(0, READ_WRITE)))
    }

    /// Bytes of a range that have physical memory behind them.
    pub(super) fn mapped_bytes(&self, base: Address, bytes: u64) -> u64 {
        self.mappings(base, bytes, |_| true)
    }

    pub(super) fn is_reserved(&self, base: Address, bytes: u64) -> bool {
        let holds =
            |range: &ReservationBooks| range.base <= base.get() && base.get() + bytes <= range.base + range.bytes;
        self.books().reservations.iter().any(holds)
    }

    /// Physical memory in use.
    pub(super) fn used_bytes(&self) -> u64 {
        self.books().used(0)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(simulator) = self.0.take().filter(|_| !std::thread::panicking()) {
            simulator.finish();
        }
    }
}

/// A way in to one of the CUDA backings.
#[derive(Clone, Copy, Debug)]
pub(super) struct CudaWayIn {
    name: &'static str,
    door: Door,
    backing: &'static str,
    /// The most that it parks, where it is a pool.
    park: Option<u64>,
}

impl CudaWayIn {
    const fn new(name: &'static str, door: Door, backing: &'static str, park: Option<u64>) -> Self {
        Self { name, door, backing, park }
    }

    /// Every way in. None of them parks anything.
    pub(super) const ALL: [Self; 4] = [
        Self::new("built-in cuda-vmm", Door::Builtin, "cuda-vmm", None),
        Self::new("libleasehold_cuda_vmm.so", Door::AbiStable, "cuda-vmm", None),
        Self::new("built-in cuda-pool", Door::Builtin, "cuda-pool", Some(0)),
        Self::new("libleasehold_cuda_pool.so", Door::AbiStable, "cuda-pool", Some(0)),
    ];

    /// One that parks.
    pub(super) const PARKING: Self = Self::new("cuda-pool that parks", Door::AbiStable, "cuda-pool", Some(256 << 20));

    /// Waits for the simulator's turn.
    pub(super) fn rig(self) -> TestRig {
        let device = Device::hold();
        let Self { name, door, backing, park } = self;
        let park_option = park.map_or(String::new(), |park| format!("park = {park}\n"));
        let driver = text(&Simulator::path());
        let lines = format!("backing = {backing:?}\n[backing.options]\ndriver = {driver:?}\n{park_option}");
        let crate_name = format!("leasehold_{}", backing.replace('-', "_"));
        let rig = TestRig::over(name, host_of(door, &crate_name, &lines, Domain::Device(0))).on_device(device);
        match park {
            Some(park) => rig.parking(park),
            None => rig.without_sharing(CUDA_VMM_LACKS),
        }
    }
}
