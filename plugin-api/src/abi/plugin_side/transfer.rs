//! The operations of transfers.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::super::{ErrorRecord, TransferTable};
use super::{elements, no_longer_offers, perform};
use crate::{Address, Backing, BackingError, Transfer};
use std::ffi::c_void;
use std::slice;

pub(super) static TRANSFER: TransferTable = TransferTable { read, write, fill };

fn transfer_of(backing: &dyn Backing) -> Result<&dyn Transfer, BackingError> {
    backing.as_transfer().ok_or_else(|| no_longer_offers("transfer"))
}

/// # Safety
///
/// As in [`TransferTable::read`].
unsafe extern "C" fn read(this: *mut c_void, from: u64, into: *mut u8, bytes: usize, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| {
        let transfer = transfer_of(backing)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the host lends as many writable bytes for the call.
        let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
        transfer.read(Address::new(from), into)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { perform(this, error, operation) }
}

/// # Safety
///
/// As in [`TransferTable::write`].
unsafe extern "C" fn write(this: *mut c_void, to: u64, from: *const u8, bytes: usize, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the bytes for the call.
        let from = unsafe { elements(from, bytes) };
        transfer_of(backing)?.write(Address::new(to), from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { perform(this, error, operation) }
}

/// # Safety
///
/// As in [`TransferTable::fill`].
unsafe extern "C" fn fill(this: *mut c_void, to: u64, bytes: u64, value: u8, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| transfer_of(backing)?.fill(Address::new(to), bytes, value);
    // SAFETY: the host keeps the rules of the table.
    unsafe { perform(this, error, operation) }
}
