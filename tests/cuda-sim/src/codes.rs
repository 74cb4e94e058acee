//! The driver's codes: number and name.

use std::ffi::CStr;

/// A `CUresult` that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

/// What a call answers.
pub(crate) type Answer<T> = Result<T, Code>;

impl Code {
    pub(crate) const INVALID_VALUE: Code = Code(1);
    pub(crate) const OUT_OF_MEMORY: Code = Code(2);
    pub(crate) const NOT_INITIALIZED: Code = Code(3);
    pub(crate) const NO_DEVICE: Code = Code(100);
    pub(crate) const INVALID_DEVICE: Code = Code(101);
    pub(crate) const INVALID_CONTEXT: Code = Code(201);
    pub(crate) const INVALID_HANDLE: Code = Code(400);
    pub(crate) const ILLEGAL_STATE: Code = Code(401);
    pub(crate) const ILLEGAL_ADDRESS: Code = Code(700);
    pub(crate) const CONTEXT_IS_DESTROYED: Code = Code(709);
    pub(crate) const NOT_SUPPORTED: Code = Code(801);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Code = Code(900);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Code = Code(906);
    pub(crate) const UNKNOWN: Code = Code(999);

    /// Its name, where it is one that tests use: CUDA Driver API, `CUresult`.
    pub(crate) fn name(code: u32) -> Option<&'static CStr> {
        NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
    }
}

const NAMES: [(u32, &CStr); 23] = [
    (0, c"CUDA_SUCCESS"),
    (1, c"CUDA_ERROR_INVALID_VALUE"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED"),
    (4, c"CUDA_ERROR_DEINITIALIZED"),
    (34, c"CUDA_ERROR_STUB_LIBRARY"),
    (100, c"CUDA_ERROR_NO_DEVICE"),
    (101, c"CUDA_ERROR_INVALID_DEVICE"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT"),
    (205, c"CUDA_ERROR_MAP_FAILED"),
    (206, c"CUDA_ERROR_UNMAP_FAILED"),
    (400, c"CUDA_ERROR_INVALID_HANDLE"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE"),
    (600, c"CUDA_ERROR_NOT_READY"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (999, c"CUDA_ERROR_UNKNOWN"),
];
