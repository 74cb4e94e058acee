//! Turns a `dyn Backing` into the tables that the host calls: the plugin's side of the boundary.
//!
//! `this` is a `Box<ExportedBacking>`, made by `create` and ended by `destroy`. Every entry catches panics and answers
//! [`STATUS_PANICKED`], or logs the panic where it has no status to answer. The host's counterpart is `ImportedBacking` in the crate `leasehold`.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::records::{LIST_ELEMENT, LIST_EMPTY, LIST_NONE, OPTION_BOOLEAN, OPTION_FLOAT, OPTION_INTEGER, OPTION_TEXT};
use super::{
    AccountingRecord, AllocateRecord, BackingEntry, BackingInstance, BackingTable, CreateRequest, DescriptionRecord,
    ErrorRecord, HostServicesTable, OptionRecord, PluginTable, PrefixRecord, PrefixRequestRecord, RangeResult,
    RegionRecord, ReleaseRecord, ReserveRecord, STATUS_FAILED, STATUS_OK, STATUS_PANICKED, SharedMappingTable,
    TABLES_VERSION, Text, TransferTable, VirtualBackingTable,
};
use crate::{
    Address, Backing, BackingError, BackingRegistration, Change, CommitRange, ErrorKind, HostServices, LogLevel,
    OptionValue, Options, PrefixId, PrefixMapping, RegionId, SharedMapping, Transfer, VirtualBacking,
};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;

/// What `this` points to.
struct ExportedBacking {
    backing: Box<dyn Backing>,
    services: HostServices,
}

impl ExportedBacking {
    /// Answers a question that has no room for a failure: a panic goes into the host's log.
    fn ask<R>(&self, question: &str, ask: impl FnOnce(&dyn Backing) -> Option<R>) -> Option<R> {
        contain(self.services, question, || ask(self.backing.as_ref())).flatten()
    }
}

/// Runs the backing's code where no status can tell of a panic: it goes into the host's log.
fn contain<R>(services: HostServices, what: &str, run: impl FnOnce() -> R) -> Option<R> {
    let log = |payload| {
        services.log(LogLevel::Error, &format!("{what}: {}", BackingError::from_panic("the plugin", payload)))
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(log).ok()
}

const BACKING_TABLE: BackingTable = BackingTable {
    describe,
    accounting,
    allocate,
    release,
    virtual_backing,
    shared_mapping,
    transfer,
    extension,
    destroy,
};

const VIRTUAL_BACKING_TABLE: VirtualBackingTable =
    VirtualBackingTable { granularity, reserve, commit, decommit, cost, committed_bytes };

const SHARED_MAPPING_TABLE: SharedMappingTable = SharedMappingTable {
    create_prefix,
    seal,
    incremental_owned_bytes,
    map_prefix,
    unmap: unmap_prefix,
    release_prefix,
};

const TRANSFER_TABLE: TransferTable = TransferTable { read, write, fill };

static BACKING: BackingTable = BACKING_TABLE;
static VIRTUAL_BACKING: VirtualBackingTable = VIRTUAL_BACKING_TABLE;
static SHARED_MAPPING: SharedMappingTable = SHARED_MAPPING_TABLE;
static TRANSFER: TransferTable = TRANSFER_TABLE;

/// Every backing that is linked into this library. The table is leaked: it lives as long as the library, for ever.
///
/// # Safety
///
/// None of the caller: the services are not looked at.
pub(super) unsafe extern "C" fn plugin(_services: *const HostServicesTable) -> *const PluginTable {
    let entries = catch_unwind(|| BackingRegistration::linked_in().into_iter().map(entry).collect::<Vec<_>>());
    let entries: &'static [BackingEntry] = Vec::leak(entries.unwrap_or_default());
    let table = PluginTable { version: TABLES_VERSION, entries: entries.as_ptr(), entry_count: entries.len() };
    ptr::from_ref(Box::leak(Box::new(table)))
}

fn entry(registration: &'static BackingRegistration) -> BackingEntry {
    BackingEntry {
        name: Text::borrow(registration.name()),
        summary: Text::borrow(registration.summary()),
        package: Text::borrow(registration.package()),
        package_version: Text::borrow(registration.version()),
        context: ptr::from_ref(registration).cast(),
        create,
    }
}

/// Runs one operation: its error goes into the record, its panic no further.
///
/// # Safety
///
/// `error` points to a record that nobody else uses during the call.
unsafe fn answer(error: *mut ErrorRecord, operation: impl FnOnce() -> Result<(), BackingError>) -> u32 {
    let (status, failure) = match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(Ok(())) => return STATUS_OK,
        Ok(Err(failure)) => (STATUS_FAILED, failure),
        Err(payload) => (STATUS_PANICKED, BackingError::from_panic("the plugin", payload)),
    };
    // SAFETY: the caller promises that the record is there and that nobody else uses it.
    let record = unsafe { &mut *error };
    record.write(&failure);
    status
}

