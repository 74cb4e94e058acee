//! All regions of one backing on one device, over one source of handles.

use crate::broken::broken_off;
use crate::options::DeviceSetting;
use crate::prefix::LivePrefix;
use crate::region::{Region, Returns, Uncopied, Wanted, Wish};
use crate::source::{Returned, Source, Supply};
use leasehold_cuda_driver::{Device, Fault, Reservation};
use leasehold_plugin_api::toolkit::{Lockable, LockedParts, Table, request};
use leasehold_plugin_api::{
    self as api, Address, AllocateRequest, Allocation, AllocationId, BackingError, CommitRange, ErrorKind, HolderId,
    HostServices, LogLevel, PrefixId, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All regions of one backing. It owns them: what is live when it is dropped is unmapped and given back.
#[derive(Debug)]
pub struct DeviceRegions {
    setting: DeviceSetting,
    source: Box<dyn Source>,
    host: HostServices,
    /// Whether sealing found that the device maps nothing read-only.
    pub(crate) is_writable_always: AtomicBool,
    regions: Table<RegionId, Region>,
    allocations: Table<AllocationId, Region>,
    pub(crate) prefixes: Table<PrefixId, LivePrefix>,
}

impl DeviceRegions {
    /// No regions yet. `host` is told what outlives them.
    #[must_use]
    pub fn new(setting: DeviceSetting, source: Box<dyn Source>, host: HostServices) -> Self {
        let (regions, allocations, prefixes) = (Table::new(), Table::new(), Table::new());
        let is_writable_always = AtomicBool::new(false);
        Self { setting, is_writable_always, source, host, regions, allocations, prefixes }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.setting.device
    }

    /// The unit of commit in bytes: one handle.
    pub(crate) fn granule(&self) -> u64 {
        self.setting.granule
    }

    /// Whole granules in that many bytes.
    pub(crate) fn granules(&self, bytes: u64) -> u64 {
        bytes.checked_div(self.granule()).unwrap_or(0)
    }

    pub(crate) fn table(&self) -> &Table<RegionId, Region> {
        &self.regions
    }

    /// What the device is called.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.setting.name
    }

    /// All memory of the device, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.setting.total_bytes
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Takes address space.
    pub(crate) fn reserve(&self, request: &ReserveRequest) -> Result<api::Region, BackingError> {
        request::check_reserve(request, self.granule())?;
        let ReserveRequest { id, bytes, align, role, holder } = *request;
        let region = self.reserve_region(Wanted { bytes, align, holder, role })?;
        let base = region.base();
        self.regions.insert(id, region).map_err(|_| request::live_already(id))?;
        Ok(api::Region { id, base, bytes })
    }

    pub(crate) fn reserve_region(&self, wanted: Wanted) -> Result<Region, BackingError> {
        Region::reserve(&self.setting, self.source.handle_release(), wanted)
    }

    /// Hands out memory that is committed as a whole, in whole granules, and reads as zero.
    ///
    /// # Errors
    ///
    /// As [`Backing::allocate`](leasehold_plugin_api::Backing::allocate).
    pub fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let bytes = request::physical_bytes(request, self.granule())?;
        let AllocateRequest { id, align, role, .. } = *request;
        if self.allocations.find(id).is_some() {
            return Err(request::live_already(id));
        }
        // For no holder: an allocation must show what nobody left, not even its own holder.
        let holder = HolderId::NOBODY;
        let region = self.reserve_region(Wanted { bytes, align: align.max(self.granule()), holder, role })?;
        let base = region.base();
        let filled = self.fill_region(&region, bytes);
        if let Err(Unfilled::Gone(error)) = filled {
            return Err(error);
        }
        // What is left of a failure is found by its id, to be released.
        if let Err(region) = self.allocations.insert(id, region) {
            self.close(&region);
            return Err(request::live_already(id));
        }
        filled.map(|_| Allocation { id, base, bytes }).map_err(Unfilled::into_error)
    }

    /// Commits all of a region that nobody else knows yet. Answers the bytes that are newly owned.
    pub(crate) fn fill_region(&self, region: &Region, bytes: u64) -> Result<u64, Unfilled> {
        let (mut supply, mut returns) = (Supply::default(), Returns::default());
        let need = region.need(self.granules(bytes));
        // No error names the part: an allocation or a prefix has no number as a region.
        let parts = [CommitRange::new(RegionId::new(0), 0, bytes)];
        let outcome = self.source.obtain(&[need], &mut supply).and_then(|()| {
            let open = region.open().ok_or_else(|| BackingError::new(ErrorKind::Internal, "a new region is closed"))?;
            self.commit_or_undo(&mut LockedParts::of_one(open, &parts), &mut supply.parts, &mut returns)
        });
        let ended = self.end_commit(outcome, supply, returns, |_, debts| region.keep(debts));
        ended.map_err(|error| match self.close(region) {
            Some(ReleaseOutcome::Quarantined { error: held, .. } | ReleaseOutcome::Failed(held)) => {
                let message = format!("{}; {}", error.message(), held.message());
                let left = BackingError::new(broken_off(error.kind(), held.kind()), message);
                let code = error.native_code().or(held.native_code());
                Unfilled::Left(code.map_or(left.clone(), |code| left.with_native_code(code)))
            }
            Some(ReleaseOutcome::Complete) | None => Unfilled::Gone(error),
        })
    }

    /// The one terminal release of regions and allocations: as
    /// [`Backing::release`](leasehold_plugin_api::Backing::release).
    pub fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        let (region, unknown) = match target {
            ReleaseTarget::Region(id) => (self.regions.find(id), BackingError::unknown_id(id)),
            ReleaseTarget::Allocation(id) => (self.allocations.find(id), BackingError::unknown_id(id)),
        };
        let Some(outcome) = region.and_then(|region| self.close(&region)) else {
            return ReleaseOutcome::Failed(unknown);
        };
        if outcome == ReleaseOutcome::Complete {
            match target {
                ReleaseTarget::Region(id) => self.regions.remove(id),
                ReleaseTarget::Allocation(id) => self.allocations.remove(id),
            }
        }
        outcome
    }

    pub(crate) fn close(&self, region: &Region) -> Option<ReleaseOutcome> {
        let bound = self.device().bind();
        let mut returns = Returns::default();
        let outcome = region.close(&mut returns);
        drop(bound);
        self.settle(returns);
        outcome
    }

    /// Logs a release that is not complete, where nobody can try it again.
    fn report(&self, name: &str, outcome: Option<ReleaseOutcome>) {
        if let Some(ReleaseOutcome::Failed(error) | ReleaseOutcome::Quarantined { error, .. }) = outcome {
            self.host.log(LogLevel::Error, &format!("{name} outlives its backing: {error}"));
        }
    }

    /// Hands back to the source what a call took out of regions. The caller holds no lock. Answers the bytes that are
    /// owned no longer.
    pub(crate) fn settle(&self, returns: Returns) -> u64 {
        let Returns { handles: mut returned, memories } = returns;
        let last = memories.into_iter().filter_map(Arc::into_inner);
        returned.extend(last.flat_map(Returned::of_prefix));
        if returned.is_empty() { 0 } else { self.source.take_back(returned) }
    }

    /// Copies device memory out.
    pub(crate) fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError> {
        let bytes = u64::try_from(into.len()).unwrap_or(u64::MAX);
        self.copy(from, bytes, Wish::Read, |space, offset| space.span(offset, bytes)?.read(into))
    }

    /// Copies device memory in.
    pub(crate) fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.copy(to, length, Wish::Write, |space, offset| space.span(offset, length)?.write(bytes))
    }

    /// Sets device memory.
    pub(crate) fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError> {
        self.copy(to, bytes, Wish::Write, |space, offset| space.span(offset, bytes)?.fill(value))
    }

    /// Copies or fills some bytes of whichever region has them. No lock but the region's is held meanwhile.
    fn copy(
        &self,
        address: Address,
        bytes: u64,
        wish: Wish,
        act: impl FnOnce(&Reservation, u64) -> Result<(), Fault>,
    ) -> Result<(), BackingError> {
        if bytes == 0 {
            return Ok(());
        }
        let holds = |region: &Region| region.offset_of(address, bytes).is_some();
        // A region that was released may still be in the table, and another one may have its addresses by now.
        let regions = self.regions.all_where(holds).into_iter().chain(self.allocations.all_where(holds));
        if let Some(region) = regions.into_iter().find(|region| region.has_space()) {
            return copy_in_region(&region, address, bytes, wish, act);
        }
        let prefixes = self.prefixes.all_where(|prefix| holds(&prefix.window));
        let prefix = prefixes.into_iter().find(|prefix| prefix.window.has_space());
        copy_in_region(&prefix.ok_or_else(|| nowhere(address, bytes))?.window, address, bytes, wish, act)
    }
}

