//! The driver's calls, one function each: plain values in, a [`Fault`] out where the driver refuses.
//!
//! The functions are found once by name (`table`) and called through pointers whose answer is a `u32`, the size of
//! `CUresult`: a code that cudarc's enumeration doesn't list would be undefined there. `queries` can be called with any
//! values, `owned` needs values that are alive or the caller's. Structs are cudarc's.
//!
//! Nothing here keeps anything, and nothing chooses a context: who owns what, and in which context a call is made, is
//! the business of the types above. Every function may be called from any thread. None panics.

mod owned;
mod queries;
mod table;

pub(crate) use table::Calls;

use crate::error::Fault;
use std::ffi::{c_int, c_uint, c_void};

/// The driver's structs.
pub(crate) mod raw {
    pub(crate) use cudarc::driver::sys::{
        CUmemAccess_flags_enum, CUmemAccessDesc, CUmemAllocationHandleType_enum, CUmemAllocationProp,
        CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType_enum, CUmemLocation, CUmemLocationType_enum,
    };
}

/// `CUcontext` and `CUstream`: pointers that only the driver follows.
pub(crate) type Opaque = *mut c_void;

/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
pub(crate) const VIRTUAL_MEMORY_SUPPORTED: c_int = 102;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
pub(crate) const COMPUTE_MODE: c_int = 20;

/// `CU_COMPUTEMODE_PROHIBITED`: no process may make a context.
pub(crate) const PROHIBITED: c_int = 2;

/// `CU_POINTER_ATTRIBUTE_MAPPED`: "a boolean that indicates if this pointer is in a valid address range that is mapped to a
/// backing allocation".
pub(crate) const MAPPED: c_int = 13;

/// `CU_STREAM_NON_BLOCKING`: neither waits for the default stream nor is waited for by it.
pub(crate) const NON_BLOCKING: c_uint = 1;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
pub(crate) const RELAXED: c_uint = 2;

/// A code as the outcome of a call.
fn outcome(call: &'static str, code: c_uint) -> Result<(), Fault> {
    if code == 0 { Ok(()) } else { Err(Fault::of_call(call, code)) }
}

/// A size that this machine can't name is more than there is.
fn length(call: &'static str, bytes: u64) -> Result<usize, Fault> {
    usize::try_from(bytes).map_err(|_| Fault::out_of_memory(call))
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