/// The backing behind `this`.
///
/// # Safety
///
/// `this` came from [`create`] and was not destroyed.
unsafe fn backing<'a>(this: *mut c_void) -> &'a dyn Backing {
    // SAFETY: the caller promises a live backing.
    unsafe { exported(this) }.backing.as_ref()
}

/// What `this` points to.
///
/// # Safety
///
/// As [`backing`].
unsafe fn exported<'a>(this: *mut c_void) -> &'a ExportedBacking {
    // SAFETY: `create` made it from a box of this type; it is only ever shared until `destroy`.
    unsafe { &*this.cast::<ExportedBacking>() }
}

/// The elements of a slice that may be empty.
///
/// # Safety
///
/// When `count` is not 0, `first` points to as many elements, unchanged during the call.
unsafe fn elements<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller promises the elements.
    unsafe { slice::from_raw_parts(first, count) }
}

/// A text that the host lends for the call.
///
/// # Safety
///
/// As [`elements`].
unsafe fn text(text: Text) -> Result<String, BackingError> {
    // SAFETY: the caller promises the bytes.
    let bytes = unsafe { elements(text.data, text.len) };
    String::from_utf8(bytes.to_vec()).map_err(|_| BackingError::invalid("a text from the host is not UTF-8"))
}

fn changed_answer(capability: &str) -> BackingError {
    BackingError::new(ErrorKind::Internal, format!("the backing no longer offers {capability}, which it did before"))
}

fn virtual_of(backing: &dyn Backing) -> Result<&dyn VirtualBacking, BackingError> {
    backing.as_virtual_backing().ok_or_else(|| changed_answer("virtual backing"))
}

fn shared_of(backing: &dyn Backing) -> Result<&dyn SharedMapping, BackingError> {
    backing.as_shared_mapping().ok_or_else(|| changed_answer("shared mapping"))
}

fn transfer_of(backing: &dyn Backing) -> Result<&dyn Transfer, BackingError> {
    backing.as_transfer().ok_or_else(|| changed_answer("transfer"))
}

/// Runs an operation on a live backing whose answer goes to `out`.
///
/// # Safety
///
/// `this` as in [`backing`], `error` as in [`answer`]; `out` may be written.
unsafe fn produce<R>(
    this: *mut c_void,
    out: *mut R,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn Backing) -> Result<R, BackingError>,
) -> u32 {
    let operation = || {
        // SAFETY: the caller promises a live backing.
        let backing = unsafe { backing(this) };
        let result = operation(backing)?;
        // SAFETY: the caller promises that `out` may be written.
        unsafe { out.write(result) };
        Ok(())
    };
    // SAFETY: the caller promises the error record.
    unsafe { answer(error, operation) }
}

/// # Safety
///
/// As in [`BackingEntry`].
unsafe extern "C" fn create(
    context: *const c_void,
    request: *const CreateRequest,
    instance: *mut BackingInstance,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = || {
        // SAFETY: `context` is what `entry` put there: a registration that lives for ever.
        let registration = unsafe { &*context.cast::<BackingRegistration>() };
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        // SAFETY: the host lends the options for the call.
        let options = unsafe { elements(request.options, request.option_count) };
        // SAFETY: as above.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the host promises services that outlive the backing.
        let services = unsafe { HostServices::from_table(request.services) };
        let exported = Box::new(ExportedBacking { backing: registration.create(&options, services)?, services });
        let made = BackingInstance { this: Box::into_raw(exported).cast(), table: &raw const BACKING };
        // SAFETY: the host lends the out-parameter for the call.
        unsafe { instance.write(made) };
        Ok(())
    };
    // SAFETY: the host lends the error record for the call.
    unsafe { answer(error, operation) }
}

/// # Safety
///
/// The texts of the records are lent for the call.
unsafe fn read_options(records: &[OptionRecord]) -> Result<Options, BackingError> {
    let mut options: Vec<(String, OptionValue)> = Vec::new();
    for record in records {
        // SAFETY: the caller promises the key.
        let key = unsafe { text(record.key) }?;
        if record.list == LIST_EMPTY {
            options.push((key, OptionValue::List(Vec::new())));
            continue;
        }
        // SAFETY: the caller promises the value's text.
        let value = unsafe { read_option(record) }?;
        match options.last_mut() {
            Some((last, OptionValue::List(list))) if record.list == LIST_ELEMENT && *last == key => list.push(value),
            _ if record.list == LIST_ELEMENT => options.push((key, OptionValue::List(vec![value]))),
            _ if record.list == LIST_NONE => options.push((key, value)),
            _ => return Err(BackingError::invalid(format!("option {key:?} has a list mark that is not known"))),
        }
    }
    Ok(options.into_iter().fold(Options::new(), |options, (key, value)| options.with(key, value)))
}

