//! Addresses as slices, where the CPU can touch them.
#![expect(unsafe_code, reason = "makes slices of memory that a backing has committed")]

use crate::backing::CheckedBacking;
use crate::error::BufferError;
use leasehold_plugin_api::Address;
use std::slice;
use std::sync::Arc;

/// The first `len` bytes at `base`.
///
/// # Safety
///
/// The backing answered `base` for a region or an allocation that is live, and has committed at least `len` bytes of it;
/// both stay so, and nobody writes to them, for `'a`.
pub(super) unsafe fn of<'a>(backing: &CheckedBacking, base: Address, len: u64) -> Result<&'a [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: the CPU can touch the memory (`host_len`), which makes committed bytes initialised memory of this process
    // (`HostAccess::direct`); the caller promises that they are committed, and unchanged for `'a`.
    Ok(unsafe { slice::from_raw_parts(base.to_pointer(), len) })
}

/// As [`of`], to write.
///
/// # Safety
///
/// As [`of`]; and nobody else reads or writes the bytes for `'a`.
pub(super) unsafe fn of_mut<'a>(
    backing: &CheckedBacking,
    base: Address,
    len: u64,
) -> Result<&'a mut [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: as in `of`; the caller promises that the bytes are nobody else's for `'a`.
    Ok(unsafe { slice::from_raw_parts_mut(base.to_pointer(), len) })
}

/// The length as the CPU counts, where it can touch the memory at all.
fn host_len(backing: &CheckedBacking, len: u64) -> Result<usize, BufferError> {
    let is_direct = backing.description().host_access.is_direct();
    let len = usize::try_from(len).ok().filter(|len| is_direct && isize::try_from(*len).is_ok());
    len.ok_or_else(|| BufferError::NotHostAccessible { backing: Arc::clone(backing.name()) })
}
