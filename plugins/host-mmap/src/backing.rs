//! The backing: answers the contract from the tables of live regions and allocations.
//!
//! It owns both tables; whatever is still live in them is unmapped when it is dropped. Requests are checked here, ranges
//! in `region.rs`, calls over many regions in `transaction.rs`. Every method may be called from any thread.

use crate::options::{HostMmapOptions, Settings};
use crate::region::Region as LiveRegion;
use crate::{mapping, transaction};
use leasehold_host_memory::{MapBudget, sys};
use leasehold_plugin_api::toolkit::{Lockable, Table, request};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, AllocationId, Backing, BackingError, BackingFactory, Change, CommitRange, Description,
    DeviceKey, HostAccess, HostServices, LogLevel, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest,
    VirtualBacking,
};
use std::fmt::Display;
use std::hash::Hash;

/// Memory of the host: address space from `mmap`, committed by `mprotect`.
#[derive(Debug)]
pub struct HostMmap {
    settings: Settings,
    /// Read once: a description never changes, even where memory is plugged in later.
    total_bytes: u64,
    budget: &'static MapBudget,
    regions: Table<RegionId, LiveRegion>,
    allocations: Table<AllocationId, LiveRegion>,
    host: Option<HostServices>,
}

impl HostMmap {
    /// A backing that has no host to log to.
    ///
    /// # Errors
    ///
    /// As [`BackingFactory::create`].
    pub fn new(options: &HostMmapOptions) -> Result<Self, BackingError> {
        Self::within(MapBudget::of_library(), options)
    }

    pub(crate) fn within(budget: &'static MapBudget, options: &HostMmapOptions) -> Result<Self, BackingError> {
        let settings = options.resolve(sys::page_bytes())?;
        let (regions, allocations) = (Table::new(), Table::new());
        Ok(Self { settings, total_bytes: sys::total_bytes(), budget, regions, allocations, host: None })
    }
}

impl BackingFactory for HostMmap {
    const NAME: &'static str = "host-mmap";
    const SUMMARY: &'static str = "host memory that grows in place, by mmap and mprotect";
    const HOST_ACCESS: HostAccess<Self> = mapping::host_access();
    type Options = HostMmapOptions;

    fn create(options: HostMmapOptions, host: HostServices) -> Result<Self, BackingError> {
        let mut backing = Self::new(&options)?;
        backing.host = Some(host);
        Ok(backing)
    }
}

impl Backing for HostMmap {
    fn describe(&self) -> Description {
        Description::new(DeviceKey::HOST, "host memory").with_total_bytes(self.total_bytes)
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let physical = request::physical_bytes(request, self.settings.page)?;
        let AllocateRequest { id, align, .. } = *request;
        let allocation = LiveRegion::allocate(physical, align, self.settings, self.budget)?;
        let base = allocation.base();
        self.allocations.insert(id, allocation).map_err(|_| request::live_already(id))?;
        Ok(Allocation { id, base, bytes: physical })
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match target {
            ReleaseTarget::Region(id) => close(&self.regions, id),
            ReleaseTarget::Allocation(id) => close(&self.allocations, id),
        }
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }
}

impl VirtualBacking for HostMmap {
    fn granularity(&self) -> u64 {
        self.settings.granule
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        request::check_reserve(request, self.settings.granule)?;
        let ReserveRequest { id, bytes, align, .. } = *request;
        let region = LiveRegion::reserve(bytes, align, self.settings, self.budget)?;
        let base = region.base();
        self.regions.insert(id, region).map_err(|_| request::live_already(id))?;
        Ok(Region { id, base, bytes })
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::commit(&self.regions, ranges)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::decommit(&self.regions, ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::cost(&self.regions, ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        let found = self.regions.find(region);
        let open = found.as_ref().and_then(|found| found.open());
        open.map(|open| open.committed_bytes()).ok_or_else(|| BackingError::unknown_id(region))
    }
}

impl Drop for HostMmap {
    /// Unmaps what is live. What the kernel still holds then goes to the host's log.
    fn drop(&mut self) {
        let regions = self.regions.drain().into_iter().map(|(id, region)| (id.to_string(), region));
        let allocations = self.allocations.drain().into_iter().map(|(id, region)| (id.to_string(), region));
        for (name, region) in regions.chain(allocations) {
            let error = match region.close() {
                None | Some(ReleaseOutcome::Complete) => continue,
                Some(ReleaseOutcome::Failed(error) | ReleaseOutcome::Quarantined { error, .. }) => error,
            };
            if let Some(host) = &self.host {
                host.log(LogLevel::Error, &format!("{name} outlives its backing: {error}"));
            }
        }
    }
}

fn close<Id: Copy + Eq + Hash + Display>(table: &Table<Id, LiveRegion>, id: Id) -> ReleaseOutcome {
    match table.find(id).and_then(|region| region.close()) {
        None => ReleaseOutcome::Failed(BackingError::unknown_id(id)),
        Some(ReleaseOutcome::Complete) => {
            table.remove(id);
            ReleaseOutcome::Complete
        }
        Some(outcome) => outcome,
    }
}
