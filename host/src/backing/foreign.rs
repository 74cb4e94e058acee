//! Calls a loaded library through one table, and turns its capabilities' tables into the contract's traits.
//!
//! The error record of a call is taken from a slot of the thread: it is cleared by its header alone, so that a call that
//! succeeds does not pay for clearing the message. The counterpart is `plugin_side` in `leasehold-plugin-api`.
#![expect(unsafe_code, reason = "calls function pointers of a loaded library")]

use leasehold_plugin_api::abi::{
    ChangeRecord, ErrorRecord, OutcomeRecord, PrefixRecord, PrefixRequestRecord, RegionRecord, RequestRecord,
    SharedMappingTable, TransferTable, VirtualBackingTable,
};
use leasehold_plugin_api::{
    Address, BackingError, Change, CommitRange, Prefix, PrefixId, PrefixMapping, PrefixRequest, Region, RegionId,
    ReleaseOutcome, ReserveRequest, SharedMapping, Transfer, VirtualBacking,
};
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;

/// The error record of one thread. Plain data without a destructor: it is there for as long as the thread runs, its
/// thread-local destructors included.
struct ErrorSlot {
    /// Invariant 1: set while a call has the record.
    is_taken: Cell<bool>,
    record: UnsafeCell<ErrorRecord>,
}

thread_local! {
    static ERROR_SLOT: ErrorSlot =
        const { ErrorSlot { is_taken: Cell::new(false), record: UnsafeCell::new(ErrorRecord::empty()) } };
}

/// Makes a call that may fail, with the error record of this thread; a call within a call has one of its own.
#[inline]
pub(super) fn call(operation: impl FnOnce(*mut ErrorRecord) -> u32) -> Result<(), BackingError> {
    ERROR_SLOT.with(|slot| {
        if slot.is_taken.replace(true) {
            return call_within_a_call(operation);
        }
        // SAFETY: by invariant 1 no other call has the record, and the slot is this thread's alone.
        let result = call_with(unsafe { &mut *slot.record.get() }, operation);
        slot.is_taken.set(false);
        result
    })
}

#[cold]
#[inline(never)]
fn call_within_a_call(operation: impl FnOnce(*mut ErrorRecord) -> u32) -> Result<(), BackingError> {
    call_with(&mut ErrorRecord::empty(), operation)
}

#[inline]
fn call_with(record: &mut ErrorRecord, operation: impl FnOnce(*mut ErrorRecord) -> u32) -> Result<(), BackingError> {
    record.clear();
    let status = operation(&raw mut *record);
    record.answer(status)
}

/// Makes a call that may fail and writes its answer over `out`.
#[inline]
pub(super) fn ask<R>(mut out: R, operation: impl FnOnce(*mut R, *mut ErrorRecord) -> u32) -> Result<R, BackingError> {
    call(|error| operation(&raw mut out, error))?;
    Ok(out)
}

/// Makes a release: one that fails says nothing that can be relied on, so everything remains.
pub(super) fn release(operation: impl FnOnce(*mut OutcomeRecord, *mut ErrorRecord) -> u32) -> ReleaseOutcome {
    match ask(OutcomeRecord::unwritten(), operation) {
        Ok(out) => out.outcome(),
        Err(error) => ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, error },
    }
}

/// A table of a live backing of a loaded library.
#[derive(Debug)]
pub(super) struct Foreign<T: 'static> {
    /// Invariant 1: the backing's own pointer, which the table takes; the backing outlives this.
    pub(super) this: *mut c_void,
    /// Invariant 2: a table of `leasehold_plugin_api::abi`, unchanged and valid for the life of the process.
    pub(super) table: &'static T,
}

// SAFETY: by the rules of the tables their operations may be called from any thread; `this` goes to them alone.
unsafe impl<T> Send for Foreign<T> {}
// SAFETY: by the same rules, also at the same time.
unsafe impl<T> Sync for Foreign<T> {}

impl Foreign<VirtualBackingTable> {
    /// The unit of commit, or why the backing does not tell.
    pub(super) fn ask_granularity(&self) -> Result<u64, BackingError> {
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        ask(0, |out, error| unsafe { (self.table.granularity)(self.this, out, error) })
    }
}

impl VirtualBacking for Foreign<VirtualBackingTable> {
    /// Discovery asks through [`Foreign::ask_granularity`], which can fail as this can't: 0 is no granularity.
    fn granularity(&self) -> u64 {
        self.ask_granularity().unwrap_or(0)
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        let request = RequestRecord::from(request);
        ask(RegionRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.reserve)(self.this, &raw const request, out, error) }
        })
        .map(RegionRecord::region)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        ask(ChangeRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.commit)(self.this, ranges.as_ptr(), ranges.len(), out, error) }
        })
        .map(ChangeRecord::change)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        ask(ChangeRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.decommit)(self.this, ranges.as_ptr(), ranges.len(), out, error) }
        })
        .map(ChangeRecord::change)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        ask(ChangeRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.cost)(self.this, ranges.as_ptr(), ranges.len(), out, error) }
        })
        .map(ChangeRecord::change)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        ask(0, |out, error| unsafe { (self.table.committed_bytes)(self.this, region.get(), out, error) })
    }
}

impl SharedMapping for Foreign<SharedMappingTable> {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        let request = PrefixRequestRecord::from(request);
        ask(PrefixRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.create_prefix)(self.this, &raw const request, out, error) }
        })
        .map(PrefixRecord::prefix)
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        // SAFETY: invariants 1 and 2; the error record is ours for the call.
        call(|error| unsafe { (self.table.seal)(self.this, prefix.get(), error) })
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        ask(0, |out, error| unsafe { (self.table.incremental_owned_bytes)(self.this, prefix.get(), out, error) })
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        ask(ChangeRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.map_prefix)(self.this, mappings.as_ptr(), mappings.len(), out, error) }
        })
        .map(ChangeRecord::change)
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        ask(ChangeRecord::default(), |out, error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.unmap)(self.this, mappings.as_ptr(), mappings.len(), out, error) }
        })
        .map(ChangeRecord::change)
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        release(|out, error| unsafe { (self.table.release_prefix)(self.this, prefix.get(), out, error) })
    }
}

impl Transfer for Foreign<TransferTable> {
    fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError> {
        call(|error| {
            // SAFETY: invariants 1 and 2; `into` is ours for the call.
            unsafe { (self.table.read)(self.this, from.get(), into.as_mut_ptr(), into.len(), error) }
        })
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError> {
        call(|error| {
            // SAFETY: invariants 1 and 2; `bytes` is ours for the call.
            unsafe { (self.table.write)(self.this, to.get(), bytes.as_ptr(), bytes.len(), error) }
        })
    }

    fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError> {
        // SAFETY: invariants 1 and 2; the error record is ours for the call.
        call(|error| unsafe { (self.table.fill)(self.this, to.get(), bytes, value, error) })
    }
}
