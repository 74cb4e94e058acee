//! Turns the tables of a loaded plugin into a `dyn Backing`: the host's side of the boundary.
//!
//! An [`ImportedBacking`] owns the plugin's pointer and destroys it on drop, once. Tables are asked for each time a
//! capability is used and must be the ones that were found at first, so that an answer that changes is noticed. Its
//! counterpart is `plugin_side` in `leasehold-plugin-api`.
//!
//! The error record of a call is taken from a slot of the thread: it is cleared by its header alone, so that a call
//! that succeeds does not pay for clearing the message. Two questions of the contract have no room for a failure; what
//! went wrong with them waits in a slot of the thread, where `Discovery` looks.
#![expect(unsafe_code, reason = "calls function pointers of a loaded library")]

use leasehold_plugin_api::abi::{
    AccountingRecord, AllocateRecord, BackingEntry, BackingInstance, BackingTable, CreateRequest, DescriptionRecord,
    ErrorRecord, LIST_ELEMENT, LIST_EMPTY, LIST_NONE, OPTION_BOOLEAN, OPTION_FLOAT, OPTION_INTEGER, OPTION_TEXT,
    OptionRecord, PrefixRecord, PrefixRequestRecord, RangeResult, RegionRecord, ReleaseRecord, ReserveRecord,
    SharedMappingTable, Text, TransferTable, VirtualBackingTable,
};
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, AuthorityId, Backing, BackingError, Change, CommitRange,
    Description, DeviceKey, ErrorKind, Extension, HostAccess, HostServices, OptionValue, Options, Prefix, PrefixId,
    PrefixMapping, PrefixRequest, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping,
    Transfer, VirtualBacking,
};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

thread_local! {
    static ERROR_SLOT: Cell<Option<Box<ErrorRecord>>> = const { Cell::new(None) };
    static UNANSWERED: Cell<Option<BackingError>> = const { Cell::new(None) };
}

/// Why a backing did not say what it is or who pays, when this thread asked since the last call of this function.
pub(super) fn take_unanswered() -> Option<BackingError> {
    UNANSWERED.take()
}

/// Makes a call that may fail, with an error record of this thread.
fn call(operation: impl FnOnce(*mut ErrorRecord) -> u32) -> Result<(), BackingError> {
    let mut record = ERROR_SLOT.take().unwrap_or_else(|| Box::new(ErrorRecord::empty()));
    record.clear();
    let status = operation(&raw mut *record);
    let result = record.answer(status);
    ERROR_SLOT.set(Some(record));
    result
}

/// One backing that a loaded library offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignEntry {
    /// Invariant 1: an entry of a library that is never unloaded, whose layout was checked when it was opened.
    entry: &'static BackingEntry,
}

// SAFETY: by invariant 1 the entry is never changed, and its function may be called from any thread.
unsafe impl Send for ForeignEntry {}
// SAFETY: as above.
unsafe impl Sync for ForeignEntry {}

impl ForeignEntry {
    /// # Safety
    ///
    /// The entry keeps the rules of [`BackingEntry`] and is valid for the life of the process.
    pub(crate) unsafe fn new(entry: &'static BackingEntry) -> Self {
        Self { entry }
    }

    pub(crate) fn name(&self) -> String {
        self.read(self.entry.name)
    }

    pub(crate) fn package(&self) -> String {
        format!("{} {}", self.read(self.entry.package), self.read(self.entry.package_version))
    }

