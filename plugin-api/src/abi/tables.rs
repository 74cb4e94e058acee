//! The operations that cross the boundary.
//!
//! Rules that hold for every operation, on both sides. What stands above an operation comes on top of them, or says where
//! it differs.
//!
//! * **Pointers.** `this` and `context` are the pointers that came with the table, live during the call; nobody but
//!   their owner looks behind them. A service's `context` is a number. Every other pointer is the caller's: non-null,
//!   aligned, not aliased, and valid for the call alone. Slices and texts may be empty, and their pointer is then not
//!   looked at. Nothing is freed by the side that did not allocate it.
//! * **Answers.** The answer is a status, `STATUS_…`. `out` is written on success, `error` on failure, neither otherwise.
//!   A status that is not known is a failure of kind [`Unintelligible`](crate::ErrorKind::Unintelligible).
//! * **Failures.** A failed operation has changed nothing, unless it says otherwise. After a panic, a lost device or an
//!   unknown status nobody can tell: the host takes the backing out of service, asks it what is left, and gives back by
//!   the ids that it minted. A failure of kind [`BrokenOff`](crate::ErrorKind::BrokenOff) says that undoing failed: the
//!   objects of the call are in doubt, and the backing stays in service.
//! * **Threads.** Any thread may call, and different calls may be under way at the same time, but never two about the
//!   same region, allocation or prefix.
//! * **Blocking.** A call may wait for the system or a driver. Neither side holds a lock of its own across a call into the
//!   other: a call of a service may come back into the same backing on the same thread.
//! * **Unwinding.** Nothing unwinds across: each side catches its own panics.
//! * **Lifetime.** Tables are never changed and valid for the life of the process: a library is never unloaded.

