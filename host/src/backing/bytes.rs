//! Addresses as slices, where the CPU can touch them.
#![expect(unsafe_code, reason = "makes slices of memory that a backing has committed")]

use super::CheckedBacking;
use crate::error::{BufferError, Operation};
use leasehold_plugin_api::Address;
use std::slice;
use std::sync::Arc;

/// The first `len` bytes at `base`.
///
/// # Safety
///
/// The backing answered `base` for a region, an allocation or a prefix that is live, or it lies within one, and at least
/// `len` bytes from there are committed or mapped; both stay so, and nobody writes to them, for `'a`.
pub(crate) unsafe fn of<'a>(backing: &CheckedBacking, base: Address, len: u64) -> Result<&'a [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: the CPU can touch the memory (`host_len`), which makes committed bytes initialised memory of this process
    // (`HostAccess::direct`) that is taken away through the host's backing alone, and in a forked child a private copy of
    // it (`direct_and_copied_by_fork`); the caller promises that they are committed, and unchanged for `'a`.
    Ok(unsafe { slice::from_raw_parts(base.to_pointer(), len) })
}

/// As [`of`], to write.
///
/// # Safety
///
/// As [`of`]; the bytes are not those of a sealed prefix, and nobody else reads or writes them for `'a`.
pub(crate) unsafe fn of_mut<'a>(
    backing: &CheckedBacking,
    base: Address,
    len: u64,
) -> Result<&'a mut [u8], BufferError> {
    let len = host_len(backing, len)?;
    // SAFETY: as in `of`; the caller promises that the bytes are nobody else's for `'a`.
    Ok(unsafe { slice::from_raw_parts_mut(base.to_pointer(), len) })
}

/// The length as the CPU counts, where it can touch the memory at all. A forked child has only what the fork copied.
fn host_len(backing: &CheckedBacking, len: u64) -> Result<usize, BufferError> {
    let access = backing.capabilities().host_access();
    if !access.is_copied_by_fork() {
        backing.check_process(Operation::Lend).map_err(BufferError::Forked)?;
    }
    let len = usize::try_from(len).ok().filter(|len| access.is_direct() && isize::try_from(*len).is_ok());
    len.ok_or_else(|| BufferError::NotHostAccessible { backing: Arc::clone(backing.name()) })
}
