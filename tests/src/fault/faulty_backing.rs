//! The backing that [`Faults`] steers: each call is counted, failed where that was planned, and else passed on.

use super::{Books, Call, Committed, Fault, Faults, HostMemory};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Description, Domain,
    ErrorKind, MemoryRole, Prefix, PrefixId, PrefixMapping, PrefixRequest, Region, RegionId, ReleaseOutcome,
    ReleaseTarget, ReserveRequest, SharedMapping, Transfer, VirtualBacking,
};

/// A backing that counts calls, fails those that were planned, and passes the others on.
pub struct FaultyBacking {
    inner: Box<dyn Backing>,
    faults: Faults,
    books: Books,
}

impl std::fmt::Debug for FaultyBacking {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FaultyBacking").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl FaultyBacking {
    /// Wraps a backing.
    #[must_use]
    pub fn new(inner: impl Into<HostMemory>, faults: &Faults, books: Books) -> Self {
        Self { inner: inner.into().into_backing(), faults: faults.clone(), books }
    }

    /// Counts a call, and answers its fault where one was planned. Only `HalfWay` is left to the caller.
    fn pass(&self, call: Call) -> Result<Option<BackingError>, BackingError> {
        strike(call, self.faults.next(call))
    }

    fn pass_whole(&self, call: Call) -> Result<(), BackingError> {
        self.pass(call)?.map_or(Ok(()), Err)
    }

    /// Counts a call that makes something, and makes it. Where that is to be denied, it is made and the answer a failure.
    fn make<T>(&self, call: Call, make: impl FnOnce() -> Result<T, BackingError>) -> Result<T, BackingError> {
        let fault = self.faults.next(call);
        if let Some(Fault::Denied(kind)) = fault {
            make()?;
            return Err(planned(call, kind));
        }
        strike(call, fault)?.map_or_else(make, Err)
    }

    fn growable(&self) -> &dyn VirtualBacking {
        self.inner.as_virtual_backing().expect("only reached where it is offered")
    }

    fn sharing(&self) -> &dyn SharedMapping {
        self.inner.as_shared_mapping().expect("only reached where it is offered")
    }

    fn charge(&self, bytes: u64) -> Result<(), BackingError> {
        match self.books {
            Books::OfItsHost(services) => services.charge(Domain::Host, bytes, MemoryRole::KvCache),
            Books::OfTheBuffers | Books::Elsewhere(_) | Books::OfTheWrapped => Ok(()),
        }
    }

    fn refund(&self, bytes: u64) {
        if let Books::OfItsHost(services) = self.books {
            services.refund(Domain::Host, bytes).expect("it was charged");
        }
    }

    fn take_away(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let change = self.growable().decommit(ranges)?;
        self.faults.note_decommit(ranges);
        self.refund(change.owned_bytes);
        Ok(change)
    }

    /// Takes the upper half of a region away, and says what is left.
    fn release_half(&self, target: ReleaseTarget) -> u64 {
        let Committed { begin, bytes } = self.faults.committed_of(target);
        let ReleaseTarget::Region(id) = target else { return bytes };
        let half = half_of(&[CommitRange::new(id, begin, bytes)], self.growable().granularity());
        if !half.is_empty() {
            self.take_away(&half).expect("what is committed can be decommitted");
        }
        self.faults.committed_of(target).bytes
    }
}

fn strike(call: Call, fault: Option<Fault>) -> Result<Option<BackingError>, BackingError> {
    match fault {
        None => Ok(None),
        Some(Fault::Refuse(kind) | Fault::Denied(kind)) => Err(planned(call, kind)),
        Some(Fault::HalfWay(kind)) => Ok(Some(planned(call, kind))),
        Some(Fault::Panic) => panic!("{call:?} panics as planned"),
    }
}

fn planned(call: Call, kind: ErrorKind) -> BackingError {
    BackingError::new(kind, format!("{call:?} fails as planned")).with_native_code(12)
}

/// The upper half of every other range, and the whole of the others: regions are left with prefixes that differ.
fn half_of(ranges: &[CommitRange], granule: u64) -> Vec<CommitRange> {
    let gone = |(index, range): (usize, &CommitRange)| {
        let bytes = if index % 2 == 0 { range.bytes / granule / 2 * granule } else { range.bytes };
        (bytes > 0).then(|| CommitRange::new(range.region(), range.offset + range.bytes - bytes, bytes))
    };
    ranges.iter().enumerate().filter_map(gone).collect()
}

