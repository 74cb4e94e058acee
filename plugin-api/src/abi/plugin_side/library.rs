//! What the library offers, and how one of its backings is made.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::super::{
    BackingEntry, BackingInstance, CreateRequest, ErrorRecord, OptionRecord, PluginTable, TABLES_VERSION, Text,
};
use super::super::{LIST_ELEMENT, LIST_EMPTY, LIST_NONE, OPTION_BOOLEAN, OPTION_FLOAT, OPTION_INTEGER, OPTION_TEXT};
use super::backing::BACKING;
use super::{ExportedBacking, answer, elements, text};
use crate::{BackingError, BackingRegistration, HostServices, OptionValue, Options};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::OnceLock;

/// Put together once for the library, however often it is opened.
static OFFER: OnceLock<Offer> = OnceLock::new();

struct Offer {
    /// Invariant 1: neither it nor what it points to is ever changed.
    table: PluginTable,
}

// SAFETY: by invariant 1 whoever has it can only read, and what it points to lives for ever.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

/// Every backing that is linked into this library.
pub(in crate::abi) extern "C" fn plugin() -> *const PluginTable {
    let table = catch_unwind(|| ptr::from_ref(&OFFER.get_or_init(Offer::of_this_library).table));
    table.unwrap_or_else(|payload| {
        // It may panic again when it is dropped, and nobody is there yet to be told of it.
        std::mem::forget(payload);
        ptr::null()
    })
}

impl Offer {
    fn of_this_library() -> Self {
        let entries: &'static [_] = BackingRegistration::linked_in().into_iter().map(entry).collect::<Vec<_>>().leak();
        let (first, count) = (entries.as_ptr(), entries.len());
        Self { table: PluginTable { version: TABLES_VERSION, entries: first, entry_count: count } }
    }
}

fn entry(registration: &'static BackingRegistration) -> BackingEntry {
    BackingEntry {
        name: Text::borrow(registration.name()),
        summary: Text::borrow(registration.summary()),
        package: Text::borrow(registration.package()),
        package_version: Text::borrow(registration.version()),
        access: registration.access().into(),
        context: ptr::from_ref(registration).cast(),
        create,
    }
}

/// # Safety
///
/// As in [`BackingEntry::create`].
unsafe extern "C" fn create(
    context: *const c_void,
    request: *const CreateRequest,
    out: *mut BackingInstance,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = || {
        // SAFETY: `context` is what `entry` put there: a registration that lives for ever.
        let registration = unsafe { &*context.cast::<BackingRegistration>() };
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        // SAFETY: the host lends the options for the call.
        let options = unsafe { elements(request.options, request.option_count) };
        // SAFETY: as above.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the host promises a table that is valid for the life of the process.
        let services = unsafe { HostServices::from_table(request.services, request.services_context) };
        let exported = Box::new(ExportedBacking { backing: registration.create(&options, services)?, services });
        let made = BackingInstance { this: Box::into_raw(exported).cast(), table: &raw const BACKING };
        // SAFETY: the host lends the out-parameter for the call.
        unsafe { out.write(made) };
        Ok(())
    };
    // SAFETY: the host lends the error record for the call.
    unsafe { answer(error, operation) }
}

/// # Safety
///
/// The texts of the records are lent for the call.
unsafe fn read_options(records: &[OptionRecord]) -> Result<Options, BackingError> {
    let mut options: Vec<(String, OptionValue)> = Vec::new();
    for record in records {
        // SAFETY: the caller promises the key.
        let key = unsafe { text(record.key) }?;
        if record.list == LIST_EMPTY {
            options.push((key, OptionValue::List(Vec::new())));
            continue;
        }
        // SAFETY: the caller promises the value's text.
        let value = unsafe { read_option(record) }?;
        match options.last_mut() {
            Some((last, OptionValue::List(list))) if record.list == LIST_ELEMENT && *last == key => list.push(value),
            _ if record.list == LIST_ELEMENT => options.push((key, OptionValue::List(vec![value]))),
            _ if record.list == LIST_NONE => options.push((key, value)),
            _ => return Err(BackingError::invalid(format!("option {key:?} has a list mark that is not known"))),
        }
    }
    Ok(options.into_iter().fold(Options::new(), |options, (key, value)| options.with(key, value)))
}

/// # Safety
///
/// The text of the record is lent for the call.
unsafe fn read_option(record: &OptionRecord) -> Result<OptionValue, BackingError> {
    match record.kind {
        OPTION_BOOLEAN => Ok(OptionValue::Boolean(record.integer != 0)),
        OPTION_INTEGER => Ok(OptionValue::Integer(record.integer)),
        OPTION_FLOAT => Ok(OptionValue::Float(record.float)),
        // SAFETY: the caller promises the text.
        OPTION_TEXT => Ok(OptionValue::Text(unsafe { text(record.text) }?)),
        kind => Err(BackingError::invalid(format!("an option is of kind {kind}, which is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_put_together_once() {
        assert!(!plugin().is_null());
        assert!(ptr::eq(plugin(), plugin()));
    }
}
