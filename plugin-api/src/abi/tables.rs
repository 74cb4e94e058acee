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
    AccountingRecord, BackingInstance, ChangeRecord, CreateRequest, DescriptionRecord, DomainRecord, ErrorRecord,
    OutcomeRecord, PrefixRecord, PrefixRequestRecord, RegionRecord, RequestRecord, RoleRecord, TargetRecord, Text,
};
use crate::{CommitRange, PrefixMapping};
use abi_stable::StableAbi;
use std::ffi::c_void;

/// What one library offers. It and everything that it points to is the library's, valid for the life of the process.
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
    /// Makes a backing.
    pub create: unsafe extern "C" fn(
        context: *const c_void,
        request: *const CreateRequest,
        out: *mut BackingInstance,
        error: *mut ErrorRecord,
    ) -> u32,
}

/// The operations of [`Backing`](crate::Backing).
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct BackingTable {
    /// Writes what the backing says of itself: the same each time.
    pub describe: unsafe extern "C" fn(this: *mut c_void, out: *mut DescriptionRecord, error: *mut ErrorRecord) -> u32,
    /// Writes who pays: the same each time.
    pub accounting: unsafe extern "C" fn(this: *mut c_void, out: *mut AccountingRecord, error: *mut ErrorRecord) -> u32,
    /// Hands out memory that is committed as a whole.
    pub allocate: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const RequestRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives a region, with whatever is committed in it, or an allocation back, and writes the outcome.
    pub release: unsafe extern "C" fn(
        this: *mut c_void,
        target: *const TargetRecord,
        out: *mut OutcomeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Writes the table of the virtual backing, or null where there is none: the same each time.
    pub virtual_backing:
        unsafe extern "C" fn(this: *mut c_void, out: *mut *const VirtualBackingTable, error: *mut ErrorRecord) -> u32,
    /// Writes the table of shared mapping, or null where there is none. Otherwise as
    /// [`virtual_backing`](BackingTable::virtual_backing).
    pub shared_mapping:
        unsafe extern "C" fn(this: *mut c_void, out: *mut *const SharedMappingTable, error: *mut ErrorRecord) -> u32,
    /// Writes the table of transfers, or null where there is none. Otherwise as
    /// [`virtual_backing`](BackingTable::virtual_backing).
    pub transfer:
        unsafe extern "C" fn(this: *mut c_void, out: *mut *const TransferTable, error: *mut ErrorRecord) -> u32,
    /// Writes a table found by its id, or null when the id is not known. The id fixes the table's type.
    pub extension:
        unsafe extern "C" fn(this: *mut c_void, id: Text, out: *mut *const c_void, error: *mut ErrorRecord) -> u32,
    /// Ends the backing; `this` is dead from then on, and what the backing still owns goes with it.
    pub destroy: unsafe extern "C" fn(this: *mut c_void),
}

/// The operations of [`VirtualBacking`](crate::VirtualBacking). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct VirtualBackingTable {
    /// Writes the unit of commit in bytes: a power of two, the same each time.
    pub granularity: unsafe extern "C" fn(this: *mut c_void, out: *mut u64, error: *mut ErrorRecord) -> u32,
    /// Takes address space.
    pub reserve: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const RequestRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Commits all ranges or none, and writes what is newly mapped and owned.
    pub commit: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Decommits all ranges, and writes what is no longer mapped and owned.
    pub decommit: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Writes what a commit would newly map and own, and changes nothing. Should not block.
    pub cost: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Writes the bytes that are mapped in the region, and changes nothing. Should not block.
    pub committed_bytes:
        unsafe extern "C" fn(this: *mut c_void, region: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
}

/// The operations of [`SharedMapping`](crate::SharedMapping). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct SharedMappingTable {
    /// Takes physical memory for a prefix, and a window to write it through.
    pub create_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const PrefixRequestRecord,
        out: *mut PrefixRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Ends all writing to the prefix. Nobody writes to it during the call. May block. A failure leaves it unsealed.
    pub seal: unsafe extern "C" fn(this: *mut c_void, prefix: u64, error: *mut ErrorRecord) -> u32,
    /// Writes what one more mapping would newly own, and changes nothing. Should not block.
    pub incremental_owned_bytes:
        unsafe extern "C" fn(this: *mut c_void, prefix: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
    /// Maps all or none, and writes what is newly mapped and owned.
    pub map_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        mappings: *const PrefixMapping,
        mapping_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Unmaps all or none, and writes what is no longer mapped and owned.
    pub unmap: unsafe extern "C" fn(
        this: *mut c_void,
        mappings: *const PrefixMapping,
        mapping_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives the handle and its window back, and writes the outcome: all as [`release`](BackingTable::release).
    pub release_prefix:
        unsafe extern "C" fn(this: *mut c_void, prefix: u64, out: *mut OutcomeRecord, error: *mut ErrorRecord) -> u32,
}

/// The operations of [`Transfer`](crate::Transfer). `this` is the backing's. Each blocks until the bytes have arrived; the
/// addresses lie in committed memory of this backing, which stays committed during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct TransferTable {
    /// Copies `bytes` bytes from the device into `into`, which holds as many. A failure may leave anything in them.
    pub read:
        unsafe extern "C" fn(this: *mut c_void, from: u64, into: *mut u8, bytes: usize, error: *mut ErrorRecord) -> u32,
    /// Copies `bytes` bytes from `from` to the device. A failure may leave anything there.
    pub write:
        unsafe extern "C" fn(this: *mut c_void, to: u64, from: *const u8, bytes: usize, error: *mut ErrorRecord) -> u32,
    /// Sets bytes of the device to one value. A failure may leave anything there.
    pub fill: unsafe extern "C" fn(this: *mut c_void, to: u64, bytes: u64, value: u8, error: *mut ErrorRecord) -> u32,
}

/// What the host offers to one backing. It and its context are the host's, valid for the life of the process. After the
/// backing's end every operation but `log` fails with [`WrongState`](crate::ErrorKind::WrongState).
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct HostServicesTable {
    /// Passed back in every call.
    pub context: *const c_void,
    /// Takes one line: level 1 error, 2 warning, 3 information, 4 debugging, 5 tracing.
    pub log: unsafe extern "C" fn(context: *const c_void, level: u32, message: Text),
    /// Writes the 16 bytes of the identity of the domain's books. Does not block. A failure opens no books.
    pub authority: unsafe extern "C" fn(
        context: *const c_void,
        domain: DomainRecord,
        out: *mut [u8; 16],
        error: *mut ErrorRecord,
    ) -> u32,
    /// Charges bytes to the domain.
    pub charge: unsafe extern "C" fn(
        context: *const c_void,
        domain: DomainRecord,
        bytes: u64,
        role: RoleRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives bytes back that this backing charged. Does not block. A failure refunds nothing, and takes the backing out of
    /// service when it asked for more than it had charged.
    pub refund:
        unsafe extern "C" fn(context: *const c_void, domain: DomainRecord, bytes: u64, error: *mut ErrorRecord) -> u32,
}