impl Backing for FaultyBacking {
    fn describe(&self) -> Description {
        let _ = self.faults.next(Call::Describe);
        self.inner.describe()
    }

    fn accounting(&self) -> Accounting {
        let _ = self.faults.next(Call::Accounting);
        match self.books {
            Books::OfTheBuffers => Accounting::Buffer,
            Books::OfItsHost(services) => {
                Accounting::Backing { authority: services.authority(Domain::Host).expect("the host keeps books") }
            }
            Books::Elsewhere(authority) => Accounting::Backing { authority },
            Books::OfTheWrapped => self.inner.accounting(),
        }
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let made = self.make(Call::Allocate, || self.inner.allocate(request))?;
        if let Err(refusal) = self.charge(made.bytes) {
            let _ = self.inner.release(ReleaseTarget::Allocation(made.id));
            return Err(refusal);
        }
        self.faults.hand_out(ReleaseTarget::Allocation(made.id), made.base, made.bytes, made.bytes);
        Ok(made)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match self.pass(Call::Release) {
            Ok(None) => {}
            Ok(Some(error)) => {
                return ReleaseOutcome::Quarantined { remaining_bytes: self.release_half(target), error };
            }
            Err(error) => return ReleaseOutcome::Failed(error),
        }
        let outcome = self.inner.release(target);
        if outcome == ReleaseOutcome::Complete {
            self.refund(self.faults.forget(target));
        }
        outcome
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        self.pass_whole(Call::Trim)?;
        let given_up = self.inner.trim(bytes)?;
        self.refund(given_up);
        Ok(given_up)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.inner.as_virtual_backing().map(|_| self as &dyn VirtualBacking)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        self.inner.as_shared_mapping().map(|_| self as &dyn SharedMapping)
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        self.inner.as_transfer()
    }
}

impl VirtualBacking for FaultyBacking {
    fn granularity(&self) -> u64 {
        let _ = self.faults.next(Call::Granularity);
        self.growable().granularity()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.pass_whole(Call::Reserve)?;
        let region = self.growable().reserve(request)?;
        self.faults.hand_out(ReleaseTarget::Region(region.id), region.base, region.bytes, 0);
        Ok(region)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.pass_whole(Call::Commit)?;
        let cost = self.growable().cost(ranges)?;
        self.charge(cost.owned_bytes)?;
        let change = self.growable().commit(ranges).inspect_err(|_| self.refund(cost.owned_bytes))?;
        self.faults.note_commit(ranges);
        Ok(change)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let Some(error) = self.pass(Call::Decommit)? else { return self.take_away(ranges) };
        let half = half_of(ranges, self.growable().granularity());
        if !half.is_empty() {
            self.take_away(&half)?;
        }
        Err(error)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.pass_whole(Call::Cost)?;
        self.growable().cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.pass_whole(Call::CommittedBytes)?;
        self.growable().committed_bytes(region)
    }
}

impl SharedMapping for FaultyBacking {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        let made = self.make(Call::CreatePrefix, || self.sharing().create_prefix(request))?;
        self.faults.lock().prefixes.insert(made.id, made.bytes);
        Ok(made)
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        self.pass_whole(Call::Seal)?;
        self.sharing().seal(prefix)
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        self.pass_whole(Call::IncrementalOwnedBytes)?;
        self.sharing().incremental_owned_bytes(prefix)
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.pass_whole(Call::MapPrefix)?;
        self.sharing().map_prefix(mappings)
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.pass_whole(Call::Unmap)?;
        self.sharing().unmap(mappings)
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        match self.pass(Call::ReleasePrefix) {
            Ok(None) => {}
            Ok(Some(error)) => return ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, error },
            Err(error) => return ReleaseOutcome::Failed(error),
        }
        let outcome = self.sharing().release_prefix(prefix);
        if outcome == ReleaseOutcome::Complete {
            self.faults.lock().prefixes.remove(&prefix);
        }
        outcome
    }
}
