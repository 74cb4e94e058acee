//! The operations that cross the boundary.
//!
//! Rules that hold for every operation, on both sides:
//!
//! * `this` and `context` are the pointers that came with the table; nobody but their owner looks behind them.
//! * Pointers to records are non-null, aligned, and valid for the call only; slices may be empty, and their pointer is
//!   then not looked at. Out-parameters are written on success, the error record on failure, neither otherwise.
//! * The answer is a status, `STATUS_…`. One that is not known counts as a failure of kind
//!   [`Unintelligible`](crate::ErrorKind::Unintelligible), which leaves in doubt what was done.
//! * Nothing unwinds across: each side catches its own panics.
//! * Operations may be called from any thread and at the same time, but never two about the same region, allocation or
//!   prefix at once. They may block. Neither side holds a lock of its own across a call into the other.
//! * Tables are valid for the life of the process: a library is never unloaded.

use super::{
    AccountingRecord, AllocateRecord, BackingInstance, CreateRequest, DescriptionRecord, DomainRecord, ErrorRecord,
    PrefixRecord, PrefixRequestRecord, RangeResult, RegionRecord, ReleaseRecord, ReserveRecord, RoleRecord, Text,
};
use crate::{CommitRange, PrefixMapping};
use abi_stable::StableAbi;
use std::ffi::c_void;

/// What one library offers.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct PluginTable {
    /// The version of the tables: [`TABLES_VERSION`](super::TABLES_VERSION) of the crate that it was built with.
    pub version: u32,
    /// First entry; may be anything when there is none.
    pub entries: *const BackingEntry,
    /// Number of entries.
    pub entry_count: usize,
}

/// One backing that a library can make.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct BackingEntry {
    /// Its name, unique within the library.
    pub name: Text,
    /// What it is, in a few words.
    pub summary: Text,
    /// The package that it comes from.
    pub package: Text,
    /// That package's version.
    pub package_version: Text,
    /// Passed back to `create`.
    pub context: *const c_void,
    /// Makes a backing. On success `instance` holds a pointer that the host ends with
    /// [`destroy`](BackingTable::destroy), exactly once; on failure nothing is left behind.
    pub create: unsafe extern "C" fn(
        context: *const c_void,
        request: *const CreateRequest,
        instance: *mut BackingInstance,
        error: *mut ErrorRecord,
    ) -> u32,
}

/// The operations of [`Backing`](crate::Backing).
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct BackingTable {
    /// Writes what the backing says of itself.
    pub describe: unsafe extern "C" fn(this: *mut c_void, out: *mut DescriptionRecord, error: *mut ErrorRecord) -> u32,
    /// Writes who pays.
    pub accounting: unsafe extern "C" fn(this: *mut c_void, out: *mut AccountingRecord, error: *mut ErrorRecord) -> u32,
    /// Hands out memory. On failure nothing is left behind.
    pub allocate: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const AllocateRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives a region or an allocation back. The status says whether the outcome was written; a status other than OK
    /// counts as quarantined, with everything remaining.
    pub release: unsafe extern "C" fn(this: *mut c_void, release: *mut ReleaseRecord, error: *mut ErrorRecord) -> u32,
    /// The table of the virtual backing, or null; the same answer each time.
    pub virtual_backing: unsafe extern "C" fn(this: *mut c_void) -> *const VirtualBackingTable,
    /// The table of shared mapping, or null; the same answer each time.
    pub shared_mapping: unsafe extern "C" fn(this: *mut c_void) -> *const SharedMappingTable,
    /// The table of transfers, or null; the same answer each time.
    pub transfer: unsafe extern "C" fn(this: *mut c_void) -> *const TransferTable,
    /// A table found by its id, or null when the id is not known. The id fixes the table's type.
    pub extension: unsafe extern "C" fn(this: *mut c_void, id: Text) -> *const c_void,
    /// Ends the backing. No other call is under way, and none follows. What it still owns goes with it.
    pub destroy: unsafe extern "C" fn(this: *mut c_void),
}

/// The operations of [`VirtualBacking`](crate::VirtualBacking). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct VirtualBackingTable {
    /// The unit of commit in bytes, or 0 when the question failed.
    pub granularity: unsafe extern "C" fn(this: *mut c_void) -> u64,
    /// Takes address space. On failure nothing is left behind.
    pub reserve: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const ReserveRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Commits all ranges or none.
    pub commit: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut RangeResult,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Decommits all ranges or none.
    pub decommit: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut RangeResult,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Says what a commit would change, and changes nothing.
    pub cost: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut RangeResult,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Writes the bytes that are mapped in the region.
    pub committed_bytes:
        unsafe extern "C" fn(this: *mut c_void, region: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
}

/// The operations of [`SharedMapping`](crate::SharedMapping). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct SharedMappingTable {
    /// Takes physical memory for a prefix. On failure nothing is left behind.
    pub create_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const PrefixRequestRecord,
        out: *mut PrefixRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Ends all writing.
    pub seal: unsafe extern "C" fn(this: *mut c_void, prefix: u64, error: *mut ErrorRecord) -> u32,
    /// Writes what one more mapping would newly own.
    pub incremental_owned_bytes:
        unsafe extern "C" fn(this: *mut c_void, prefix: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
    /// Maps all or none.
    pub map_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        mappings: *const PrefixMapping,
        mapping_count: usize,
        out: *mut RangeResult,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Unmaps all or none.
    pub unmap: unsafe extern "C" fn(
        this: *mut c_void,
        mappings: *const PrefixMapping,
        mapping_count: usize,
        out: *mut RangeResult,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives the handle back; the outcome goes into `release`.
    pub release_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        prefix: u64,
        release: *mut ReleaseRecord,
        error: *mut ErrorRecord,
    ) -> u32,
}

/// The operations of [`Transfer`](crate::Transfer). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct TransferTable {
    /// Copies `bytes` bytes from the device into `into`, which holds as many.
    pub read:
        unsafe extern "C" fn(this: *mut c_void, from: u64, into: *mut u8, bytes: usize, error: *mut ErrorRecord) -> u32,
    /// Copies `bytes` bytes from `from` to the device.
    pub write:
        unsafe extern "C" fn(this: *mut c_void, to: u64, from: *const u8, bytes: usize, error: *mut ErrorRecord) -> u32,
    /// Sets bytes of the device to one value.
    pub fill: unsafe extern "C" fn(this: *mut c_void, to: u64, bytes: u64, value: u8, error: *mut ErrorRecord) -> u32,
}

/// What the host offers to one backing. Valid for the life of the process; after the backing's end every operation
/// answers a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct HostServicesTable {
    /// Passed back in every call.
    pub context: *const c_void,
    /// Takes one line: level 1 error, 2 warning, 3 information, 4 debugging, 5 tracing.
    pub log: unsafe extern "C" fn(context: *const c_void, level: u32, message: Text),
    /// Writes the 16 bytes of the identity of the domain's books.
    pub authority: unsafe extern "C" fn(
        context: *const c_void,
        domain: DomainRecord,
        out: *mut [u8; 16],
        error: *mut ErrorRecord,
    ) -> u32,
    /// Charges bytes to the domain, or refuses and changes nothing.
    pub charge: unsafe extern "C" fn(
        context: *const c_void,
        domain: DomainRecord,
        bytes: u64,
        role: RoleRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives bytes back that this backing charged.
    pub refund:
        unsafe extern "C" fn(context: *const c_void, domain: DomainRecord, bytes: u64, error: *mut ErrorRecord) -> u32,
}