use super::{
    AccessRecord, AccountingRecord, BackingInstance, ChangeRecord, CreateRequest, DescriptionRecord, DomainRecord,
    ErrorRecord, OutcomeRecord, PrefixRecord, PrefixRequestRecord, RegionRecord, RequestRecord, RoleRecord,
    TargetRecord, Text,
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
    /// Whether the CPU can touch the memory of its backings: the claim of the type that implements them, for each alike.
    pub access: AccessRecord,
    /// Passed back to `create`.
    pub context: *const c_void,
    /// Makes a backing.
    ///
    /// `request` and its options are lent for the call; the services in it are the host's, valid for the life of the
    /// process. `out` then holds a pointer that is the plugin's, live until the host passes it to
    /// [`destroy`](BackingTable::destroy), exactly once. May block for as long as a driver takes to start. A failure of
    /// any kind leaves no backing behind; what was charged is refunded by the host.
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
    ///
    /// Asked at creation and at every admission, so it should not block.
    pub describe: unsafe extern "C" fn(this: *mut c_void, out: *mut DescriptionRecord, error: *mut ErrorRecord) -> u32,
    /// Writes who pays: the same each time.
    ///
    /// Asked at creation and at every admission, so it should not block.
    pub accounting: unsafe extern "C" fn(this: *mut c_void, out: *mut AccountingRecord, error: *mut ErrorRecord) -> u32,
    /// Hands out memory that is committed as a whole.
    ///
    /// The memory at the address in `out` is the host's to use until [`release`](BackingTable::release). May block, and
    /// may charge the host's services. A failure leaves no allocation behind.
    pub allocate: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const RequestRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives a region, with whatever is committed in it, or an allocation back, and writes the outcome.
    ///
    /// Nobody touches the memory any more. May block. How far it came is told by the outcome, a part of the answer of a
    /// call that succeeded, with its reason in it; `error` is for a call that came to no outcome. Every failure, an
    /// unknown status included, counts as quarantined with everything remaining.
    pub release: unsafe extern "C" fn(
        this: *mut c_void,
        target: *const TargetRecord,
        out: *mut OutcomeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives up memory that is owned but behind nothing, about `bytes` bytes of it, and writes what is owned no longer.
    ///
    /// May block, and may refund to the host's services. May be asked on a thread on which a call into another backing is
    /// under way, or a charge that this very backing makes. A failure may have given some of it up.
    pub trim: unsafe extern "C" fn(this: *mut c_void, bytes: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
    /// Writes the table of the virtual backing, or null where there is none: the same each time.
    ///
    /// Asked at creation, at every admission, and after some failures, so it should not block. The table takes this very
    /// `this`.
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
    ///
    /// The text is lent for the call. The table is valid for as long as the backing lives. Should not block.
    pub extension:
        unsafe extern "C" fn(this: *mut c_void, id: Text, out: *mut *const c_void, error: *mut ErrorRecord) -> u32,
    /// Ends the backing; `this` is dead from then on, and what the backing still owns goes with it.
    ///
    /// No other call is under way, and none follows; it may come on any thread. May block. It can't fail: what goes wrong
    /// is logged through the host's services.
    pub destroy: unsafe extern "C" fn(this: *mut c_void),
}

/// The operations of [`VirtualBacking`](crate::VirtualBacking). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct VirtualBackingTable {
    /// Writes the unit of commit in bytes: a power of two, the same each time.
    ///
    /// Asked at creation and at every admission, so it should not block.
    pub granularity: unsafe extern "C" fn(this: *mut c_void, out: *mut u64, error: *mut ErrorRecord) -> u32,
    /// Takes address space.
    ///
    /// The addresses in `out` are the host's until [`release`](BackingTable::release). May block. A failure leaves no
    /// region behind.
    pub reserve: unsafe extern "C" fn(
        this: *mut c_void,
        request: *const RequestRecord,
        out: *mut RegionRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Commits all ranges or none, and writes what is newly mapped and owned.
    ///
    /// The bytes are the host's to use until they are decommitted or their region is released. May block, and may charge
    /// the host's services. A failure leaves every range as it was.
    pub commit: unsafe extern "C" fn(
        this: *mut c_void,
        ranges: *const CommitRange,
        range_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Decommits all ranges, and writes what is no longer mapped and owned.
    ///
    /// Nobody touches the bytes any more. May block, and may refund to the host's services. A failure may leave a range
    /// partly decommitted, from its end backwards; the host asks [`committed_bytes`](Self::committed_bytes) for the rest.
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
    /// Writes the bytes that commits have put into the region, mapped prefixes not counted, and changes nothing. Should not
    /// block.
    ///
    /// Also asked of a backing that is out of service.
    pub committed_bytes:
        unsafe extern "C" fn(this: *mut c_void, region: u64, out: *mut u64, error: *mut ErrorRecord) -> u32,
}

/// The operations of [`SharedMapping`](crate::SharedMapping). `this` is the backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct SharedMappingTable {
    /// Takes physical memory for a prefix, and a window to write it through.
    ///
    /// The window in `out` is the host's to write until [`seal`](Self::seal), and to read until
    /// [`release_prefix`](Self::release_prefix). May block, and may charge the host's services. A failure leaves no
    /// prefix behind.
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
    ///
    /// The places are the host's to read until they are unmapped or their region is released. May block. A failure leaves
    /// nothing mapped.
    pub map_prefix: unsafe extern "C" fn(
        this: *mut c_void,
        mappings: *const PrefixMapping,
        mapping_count: usize,
        out: *mut ChangeRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Unmaps all or none, and writes what is no longer mapped and owned.
    ///
    /// Nobody reads the places any more. May block. A failure leaves every mapping as it was.
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

/// What the host offers to its backings: one table for all of them.
///
/// `context` is the number that came with the request to make the backing. It is no pointer, and the host never uses it
/// twice: after the backing's end every operation but `log` fails with [`WrongState`](crate::ErrorKind::WrongState), on any
/// thread and however much later. So it does with a number that is no backing's.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct HostServicesTable {
    /// Takes one line: level 1 error, 2 warning, 3 information, 4 debugging, 5 tracing.
    ///
    /// The text is lent for the call. May block on the program's log sink. It can't fail; after the backing's end the line
    /// has no backing's name.
    pub log: unsafe extern "C" fn(context: u64, level: u32, message: Text),
    /// Writes the 16 bytes of the identity of the domain's books. Does not block. A failure opens no books.
    pub authority:
        unsafe extern "C" fn(context: u64, domain: DomainRecord, out: *mut [u8; 16], error: *mut ErrorRecord) -> u32,
    /// Charges bytes to the domain.
    ///
    /// May block on others who make room, and may come back into this backing on this thread. A failure charges nothing.
    pub charge: unsafe extern "C" fn(
        context: u64,
        domain: DomainRecord,
        bytes: u64,
        role: RoleRecord,
        error: *mut ErrorRecord,
    ) -> u32,
    /// Gives bytes back that this backing charged. Does not block. A failure refunds nothing, and takes the backing out of
    /// service when it asked for more than it had charged.
    pub refund: unsafe extern "C" fn(context: u64, domain: DomainRecord, bytes: u64, error: *mut ErrorRecord) -> u32,
}