/// A region that could not be filled.
#[derive(Debug)]
pub(crate) enum Unfilled {
    /// It is closed, and nothing of it is left.
    Gone(BackingError),
    /// Something of it is left: it can only be released.
    Left(BackingError),
}

impl Unfilled {
    pub(crate) fn into_error(self) -> BackingError {
        match self {
            Self::Gone(error) | Self::Left(error) => error,
        }
    }
}

fn copy_in_region(
    region: &Region,
    address: Address,
    bytes: u64,
    wish: Wish,
    act: impl FnOnce(&Reservation, u64) -> Result<(), Fault>,
) -> Result<(), BackingError> {
    let offset = region.offset_of(address, bytes).ok_or_else(|| nowhere(address, bytes))?;
    let outcome = region.copy((offset, bytes), wish, |space| act(space, offset));
    let refuse = |kind, why: &str| BackingError::new(kind, format!("{bytes} bytes at {address} not copied: {why}"));
    outcome.ok_or_else(|| nowhere(address, bytes))?.map_err(|uncopied| match uncopied {
        Uncopied::NotCommitted => refuse(ErrorKind::NotCommitted, "not all are committed; name bytes that are"),
        Uncopied::Sealed => refuse(ErrorKind::WrongState, "some are sealed, or may be; write only to what is not"),
        Uncopied::Failed(fault) => {
            let what = format!("{bytes} bytes at {address} not copied, or not all of them");
            fault.into_error(what, fault.advice())
        }
    })
}

fn nowhere(address: Address, bytes: u64) -> BackingError {
    BackingError::invalid(format!("{bytes} bytes at {address} not copied: they lie in no region; name committed bytes"))
}

impl Drop for DeviceRegions {
    /// Gives back what is live, and tells the host what the driver still holds then.
    fn drop(&mut self) {
        let regions = self.regions.drain().into_iter().map(|(id, region)| (id.to_string(), region));
        let allocations = self.allocations.drain().into_iter().map(|(id, region)| (id.to_string(), region));
        let live: Vec<_> = regions.chain(allocations).collect();
        for (name, region) in live {
            self.report(&name, self.close(&region));
        }
        for (id, prefix) in self.prefixes.drain() {
            self.report(&id.to_string(), self.close(&prefix.window));
            self.settle(prefix.take_memory());
        }
    }
}
