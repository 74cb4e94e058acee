//! The backing: answers the contract from the tables of live regions, allocations and prefixes.
//!
//! It owns the tables and the pool; whatever is still live in them is unmapped when it is dropped. Requests are checked
//! here, ranges in `region.rs`, calls over many regions in `transaction.rs` and `sharing.rs`. Every method may be
//! called from any thread, and from within a charge that the pool makes.

use crate::options::HostPoolOptions;
use crate::pool::Pool;
use crate::prefix::LivePrefix;
use crate::region::{LiveRegion, Purpose};
use crate::store::Store;
use crate::supply::Returns;
use crate::treasury::Treasury;
use crate::{sharing, transaction, window};
use leasehold_host_memory::{MapBudget, sys};
use leasehold_plugin_api::toolkit::{Lockable, Table, request};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, AllocationId, Backing, BackingError, BackingFactory, Change, CommitRange,
    Description, DeviceKey, Domain, ErrorKind, HolderId, HostAccess, HostServices, Prefix, PrefixId, PrefixMapping,
    PrefixRequest, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, VirtualBacking,
};
use std::fmt::Display;
use std::hash::Hash;

/// Memory of the host from a pool: charged when it is taken, kept for the next taker, mapped into many regions at once.
#[derive(Debug)]
pub struct HostPool {
    pub(crate) pool: Pool,
    accounting: Accounting,
    /// Read once: a description never changes, even where memory is plugged in later.
    total_bytes: u64,
    budget: &'static MapBudget,
    regions: Table<RegionId, LiveRegion>,
    allocations: Table<AllocationId, LiveRegion>,
    prefixes: Table<PrefixId, LivePrefix>,
}

impl HostPool {
    /// A pool that has no host and charges nobody. It parks, so it is no backing for a host that keeps its books.
    #[cfg(test)]
    pub(crate) fn new(options: &HostPoolOptions) -> Result<Self, BackingError> {
        Self::with_books(options, Box::new(crate::treasury::Unlimited), Accounting::Buffer)
    }

    fn with_books(
        options: &HostPoolOptions,
        books: Box<dyn Treasury>,
        accounting: Accounting,
    ) -> Result<Self, BackingError> {
        let settings = options.resolve(sys::page_bytes())?;
        let pool = Pool::new(settings, Store::new(settings.granule)?, books)?;
        Ok(Self::over(pool, accounting, MapBudget::of_library()))
    }

    pub(crate) fn over(pool: Pool, accounting: Accounting, budget: &'static MapBudget) -> Self {
        let (regions, allocations, prefixes) = (Table::new(), Table::new(), Table::new());
        Self { pool, accounting, total_bytes: sys::total_bytes(), budget, regions, allocations, prefixes }
    }

    /// Commits the whole of a region that nobody knows yet. Where that fails, the region is closed.
    fn fill(&self, region: &LiveRegion) -> Result<(), BackingError> {
        let need = region.whole_need();
        let mut supply = self.pool.obtain(&[need])?;
        let mut returns = Returns::default();
        let pieces = supply.parts.first_mut();
        let outcome = match (region.open(), pieces) {
            (Some(mut open), Some(pieces)) => open.commit_granules(&(0..need.frames), pieces, &self.pool, &mut returns),
            _ => Err(BackingError::new(ErrorKind::Internal, "an allocation has no frames, or is closed; report it")),
        };
        if outcome.is_ok() {
            supply.keep();
        } else {
            region.close(&self.pool, &mut returns);
            drop(supply);
        }
        self.pool.settle(returns);
        outcome
    }

    fn close<Id: Copy + Eq + Hash + Display>(&self, table: &Table<Id, LiveRegion>, id: Id) -> ReleaseOutcome {
        let mut returns = Returns::default();
        let outcome = table.find(id).and_then(|region| region.close(&self.pool, &mut returns));
        self.finish(table, id, outcome, returns)
    }

    /// Ends an identity whose release is complete, and settles what came back.
    fn finish<Id: Copy + Eq + Hash + Display, T>(
        &self,
        table: &Table<Id, T>,
        id: Id,
        outcome: Option<ReleaseOutcome>,
        returns: Returns,
    ) -> ReleaseOutcome {
        let outcome = outcome.unwrap_or_else(|| ReleaseOutcome::Failed(BackingError::unknown_id(id)));
        if outcome == ReleaseOutcome::Complete {
            table.remove(id);
        }
        self.pool.settle(returns);
        outcome
    }
}

impl BackingFactory for HostPool {
    const NAME: &'static str = "host-pool";
    const SUMMARY: &'static str = "host memory from a pool: recycled without page faults, one prefix in many regions";
    const HOST_ACCESS: HostAccess<Self> = window::host_access();
    type Options = HostPoolOptions;