    fn read(&self, text: Text) -> String {
        if text.len == 0 {
            return String::new();
        }
        // SAFETY: invariant 1: the entry's texts are as long-lived as the entry.
        let bytes = unsafe { std::slice::from_raw_parts(text.data, text.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Makes a backing.
    pub(crate) fn create(&self, options: &Options, services: HostServices) -> Result<ImportedBacking, BackingError> {
        let records = option_records(options);
        let request =
            CreateRequest { services: services.as_table(), options: records.as_ptr(), option_count: records.len() };
        let mut instance = BackingInstance { this: ptr::null_mut(), table: ptr::null() };
        call(|error| {
            // SAFETY: invariant 1; request and out-parameter are ours for the call, the services live for ever.
            unsafe { (self.entry.create)(self.entry.context, &raw const request, &raw mut instance, error) }
        })?;
        ImportedBacking::new(instance)
    }
}

fn option_records(options: &Options) -> Vec<OptionRecord> {
    let mut records = Vec::new();
    for (key, value) in options.iter() {
        match value {
            OptionValue::List(values) if values.is_empty() => records.push(option_record(key, LIST_EMPTY)),
            OptionValue::List(values) => {
                records.extend(values.iter().map(|value| scalar_record(key, LIST_ELEMENT, value)));
            }
            scalar => records.push(scalar_record(key, LIST_NONE, scalar)),
        }
    }
    records
}

fn option_record(key: &str, list: u32) -> OptionRecord {
    OptionRecord { key: Text::borrow(key), kind: 0, list, integer: 0, float: 0.0, text: Text::borrow("") }
}

fn scalar_record(key: &str, list: u32, value: &OptionValue) -> OptionRecord {
    let record = option_record(key, list);
    match value {
        OptionValue::Boolean(value) => OptionRecord { kind: OPTION_BOOLEAN, integer: i64::from(*value), ..record },
        OptionValue::Integer(value) => OptionRecord { kind: OPTION_INTEGER, integer: *value, ..record },
        OptionValue::Float(value) => OptionRecord { kind: OPTION_FLOAT, float: *value, ..record },
        OptionValue::Text(value) => OptionRecord { kind: OPTION_TEXT, text: Text::borrow(value), ..record },
        // A list in a list has no form in the tables; the plugin refuses the kind 0.
        OptionValue::List(_) => record,
    }
}

/// A backing of a loaded library.
#[derive(Debug)]
pub(crate) struct ImportedBacking {
    /// Invariant 1: came with `table` from the entry's `create`, and is destroyed on drop and nowhere else.
    this: *mut c_void,
    /// Invariant 2: valid for the life of the process.
    table: &'static BackingTable,
    virtual_backing: Option<ImportedVirtualBacking>,
    shared_mapping: Option<ImportedSharedMapping>,
    transfer: Option<ImportedTransfer>,
}

// SAFETY: the rules of the tables let every operation be called from any thread, and at the same time.
unsafe impl Send for ImportedBacking {}
// SAFETY: as above.
unsafe impl Sync for ImportedBacking {}

impl ImportedBacking {
    fn new(instance: BackingInstance) -> Result<Self, BackingError> {
        let (false, false) = (instance.this.is_null(), instance.table.is_null()) else {
            return Err(BackingError::new(ErrorKind::Internal, "the plugin made a backing without pointer or table"));
        };
        // SAFETY: the table of a backing that was made is valid for the life of the process.
        let table = unsafe { &*instance.table };
        let this = instance.this;
        // SAFETY: the backing was just made, and `this` came with the table.
        let virtual_backing = unsafe { (table.virtual_backing)(this) };
        // SAFETY: as above.
        let shared_mapping = unsafe { (table.shared_mapping)(this) };
        // SAFETY: as above.
        let transfer = unsafe { (table.transfer)(this) };
        Ok(Self {
            this,
            table,
            // SAFETY: a capability's table, where there is one, is valid for the life of the process.
            virtual_backing: unsafe { virtual_backing.as_ref() }.map(|table| ImportedVirtualBacking { this, table }),
            // SAFETY: as above.
            shared_mapping: unsafe { shared_mapping.as_ref() }.map(|table| ImportedSharedMapping { this, table }),
            // SAFETY: as above.
            transfer: unsafe { transfer.as_ref() }.map(|table| ImportedTransfer { this, table }),
        })
    }
}

impl Drop for ImportedBacking {
    fn drop(&mut self) {
        // SAFETY: invariants 1 and 2; nobody else holds the backing any more.
        unsafe { (self.table.destroy)(self.this) }
    }
}

/// What stands in for the description of a backing that gave none, while the reason waits for `Discovery`.
fn no_description(error: BackingError) -> Description {
    UNANSWERED.set(Some(error));
    Description::new(DeviceKey::device(u32::MAX), "no description", HostAccess::None)
}

/// What stands in for the accounting of a backing that told none: books that are nobody's, which no governor admits.
fn no_accounting(error: BackingError) -> Accounting {
    UNANSWERED.set(Some(error));
    Accounting::Backing { authority: AuthorityId::from_bytes([0; 16]) }
}

fn not_known(what: &str) -> BackingError {
    BackingError::new(ErrorKind::Internal, format!("{what} is not known to this host"))
}

impl Backing for ImportedBacking {
    fn describe(&self) -> Description {
        let mut out = DescriptionRecord::empty();
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        let asked = call(|error| unsafe { (self.table.describe)(self.this, &raw mut out, error) });
        let answer = asked.and_then(|()| out.description().ok_or_else(|| not_known("the tier of its device")));
        answer.unwrap_or_else(no_description)
    }

    fn accounting(&self) -> Accounting {
        let mut out = AccountingRecord::from(Accounting::Buffer);
        // SAFETY: invariants 1 and 2; the out-parameters are ours for the call.
        let asked = call(|error| unsafe { (self.table.accounting)(self.this, &raw mut out, error) });
        let answer = asked.and_then(|()| out.accounting().ok_or_else(|| not_known("its kind of accounting")));
        answer.unwrap_or_else(no_accounting)
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let request = AllocateRecord::from(request);
        let mut out = RegionRecord::default();
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        call(|error| unsafe { (self.table.allocate)(self.this, &raw const request, &raw mut out, error) })?;
        Ok(out.allocation())
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        let mut release = ReleaseRecord::asking(target);
        let mut record = ErrorRecord::empty();
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        let status = unsafe { (self.table.release)(self.this, &raw mut release, &raw mut record) };
        release_outcome(status, &release, &record)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        let known = self.virtual_backing.as_ref()?;
        // SAFETY: invariants 1 and 2.
        let now = unsafe { (self.table.virtual_backing)(self.this) };
        if ptr::eq(now, known.table) { Some(known) } else { None }
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        let known = self.shared_mapping.as_ref()?;
        // SAFETY: invariants 1 and 2.
        let now = unsafe { (self.table.shared_mapping)(self.this) };
        if ptr::eq(now, known.table) { Some(known) } else { None }
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        let known = self.transfer.as_ref()?;
        // SAFETY: invariants 1 and 2.
        let now = unsafe { (self.table.transfer)(self.this) };
        if ptr::eq(now, known.table) { Some(known) } else { None }
    }

    fn extension(&self, id: &str) -> Option<Extension> {
        // SAFETY: invariants 1 and 2; the text is ours for the call.
        let found = unsafe { (self.table.extension)(self.this, Text::borrow(id)) };
        if found.is_null() { None } else { Some(Extension(found)) }
    }
}

/// A release whose status is not OK says nothing that can be relied on: everything remains.
fn release_outcome(status: u32, release: &ReleaseRecord, record: &ErrorRecord) -> ReleaseOutcome {
    match record.answer(status) {
        Ok(()) => release.outcome(record),
        Err(error) => ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, error },
    }
}

/// The capability of a live [`ImportedBacking`], which owns it.
#[derive(Debug)]
struct ImportedVirtualBacking {
    /// Invariant 1: the backing's own pointer; the backing outlives this.
    this: *mut c_void,
    /// Invariant 2: valid for the life of the process.
    table: &'static VirtualBackingTable,
}

// SAFETY: as for `ImportedBacking`.
unsafe impl Send for ImportedVirtualBacking {}
// SAFETY: as for `ImportedBacking`.
unsafe impl Sync for ImportedVirtualBacking {}

impl VirtualBacking for ImportedVirtualBacking {
    fn granularity(&self) -> u64 {
        // SAFETY: invariants 1 and 2.
        unsafe { (self.table.granularity)(self.this) }
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        let request = ReserveRecord::from(request);
        let mut out = RegionRecord::default();
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        call(|error| unsafe { (self.table.reserve)(self.this, &raw const request, &raw mut out, error) })?;
        Ok(out.region())
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let mut out = RangeResult::default();
        call(|error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.commit)(self.this, ranges.as_ptr(), ranges.len(), &raw mut out, error) }
        })?;
        Ok(out.change())
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let mut out = RangeResult::default();
        call(|error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.decommit)(self.this, ranges.as_ptr(), ranges.len(), &raw mut out, error) }
        })?;
        Ok(out.change())
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let mut out = RangeResult::default();
        call(|error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.cost)(self.this, ranges.as_ptr(), ranges.len(), &raw mut out, error) }
        })?;
        Ok(out.change())
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        let mut out = 0;
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        call(|error| unsafe { (self.table.committed_bytes)(self.this, region.get(), &raw mut out, error) })?;
        Ok(out)
    }
}

