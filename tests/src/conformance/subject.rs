//! A backing under examination: numbers for what is made of it, and what is to be given back.

use super::{Check, ensure};
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, AllocationId, Backing, BackingError, Change, CommitRange,
    DeviceKey, ErrorKind, HolderId, MemoryRole, Prefix, PrefixId, PrefixMapping, PrefixRange, PrefixRequest, Region,
    RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, VirtualBacking,
};
use std::cell::RefCell;
use std::fmt::{Debug, Display};
use std::sync::atomic::{AtomicU64, Ordering};

/// Far from the numbers that a host counts up.
static NEXT_ID: AtomicU64 = AtomicU64::new(1 << 40);

/// The holder of things where it does not matter whose they are.
pub(super) const SOMEBODY: HolderId = HolderId::new(1001);
/// Another one.
pub(super) const SOMEBODY_ELSE: HolderId = HolderId::new(1002);

/// What a refused id answers.
pub(super) const UNKNOWN: &[ErrorKind] = &[ErrorKind::UnknownId];
/// What a prefix answers that is not live here.
pub(super) const NOT_OURS: &[ErrorKind] = &[ErrorKind::UnknownId, ErrorKind::Foreign];
/// What a request answers that is wrong in itself.
pub(super) const INVALID: &[ErrorKind] = &[ErrorKind::InvalidRequest];
/// What a request answers for more than there could be.
pub(super) const TOO_MUCH: &[ErrorKind] =
    &[ErrorKind::OutOfMemory, ErrorKind::AddressSpaceExhausted, ErrorKind::BudgetRefused, ErrorKind::InvalidRequest];

/// What was made, and is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Memory(ReleaseTarget),
    Prefix(PrefixId),
}

/// A backing under examination.
pub(super) struct Subject<'b> {
    pub(super) backing: &'b dyn Backing,
    /// The unit of commit; where nothing is committed, a size that is whole for every backing.
    pub(super) granule: u64,
    accounting: Accounting,
    is_direct: bool,
    made: RefCell<Vec<Made>>,
}

impl<'b> Subject<'b> {
    pub(super) fn new(backing: &'b dyn Backing) -> Self {
        let granule = backing.as_virtual_backing().map_or(2 << 20, VirtualBacking::granularity);
        let is_direct = is_direct(backing);
        Self { backing, granule, accounting: backing.accounting(), is_direct, made: RefCell::default() }
    }