/// # Safety
///
/// The text of the record is lent for the call.
unsafe fn read_option(record: &OptionRecord) -> Result<OptionValue, BackingError> {
    match record.kind {
        OPTION_BOOLEAN => Ok(OptionValue::Boolean(record.integer != 0)),
        OPTION_INTEGER => Ok(OptionValue::Integer(record.integer)),
        OPTION_FLOAT => Ok(OptionValue::Float(record.float)),
        // SAFETY: the caller promises the text.
        OPTION_TEXT => Ok(OptionValue::Text(unsafe { text(record.text) }?)),
        kind => Err(BackingError::invalid(format!("an option is of kind {kind}, which is not known"))),
    }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn describe(this: *mut c_void, out: *mut DescriptionRecord, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(DescriptionRecord::from_description(&backing.describe()))) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn accounting(this: *mut c_void, out: *mut AccountingRecord, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(backing.accounting().into())) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn allocate(
    this: *mut c_void,
    request: *const AllocateRecord,
    out: *mut RegionRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        backing.allocate(&request.allocate()).map(RegionRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn release(this: *mut c_void, release: *mut ReleaseRecord, error: *mut ErrorRecord) -> u32 {
    let operation = || {
        // SAFETY: the host promises a live backing.
        let backing = unsafe { backing(this) };
        // SAFETY: the host lends the record for the call.
        let release = unsafe { &mut *release };
        let target = release.target().ok_or_else(|| BackingError::invalid("the target's kind is not known"))?;
        let outcome = backing.release(target);
        // SAFETY: the host lends the error record for the call, and nobody else uses it.
        let error = unsafe { &mut *error };
        release.write_outcome(&outcome, error);
        Ok(())
    };
    // SAFETY: the host lends the error record for the call.
    unsafe { answer(error, operation) }
}

/// Answers the table of a capability, or null where the backing hasn't got it or panics.
///
/// # Safety
///
/// `this` as in [`backing`].
unsafe fn discover<T>(this: *mut c_void, table: *const T, has: impl FnOnce(&dyn Backing) -> bool) -> *const T {
    // SAFETY: the caller promises a live backing.
    let exported = unsafe { exported(this) };
    exported.ask("discovery", |backing| has(backing).then_some(table)).unwrap_or(ptr::null())
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn virtual_backing(this: *mut c_void) -> *const VirtualBackingTable {
    // SAFETY: the host keeps the rules of the table.
    unsafe { discover(this, &raw const VIRTUAL_BACKING, |backing| backing.as_virtual_backing().is_some()) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn shared_mapping(this: *mut c_void) -> *const SharedMappingTable {
    // SAFETY: the host keeps the rules of the table.
    unsafe { discover(this, &raw const SHARED_MAPPING, |backing| backing.as_shared_mapping().is_some()) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn transfer(this: *mut c_void) -> *const TransferTable {
    // SAFETY: the host keeps the rules of the table.
    unsafe { discover(this, &raw const TRANSFER, |backing| backing.as_transfer().is_some()) }
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn extension(this: *mut c_void, id: Text) -> *const c_void {
    // SAFETY: the host promises a live backing.
    let exported = unsafe { exported(this) };
    // SAFETY: the host lends the text for the call.
    let Ok(id) = (unsafe { text(id) }) else { return ptr::null() };
    exported.ask("extension", |backing| backing.extension(&id)).map_or(ptr::null(), |extension| extension.0)
}

/// # Safety
///
/// As in [`BackingTable`].
unsafe extern "C" fn destroy(this: *mut c_void) {
    // SAFETY: `create` made it from a box of this type, and the host calls this once.
    let exported = unsafe { Box::from_raw(this.cast::<ExportedBacking>()) };
    let ExportedBacking { backing, services } = *exported;
    let _ = contain(services, "its end", || drop(backing));
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn granularity(this: *mut c_void) -> u64 {
    // SAFETY: the host promises a live backing.
    let exported = unsafe { exported(this) };
    exported.ask("granularity", |backing| backing.as_virtual_backing().map(VirtualBacking::granularity)).unwrap_or(0)
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn reserve(
    this: *mut c_void,
    request: *const ReserveRecord,
    out: *mut RegionRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        virtual_of(backing)?.reserve(&request.reserve()).map(RegionRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// Runs an operation on ranges.
///
/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe fn on_ranges(
    this: *mut c_void,
    (first, count): (*const CommitRange, usize),
    out: *mut RangeResult,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn VirtualBacking, &[CommitRange]) -> Result<Change, BackingError>,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the ranges for the call.
        let ranges = unsafe { elements(first, count) };
        operation(virtual_of(backing)?, ranges).map(RangeResult::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn commit(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut RangeResult,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.commit(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn decommit(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut RangeResult,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.decommit(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn cost(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut RangeResult,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.cost(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable`].
unsafe extern "C" fn committed_bytes(this: *mut c_void, region: u64, out: *mut u64, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| virtual_of(backing)?.committed_bytes(RegionId::new(region));
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn create_prefix(
    this: *mut c_void,
    request: *const PrefixRequestRecord,
    out: *mut PrefixRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        shared_of(backing)?.create_prefix(&request.request()).map(PrefixRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn seal(this: *mut c_void, prefix: u64, error: *mut ErrorRecord) -> u32 {
    let mut nothing = ();
    let operation = |backing: &dyn Backing| shared_of(backing)?.seal(PrefixId::new(prefix));
    // SAFETY: the host keeps the rules of the table; the out-parameter is ours.
    unsafe { produce(this, &raw mut nothing, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn incremental_owned_bytes(
    this: *mut c_void,
    prefix: u64,
    out: *mut u64,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| shared_of(backing)?.incremental_owned_bytes(PrefixId::new(prefix));
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// Runs an operation on mappings.
///
/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe fn on_mappings(
    this: *mut c_void,
    (first, count): (*const PrefixMapping, usize),
    out: *mut RangeResult,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn SharedMapping, &[PrefixMapping]) -> Result<Change, BackingError>,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the mappings for the call.
        let mappings = unsafe { elements(first, count) };
        operation(shared_of(backing)?, mappings).map(RangeResult::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn map_prefix(
    this: *mut c_void,
    mappings: *const PrefixMapping,
    mapping_count: usize,
    out: *mut RangeResult,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_mappings(this, (mappings, mapping_count), out, error, |shared, all| shared.map_prefix(all)) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn unmap_prefix(
    this: *mut c_void,
    mappings: *const PrefixMapping,
    mapping_count: usize,
    out: *mut RangeResult,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_mappings(this, (mappings, mapping_count), out, error, |shared, all| shared.unmap(all)) }
}

/// # Safety
///
/// As in [`SharedMappingTable`].
unsafe extern "C" fn release_prefix(
    this: *mut c_void,
    prefix: u64,
    release: *mut ReleaseRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = || {
        // SAFETY: the host promises a live backing.
        let backing = unsafe { backing(this) };
        let outcome = shared_of(backing)?.release_prefix(PrefixId::new(prefix));
        // SAFETY: the host lends the record for the call.
        let release = unsafe { &mut *release };
        // SAFETY: the host lends the error record for the call, and nobody else uses it.
        let error = unsafe { &mut *error };
        release.write_outcome(&outcome, error);
        Ok(())
    };
    // SAFETY: the host lends the error record for the call.
    unsafe { answer(error, operation) }
}

/// # Safety
///
/// As in [`TransferTable`].
unsafe extern "C" fn read(this: *mut c_void, from: u64, into: *mut u8, bytes: usize, error: *mut ErrorRecord) -> u32 {
    let mut nothing = ();
    let operation = |backing: &dyn Backing| {
        let transfer = transfer_of(backing)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the host lends as many writable bytes for the call.
        let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
        transfer.read(Address::new(from), into)
    };
    // SAFETY: the host keeps the rules of the table; the out-parameter is ours.
    unsafe { produce(this, &raw mut nothing, error, operation) }
}

/// # Safety
///
/// As in [`TransferTable`].
unsafe extern "C" fn write(this: *mut c_void, to: u64, from: *const u8, bytes: usize, error: *mut ErrorRecord) -> u32 {
    let mut nothing = ();
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the bytes for the call.
        let from = unsafe { elements(from, bytes) };
        transfer_of(backing)?.write(Address::new(to), from)
    };
    // SAFETY: the host keeps the rules of the table; the out-parameter is ours.
    unsafe { produce(this, &raw mut nothing, error, operation) }
}

/// # Safety
///
/// As in [`TransferTable`].
unsafe extern "C" fn fill(this: *mut c_void, to: u64, bytes: u64, value: u8, error: *mut ErrorRecord) -> u32 {
    let mut nothing = ();
    let operation = |backing: &dyn Backing| transfer_of(backing)?.fill(Address::new(to), bytes, value);
    // SAFETY: the host keeps the rules of the table; the out-parameter is ours.
    unsafe { produce(this, &raw mut nothing, error, operation) }
}
