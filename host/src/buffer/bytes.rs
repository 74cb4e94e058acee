//! Addresses as slices, where the CPU can touch them.
#![expect(unsafe_code, reason = "makes slices of memory that a backing has committed")]

use crate::backing::CheckedBacking;
use crate::error::BufferError;
use leasehold_plugin_api::{Address, HostAccess};
use std::slice;
use std::sync::Arc;

/// The first `len` bytes at `base`, for as long as `owner` is borrowed. The caller has committed them at `base`, and
/// keeps them committed while `owner` is shared.
pub(super) fn of<'a, Owner>(
    backing: &CheckedBacking,
    _owner: &'a Owner,
    base: Address,
    len: u64,
) -> Result<&'a [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: the backing says that the CPU can touch its memory, and it answered `base` for a region of which at least
    // `len` bytes are committed; they stay so while `owner`, whose growing and shrinking need it exclusively, is
    // borrowed. Committed memory is initialised: it reads as zero, or as what was written.
    Ok(unsafe { slice::from_raw_parts(base.to_pointer(), len) })
}

/// As [`of`], to write.
pub(super) fn of_mut<'a, Owner>(
    backing: &CheckedBacking,
    _owner: &'a mut Owner,
    base: Address,
    len: u64,
) -> Result<&'a mut [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: as in `of`; and nobody else has the bytes, since no two live regions overlap and `owner` is borrowed
    // exclusively.
    Ok(unsafe { slice::from_raw_parts_mut(base.to_pointer(), len) })
}

/// The length as the CPU counts, where it can touch the memory at all.
fn host_len(backing: &CheckedBacking, len: u64) -> Result<usize, BufferError> {
    let refuse = || BufferError::NotHostAccessible { backing: Arc::clone(backing.name()) };
    match backing.description().host_access {
        HostAccess::Direct => usize::try_from(len).ok().filter(|len| isize::try_from(*len).is_ok()).ok_or_else(refuse),
        HostAccess::None => Err(refuse()),
    }
}
