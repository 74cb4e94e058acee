//! The operations of a virtual backing.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::super::{ChangeRecord, ErrorRecord, RegionRecord, RequestRecord, VirtualBackingTable};
use super::{elements, no_longer_offers, produce};
use crate::{Backing, BackingError, Change, CommitRange, RegionId, VirtualBacking};
use std::ffi::c_void;

pub(super) static VIRTUAL_BACKING: VirtualBackingTable =
    VirtualBackingTable { granularity, reserve, commit, decommit, cost, committed_bytes };

fn virtual_of(backing: &dyn Backing) -> Result<&dyn VirtualBacking, BackingError> {
    backing.as_virtual_backing().ok_or_else(|| no_longer_offers("virtual backing"))
}

/// # Safety
///
/// As in [`VirtualBackingTable::granularity`].
unsafe extern "C" fn granularity(this: *mut c_void, out: *mut u64, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(virtual_of(backing)?.granularity())) }
}

/// # Safety
///
/// As in [`VirtualBackingTable::reserve`].
unsafe extern "C" fn reserve(
    this: *mut c_void,
    request: *const RequestRecord,
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
/// As in [`VirtualBackingTable::commit`].
unsafe fn on_ranges(
    this: *mut c_void,
    (first, count): (*const CommitRange, usize),
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn VirtualBacking, &[CommitRange]) -> Result<Change, BackingError>,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the ranges for the call.
        let ranges = unsafe { elements(first, count) };
        operation(virtual_of(backing)?, ranges).map(ChangeRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`VirtualBackingTable::commit`].
unsafe extern "C" fn commit(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.commit(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable::decommit`].
unsafe extern "C" fn decommit(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.decommit(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable::cost`].
unsafe extern "C" fn cost(
    this: *mut c_void,
    ranges: *const CommitRange,
    range_count: usize,
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_ranges(this, (ranges, range_count), out, error, |backing, ranges| backing.cost(ranges)) }
}

/// # Safety
///
/// As in [`VirtualBackingTable::committed_bytes`].
unsafe extern "C" fn committed_bytes(this: *mut c_void, region: u64, out: *mut u64, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| virtual_of(backing)?.committed_bytes(RegionId::new(region));
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}