/// The capability of a live [`ImportedBacking`], which owns it.
#[derive(Debug)]
struct ImportedSharedMapping {
    /// Invariant 1: the backing's own pointer; the backing outlives this.
    this: *mut c_void,
    /// Invariant 2: valid for the life of the process.
    table: &'static SharedMappingTable,
}

// SAFETY: as for `ImportedBacking`.
unsafe impl Send for ImportedSharedMapping {}
// SAFETY: as for `ImportedBacking`.
unsafe impl Sync for ImportedSharedMapping {}

impl SharedMapping for ImportedSharedMapping {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        let request = PrefixRequestRecord::from(request);
        let mut out = PrefixRecord::default();
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        call(|error| unsafe { (self.table.create_prefix)(self.this, &raw const request, &raw mut out, error) })?;
        Ok(out.prefix())
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        // SAFETY: invariants 1 and 2; the error record is ours for the call.
        call(|error| unsafe { (self.table.seal)(self.this, prefix.get(), error) })
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        let mut out = 0;
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        call(|error| unsafe { (self.table.incremental_owned_bytes)(self.this, prefix.get(), &raw mut out, error) })?;
        Ok(out)
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let mut out = RangeResult::default();
        call(|error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.map_prefix)(self.this, mappings.as_ptr(), mappings.len(), &raw mut out, error) }
        })?;
        Ok(out.change())
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let mut out = RangeResult::default();
        call(|error| {
            // SAFETY: invariants 1 and 2; the parameters are ours for the call.
            unsafe { (self.table.unmap)(self.this, mappings.as_ptr(), mappings.len(), &raw mut out, error) }
        })?;
        Ok(out.change())
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        let mut release = ReleaseRecord::asking_prefix();
        let mut record = ErrorRecord::empty();
        // SAFETY: invariants 1 and 2; the parameters are ours for the call.
        let status = unsafe { (self.table.release_prefix)(self.this, prefix.get(), &raw mut release, &raw mut record) };
        release_outcome(status, &release, &record)
    }
}

/// The capability of a live [`ImportedBacking`], which owns it.
#[derive(Debug)]
struct ImportedTransfer {
    /// Invariant 1: the backing's own pointer; the backing outlives this.
    this: *mut c_void,
    /// Invariant 2: valid for the life of the process.
    table: &'static TransferTable,
}

// SAFETY: as for `ImportedBacking`.
unsafe impl Send for ImportedTransfer {}
// SAFETY: as for `ImportedBacking`.
unsafe impl Sync for ImportedTransfer {}

impl Transfer for ImportedTransfer {
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