    /// A number that nothing ever had.
    pub(super) fn id(&self) -> u64 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Only called where it is offered.
    pub(super) fn growing(&self) -> Result<&'b dyn VirtualBacking, String> {
        self.backing.as_virtual_backing().ok_or_else(|| "it no longer offers virtual-backing".to_owned())
    }

    /// Only called where it is offered.
    pub(super) fn sharing(&self) -> Result<&'b dyn SharedMapping, String> {
        self.backing.as_shared_mapping().ok_or_else(|| "it no longer offers shared-mapping".to_owned())
    }

    /// Whether some of the memory may have been parked before: so it is with a backing that pays for itself.
    pub(super) fn may_park(&self) -> bool {
        matches!(self.accounting, Accounting::Backing { .. })
    }

    /// The change is so many bytes mapped, and as many owned; fewer where it may park.
    pub(super) fn ensure_exact(&self, what: &str, change: Change, bytes: u64) -> Check {
        let Change { mapped_bytes, owned_bytes } = change;
        let is_owned = owned_bytes == bytes || (self.may_park() && owned_bytes < bytes);
        ensure!(mapped_bytes == bytes && is_owned, "{what} answered {change:?}, wanted {bytes} bytes of each");
        Ok(())
    }

    pub(super) fn allocation_request(&self, bytes: u64, align: u64) -> AllocateRequest {
        let id = AllocationId::new(self.id());
        AllocateRequest { id, bytes, align, role: MemoryRole::Weights, holder: SOMEBODY }
    }

    pub(super) fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let made = self.backing.allocate(request)?;
        self.made.borrow_mut().push(Made::Memory(ReleaseTarget::Allocation(request.id)));
        Ok(made)
    }

    pub(super) fn reserve_request(&self, granules: u64) -> ReserveRequest {
        let (id, bytes) = (RegionId::new(self.id()), granules * self.granule);
        ReserveRequest { id, bytes, align: self.granule, role: MemoryRole::KvCache, holder: SOMEBODY }
    }

    pub(super) fn reserve(&self, request: &ReserveRequest) -> Result<Region, String> {
        let made = self.growing()?.reserve(request).map_err(|error| format!("{request:?} is refused: {error}"))?;
        self.made.borrow_mut().push(Made::Memory(ReleaseTarget::Region(request.id)));
        Ok(made)
    }

    /// A region of so many granules.
    pub(super) fn region(&self, granules: u64) -> Result<Region, String> {
        self.reserve(&self.reserve_request(granules))
    }

    /// A region of so many granules, all committed.
    pub(super) fn committed_region(&self, granules: u64) -> Result<Region, String> {
        let region = self.region(granules)?;
        self.commit(&[self.range(&region, 0, granules)])?;
        Ok(region)
    }

    /// Granules of a region.
    pub(super) fn range(&self, region: &Region, first: u64, granules: u64) -> CommitRange {
        CommitRange::new(region.id, first * self.granule, granules * self.granule)
    }

    /// Where a granule of a region begins.
    pub(super) fn at(&self, base: Address, granule: u64) -> Address {
        base.checked_add(granule * self.granule).unwrap_or(base)
    }

    pub(super) fn commit(&self, ranges: &[CommitRange]) -> Check {
        self.growing()?.commit(ranges).map(|_| ()).map_err(|error| format!("a commit of {ranges:?} fails: {error}"))
    }

    pub(super) fn decommit(&self, ranges: &[CommitRange]) -> Check {
        self.growing()?.decommit(ranges).map(|_| ()).map_err(|error| format!("a decommit of {ranges:?} fails: {error}"))
    }

    /// A region has so many granules committed.
    pub(super) fn ensure_committed(&self, region: &Region, granules: u64, when: &str) -> Check {
        let seen = self.growing()?.committed_bytes(region.id).map_err(|error| format!("{when}: {error}"))?;
        let wanted = granules * self.granule;
        ensure!(seen == wanted, "{when}: {} has {seen} bytes committed, wanted {wanted}", region.id);
        Ok(())
    }

    pub(super) fn prefix_request(&self, granules: u64) -> PrefixRequest {
        PrefixRequest {
            id: PrefixId::new(self.id()),
            bytes: granules * self.granule,
            role: MemoryRole::KvCache,
            holder: SOMEBODY,
        }
    }

    pub(super) fn create(&self, request: &PrefixRequest) -> Result<Prefix, String> {
        let made =
            self.sharing()?.create_prefix(request).map_err(|error| format!("{request:?} is refused: {error}"))?;
        self.made.borrow_mut().push(Made::Prefix(request.id));
        Ok(made)
    }

    /// A prefix of so many granules.
    pub(super) fn prefix(&self, granules: u64) -> Result<Prefix, String> {
        self.create(&self.prefix_request(granules))
    }

    pub(super) fn seal(&self, prefix: &Prefix) -> Check {
        self.sharing()?.seal(prefix.id).map_err(|error| format!("{} can't be sealed: {error}", prefix.id))
    }

    /// A sealed prefix of so many granules.
    pub(super) fn sealed(&self, granules: u64) -> Result<Prefix, String> {
        let prefix = self.prefix(granules)?;
        self.seal(&prefix)?;
        Ok(prefix)
    }

    /// Granules of a prefix, mapped into a region from a granule on.
    pub(super) fn mapping(&self, source: (&Prefix, u64, u64), region: &Region, first: u64) -> PrefixMapping {
        let (prefix, from, granules) = source;
        let range = PrefixRange::new(prefix.id, from * self.granule, granules * self.granule);
        PrefixMapping::new(range, region.id, first * self.granule)
    }

    pub(super) fn map(&self, mappings: &[PrefixMapping]) -> Check {
        let mapped = self.sharing()?.map_prefix(mappings);
        mapped.map(|_| ()).map_err(|error| format!("a mapping of {mappings:?} fails: {error}"))
    }

    pub(super) fn unmap(&self, mappings: &[PrefixMapping]) -> Check {
        let unmapped = self.sharing()?.unmap(mappings);
        unmapped.map(|_| ()).map_err(|error| format!("an unmapping of {mappings:?} fails: {error}"))
    }

    /// Releases what was made, and forgets it.
    pub(super) fn release(&self, target: ReleaseTarget) -> Check {
        self.made.borrow_mut().retain(|made| *made != Made::Memory(target));
        ensure_complete(&format!("the release of {target:?}"), &self.backing.release(target))
    }

    pub(super) fn release_prefix(&self, prefix: PrefixId) -> Check {
        self.made.borrow_mut().retain(|made| *made != Made::Prefix(prefix));
        ensure_complete(&format!("the release of {prefix}"), &self.sharing()?.release_prefix(prefix))
    }

    /// Gives back what a case left, and what is parked.
    pub(super) fn give_everything_back(&self) -> Check {
        for made in self.made.take().into_iter().rev() {
            match made {
                Made::Memory(target) => self.release(target)?,
                Made::Prefix(prefix) => self.release_prefix(prefix)?,
            }
        }
        self.backing.trim(u64::MAX).map(|_| ()).map_err(|error| format!("trimming fails: {error}"))
    }
}

/// Whether its addresses are read and written as those of this process: nothing is claimed of a backing that is called
/// directly, and `/proc/self/mem` needs no claim.
pub(super) fn is_direct(backing: &dyn Backing) -> bool {
    backing.describe().device == DeviceKey::HOST
}

/// A release is complete.
fn ensure_complete(what: &str, outcome: &ReleaseOutcome) -> Check {
    ensure!(*outcome == ReleaseOutcome::Complete, "{what} is not complete: {outcome:?}");
    Ok(())
}

/// A release failed for one of these reasons.
pub(super) fn ensure_unreleased(what: &str, outcome: ReleaseOutcome, kinds: &[ErrorKind]) -> Check {
    match outcome {
        ReleaseOutcome::Failed(error) => ensure_refused(what, Err::<(), _>(error), kinds),
        other => Err(format!("{what} is {other:?}, wanted a failure")),
    }
}

/// A call is refused for one of these reasons.
pub(super) fn ensure_refused<T: Debug>(
    what: impl Display,
    outcome: Result<T, BackingError>,
    kinds: &[ErrorKind],
) -> Check {
    match outcome {
        Ok(answer) => Err(format!("{what} is granted: {answer:?}; wanted {kinds:?}")),
        Err(error) if kinds.contains(&error.kind()) => Ok(()),
        Err(error) => Err(format!("{what} is refused as {:?} ({error}); wanted {kinds:?}", error.kind())),
    }
}
