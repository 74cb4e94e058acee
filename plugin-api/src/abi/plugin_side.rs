//! Turns a `dyn Backing` into the tables that the host calls: the plugin's side of the boundary.
//!
//! `this` is a `Box<ExportedBacking>`, made by `create` and ended by `destroy`. Every operation catches its panic and
//! answers [`STATUS_PANICKED`]; `destroy`, which answers nothing, logs it. The host's counterpart is `ImportedBacking` in
//! the crate `leasehold`.
//!
//! * `library`: what the library offers, and how a backing is made.
//! * `backing`, `virtual_backing`, `shared_mapping`, `transfer`: the operations, a table in each.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

mod backing;
mod library;
mod shared_mapping;
mod transfer;
mod virtual_backing;

pub(super) use library::plugin;

use super::{ErrorRecord, STATUS_FAILED, STATUS_OK, STATUS_PANICKED, Text};
use crate::{Backing, BackingError, ErrorKind, HostServices};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// What `this` points to.
struct ExportedBacking {
    backing: Box<dyn Backing>,
    services: HostServices,
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

/// Runs an operation on a live backing.
///
/// # Safety
///
/// `this` came from [`library::create`] and is not destroyed during the call; `error` as in [`answer`].
unsafe fn perform(
    this: *mut c_void,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn Backing) -> Result<(), BackingError>,
) -> u32 {
    let operation = || {
        // SAFETY: `create` made it from a box of this type; it is only ever shared until `destroy`.
        let exported = unsafe { &*this.cast::<ExportedBacking>() };
        operation(exported.backing.as_ref())
    };
    // SAFETY: the caller promises the error record.
    unsafe { answer(error, operation) }
}

/// Runs an operation on a live backing whose answer goes to `out`.
///
/// # Safety
///
/// As in [`perform`]; `out` may be written.
unsafe fn produce<R>(
    this: *mut c_void,
    out: *mut R,
    error: *mut ErrorRecord,
    operation: impl FnOnce(&dyn Backing) -> Result<R, BackingError>,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        let answer = operation(backing)?;
        // SAFETY: the caller promises that `out` may be written.
        unsafe { out.write(answer) };
        Ok(())
    };
    // SAFETY: the caller promises a live backing and the error record.
    unsafe { perform(this, error, operation) }
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

fn no_longer_offers(capability: &str) -> BackingError {
    BackingError::new(ErrorKind::Internal, format!("the backing no longer offers {capability}, which it did before"))
}
