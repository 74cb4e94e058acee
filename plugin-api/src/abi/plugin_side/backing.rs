//! The operations of a backing, discovery and end included.
#![expect(unsafe_code, reason = "the functions behind C-shaped tables take raw pointers")]

use super::super::{
    AccountingRecord, BackingTable, DescriptionRecord, ErrorRecord, OutcomeRecord, RegionRecord, RequestRecord,
    SharedMappingTable, TargetRecord, Text, TransferTable, VirtualBackingTable,
};
use super::shared_mapping::SHARED_MAPPING;
use super::transfer::TRANSFER;
use super::virtual_backing::VIRTUAL_BACKING;
use super::{ExportedBacking, produce, text};
use crate::{Backing, BackingError, LogLevel};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

pub(super) static BACKING: BackingTable = BackingTable {
    describe,
    accounting,
    allocate,
    release,
    trim,
    virtual_backing,
    shared_mapping,
    transfer,
    extension,
    destroy,
};

/// # Safety
///
/// As in [`BackingTable::describe`].
unsafe extern "C" fn describe(this: *mut c_void, out: *mut DescriptionRecord, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(DescriptionRecord::from_description(&backing.describe()))) }
}

/// # Safety
///
/// As in [`BackingTable::accounting`].
unsafe extern "C" fn accounting(this: *mut c_void, out: *mut AccountingRecord, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(backing.accounting().into())) }
}

/// # Safety
///
/// As in [`BackingTable::allocate`].
unsafe extern "C" fn allocate(
    this: *mut c_void,
    request: *const RequestRecord,
    out: *mut RegionRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the request for the call.
        let request = unsafe { &*request };
        backing.allocate(&request.allocate()).map(RegionRecord::from)
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`BackingTable::release`].
unsafe extern "C" fn release(
    this: *mut c_void,
    target: *const TargetRecord,
    out: *mut OutcomeRecord,
    error: *mut ErrorRecord,
) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the target for the call.
        let target = unsafe { *target };
        let target =
            target.target().ok_or_else(|| BackingError::invalid("the kind of what to release is not known"))?;
        Ok(backing.release(target).into())
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`BackingTable::trim`].
unsafe extern "C" fn trim(this: *mut c_void, bytes: u64, out: *mut u64, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| backing.trim(bytes)) }
}

/// The table of a capability, or null where the backing hasn't got it.
fn offered<C, T>(capability: Option<C>, table: &'static T) -> *const T {
    capability.map_or(ptr::null(), |_| ptr::from_ref(table))
}

/// # Safety
///
/// As in [`BackingTable::virtual_backing`].
unsafe extern "C" fn virtual_backing(
    this: *mut c_void,
    out: *mut *const VirtualBackingTable,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(offered(backing.as_virtual_backing(), &VIRTUAL_BACKING))) }
}

/// # Safety
///
/// As in [`BackingTable::shared_mapping`].
unsafe extern "C" fn shared_mapping(
    this: *mut c_void,
    out: *mut *const SharedMappingTable,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(offered(backing.as_shared_mapping(), &SHARED_MAPPING))) }
}

/// # Safety
///
/// As in [`BackingTable::transfer`].
unsafe extern "C" fn transfer(this: *mut c_void, out: *mut *const TransferTable, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, |backing| Ok(offered(backing.as_transfer(), &TRANSFER))) }
}

/// # Safety
///
/// As in [`BackingTable::extension`].
unsafe extern "C" fn extension(this: *mut c_void, id: Text, out: *mut *const c_void, error: *mut ErrorRecord) -> u32 {
    let operation = |backing: &dyn Backing| {
        // SAFETY: the host lends the text for the call.
        let id = unsafe { text(id) }?;
        Ok(backing.extension(&id).map_or(ptr::null(), |extension| extension.0))
    };
    // SAFETY: the host keeps the rules of the table.
    unsafe { produce(this, out, error, operation) }
}

/// # Safety
///
/// As in [`BackingTable::destroy`].
unsafe extern "C" fn destroy(this: *mut c_void) {
    // SAFETY: `create` made it from a box of this type, and the host calls this once.
    let exported = unsafe { Box::from_raw(this.cast::<ExportedBacking>()) };
    let ExportedBacking { backing, services } = *exported;
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(backing))) {
        services.log(LogLevel::Error, &format!("its end: {}", BackingError::from_panic("the plugin", payload)));
    }
}