    fn create(options: HostPoolOptions, host: HostServices) -> Result<Self, BackingError> {
        let authority = host.authority(Domain::Host)?;
        Self::with_books(&options, Box::new(host), Accounting::Backing { authority })
    }
}

impl Backing for HostPool {
    fn describe(&self) -> Description {
        Description::new(DeviceKey::HOST, "host memory").with_total_bytes(self.total_bytes)
    }

    fn accounting(&self) -> Accounting {
        self.accounting
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let bytes = request::physical_bytes(request, self.granularity())?;
        let AllocateRequest { id, align, role, .. } = *request;
        if self.allocations.find(id).is_some() {
            return Err(request::live_already(id));
        }
        // For no holder: a plain allocation reads as zero, whoever left something in its frames.
        let purpose = Purpose { holder: HolderId::NOBODY, role };
        let allocation = LiveRegion::reserve(bytes, align, purpose, self.granularity(), self.budget)?;
        self.fill(&allocation)?;
        let base = allocation.base;
        self.allocations.insert(id, allocation).map_err(|second| {
            let mut returns = Returns::default();
            second.close(&self.pool, &mut returns);
            self.pool.settle(returns);
            request::live_already(id)
        })?;
        Ok(Allocation { id, base, bytes })
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match target {
            ReleaseTarget::Region(id) => {
                self.pool.end_headroom(id);
                self.close(&self.regions, id)
            }
            ReleaseTarget::Allocation(id) => self.close(&self.allocations, id),
        }
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        self.pool.trim(bytes)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        Some(self)
    }
}

impl VirtualBacking for HostPool {
    fn granularity(&self) -> u64 {
        self.pool.settings.granule
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        request::check_reserve(request, self.granularity())?;
        let ReserveRequest { id, bytes, align, role, holder } = *request;
        let region = LiveRegion::reserve(bytes, align, Purpose { holder, role }, self.granularity(), self.budget)?;
        let base = region.base;
        self.regions.insert(id, region).map_err(|_| request::live_already(id))?;
        Ok(Region { id, base, bytes })
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::commit(&self.pool, &self.regions, ranges)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::decommit(&self.pool, &self.regions, ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        transaction::cost(&self.pool, &self.regions, ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        let found = self.regions.find(region);
        let open = found.as_ref().and_then(|found| found.open());
        open.map(|open| open.committed_bytes()).ok_or_else(|| BackingError::unknown_id(region))
    }
}

impl SharedMapping for HostPool {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        let PrefixRequest { id, bytes, .. } = *request;
        request::check_granules(id, bytes, self.granularity())?;
        if self.prefixes.find(id).is_some() {
            return Err(request::live_already(id));
        }
        let (prefix, owned_bytes) = LivePrefix::create(&self.pool, request, self.budget)?;
        let window = prefix.window;
        self.prefixes.insert(id, prefix).map_err(|second| {
            let mut returns = Returns::default();
            second.close(&mut returns);
            self.pool.settle(returns);
            request::live_already(id)
        })?;
        Ok(Prefix { id, window, bytes, owned_bytes })
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        sharing::find(&self.prefixes, prefix)?.seal(prefix, &self.pool)
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        sharing::find(&self.prefixes, prefix).map(|_| 0)
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        sharing::map(&self.pool, &self.regions, &self.prefixes, mappings)
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        sharing::unmap(&self.pool, &self.regions, mappings)
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        let mut returns = Returns::default();
        let outcome = self.prefixes.find(prefix).and_then(|live| live.close(&mut returns));
        self.finish(&self.prefixes, prefix, outcome, returns)
    }
}

impl Drop for HostPool {
    /// Unmaps what is live, and tells the host what the kernel still holds then. The charges end with the backing: the
    /// host closes its account.
    fn drop(&mut self) {
        let Self { pool, regions, allocations, prefixes, .. } = self;
        let mut returns = Returns::default();
        let mut held: Vec<(String, Option<ReleaseOutcome>)> = Vec::new();
        for (id, region) in regions.drain() {
            held.push((id.to_string(), region.close(pool, &mut returns)));
        }
        for (id, allocation) in allocations.drain() {
            held.push((id.to_string(), allocation.close(pool, &mut returns)));
        }
        for (id, prefix) in prefixes.drain() {
            held.push((id.to_string(), prefix.close(&mut returns)));
        }
        for (name, outcome) in held {
            if let Some(ReleaseOutcome::Failed(error) | ReleaseOutcome::Quarantined { error, .. }) = outcome {
                pool.report(&format!("{name} outlives its backing: {error}"));
            }
        }
    }
}
