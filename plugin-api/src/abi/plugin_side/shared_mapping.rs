//! The operations of shared mapping.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::super::{ChangeRecord, ErrorRecord, OutcomeRecord, PrefixRecord, PrefixRequestRecord, SharedMappingTable};
use super::{elements, no_longer_offers, perform, produce};
use crate::{Backing, BackingError, Change, PrefixId, PrefixMapping, SharedMapping};
use std::ffi::c_void;

pub(super) static SHARED_MAPPING: SharedMappingTable =
    SharedMappingTable { create_prefix, seal, incremental_owned_bytes, map_prefix, unmap, release_prefix };

fn shared_of(backing: &dyn Backing) -> Result<&dyn SharedMapping, BackingError> {
    backing.as_shared_mapping().ok_or_else(|| no_longer_offers("shared mapping"))
}

/// # Safety
///
/// As in [`SharedMappingTable::create_prefix`].
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
/// As in [`SharedMappingTable::seal`].
unsafe extern "C" fn seal(this: *mut c_void, prefix: u64, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| shared_of(backing)?.seal(PrefixId::new(prefix));
    // SAFETY: the host keeps the rules of the table.
    unsafe { perform(this, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable::incremental_owned_bytes`].
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
/// As in [`SharedMappingTable::map_prefix`].
unsafe fn on_mappings(
    this: *mut c_void,
    (first, count): (*const PrefixMapping, usize),
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn SharedMapping, &[PrefixMapping]) -> Result<Change, BackingError>,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the mappings for the call.
        let mappings = unsafe { elements(first, count) };
        operation(shared_of(backing)?, mappings).map(ChangeRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`SharedMappingTable::map_prefix`].
unsafe extern "C" fn map_prefix(
    this: *mut c_void,
    mappings: *const PrefixMapping,
    mapping_count: usize,
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_mappings(this, (mappings, mapping_count), out, error, |shared, all| shared.map_prefix(all)) }
}

/// # Safety
///
/// As in [`SharedMappingTable::unmap`].
unsafe extern "C" fn unmap(
    this: *mut c_void,
    mappings: *const PrefixMapping,
    mapping_count: usize,
    out: *mut ChangeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { on_mappings(this, (mappings, mapping_count), out, error, |shared, all| shared.unmap(all)) }
}

/// # Safety
///
/// As in [`SharedMappingTable::release_prefix`].
unsafe extern "C" fn release_prefix(
    this: *mut c_void,
    prefix: u64,
    out: *mut OutcomeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| Ok(shared_of(backing)?.release_prefix(PrefixId::new(prefix)).into());
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}
