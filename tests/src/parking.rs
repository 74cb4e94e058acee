//! A backing that parks what is decommitted, as a pool does, for the next commit or until it is trimmed.
//!
//! It parks in its answers alone: the memory really goes back to the backing that it wraps. Whoever wraps it keeps the
//! books, as [`FaultyBacking`] does. One commit at a time.

use crate::fault::{Books, Faults, FaultyBacking, HostMemory, host_mmap};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Description, HostServices, Region,
    RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes host-mmap that parks what is decommitted, behind these faults: it keeps the books of its host.
pub fn parking_mmap(faults: &Faults) -> impl FnOnce(HostServices) -> Result<FaultyBacking, BackingError> + 'static {
    let faults = faults.clone();
    move |services| {
        let parking = HostMemory::from(host_mmap(services)?).parking(0);
        Ok(FaultyBacking::new(parking, &faults, Books::OfItsHost(services)))
    }
}

/// A backing that parks memory.
pub struct ParkingBacking {
    inner: Box<dyn Backing>,
    parked_bytes: AtomicU64,
}

impl std::fmt::Debug for ParkingBacking {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ParkingBacking").field("parked_bytes", &self.parked_bytes).finish_non_exhaustive()
    }
}

impl ParkingBacking {
    /// Wraps a backing that offers virtual memory; says that it has `parked_bytes` parked already.
    #[must_use]
    pub fn new(inner: Box<dyn Backing>, parked_bytes: u64) -> Self {
        Self { inner, parked_bytes: AtomicU64::new(parked_bytes) }
    }

    fn growable(&self) -> &dyn VirtualBacking {
        self.inner.as_virtual_backing().expect("it wraps one that offers it")
    }

    /// Takes at most `bytes` of what is parked.
    fn unpark(&self, bytes: u64) -> u64 {
        let parked = self.parked_bytes.load(Ordering::Acquire);
        let taken = parked.min(bytes);
        self.parked_bytes.fetch_sub(taken, Ordering::AcqRel);
        taken
    }
}

impl Backing for ParkingBacking {
    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.inner.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.inner.release(target)
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let granule = self.growable().granularity();
        Ok(self.unpark(bytes.div_ceil(granule).saturating_mul(granule)))
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }
}

impl VirtualBacking for ParkingBacking {
    fn granularity(&self) -> u64 {
        self.growable().granularity()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.growable().reserve(request)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let Change { mapped_bytes, owned_bytes } = self.growable().commit(ranges)?;
        Ok(Change { mapped_bytes, owned_bytes: owned_bytes - self.unpark(owned_bytes) })
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let Change { mapped_bytes, owned_bytes } = self.growable().decommit(ranges)?;
        self.parked_bytes.fetch_add(owned_bytes, Ordering::AcqRel);
        Ok(Change { mapped_bytes, owned_bytes: 0 })
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let Change { mapped_bytes, owned_bytes } = self.growable().cost(ranges)?;
        let parked = self.parked_bytes.load(Ordering::Acquire);
        Ok(Change { mapped_bytes, owned_bytes: owned_bytes.saturating_sub(parked) })
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.growable().committed_bytes(region)
    }
}
