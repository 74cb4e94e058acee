//! The table of the driver's functions: each looked up by its symbol, none called here.
#![expect(unsafe_code, reason = "looks functions up by their names")]

use super::{Opaque, raw};
use libloading::Library;
use std::ffi::{c_int, c_uchar, c_uint, c_ulonglong, c_void};

/// Declares the table of functions: field, name as documented, symbol, parameters. Behind `(optional)` are those that older
/// drivers lack.
macro_rules! calls {
    (
        $($field:ident: $call:literal, $symbol:ident, ($($parameter:ty),*);)*
        (optional) $($newer:ident: $newer_call:literal, $newer_symbol:ident, ($($newer_parameter:ty),*);)*
    ) => {
        /// The driver's functions that this library calls.
        ///
        /// Invariant 1: each pointer is the function of that symbol, with the parameters that the CUDA Driver API
        /// documents and cudarc's bindings declare. [`Calls::find`] demands it of the library.
        ///
        /// Invariant 2: the library stays loaded for as long as the table is used. [`Calls::find`] demands it.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Calls {
            $(pub(super) $field: unsafe extern "C" fn($($parameter),*) -> c_uint,)*
            $(pub(super) $newer: Option<unsafe extern "C" fn($($newer_parameter),*) -> c_uint>,)*
        }

        impl Calls {
            /// Looks every function up.
            ///
            /// # Errors
            ///
            /// The first symbol that the library lacks.
            ///
            /// # Safety
            ///
            /// What the library has under these names are the CUDA driver's functions, and it stays loaded for as long
            /// as the table is used.
            pub(crate) unsafe fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        let symbol = concat!(stringify!($symbol), "\0").as_bytes();
                        // SAFETY: the function of that name has these parameters (1); a `CUresult` is a 32-bit number.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($parameter),*) -> c_uint>(symbol) };
                        *found.map_err(|_| stringify!($symbol))?
                    },)*
                    $($newer: {
                        let symbol = concat!(stringify!($newer_symbol), "\0").as_bytes();
                        // SAFETY: as above.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($newer_parameter),*) -> c_uint>(symbol)
                        };
                        found.ok().map(|function| *function)
                    },)*
                })
            }
        }

        /// What a function is called in the documentation.
        pub(super) mod named {
            $(
                #[expect(non_upper_case_globals, reason = "as the fields of `Calls`")]
                pub(in crate::sys) const $field: &str = $call;
            )*
            $(
                #[expect(non_upper_case_globals, reason = "as the fields of `Calls`")]
                pub(in crate::sys) const $newer: &str = $newer_call;
            )*
        }

        /// The sizes of each function's parameters, here and in cudarc's bindings.
        #[cfg(test)]
        fn sizes() -> Vec<(&'static str, Vec<usize>, Vec<usize>)> {
            use tests::{Sizes, inferred};
            vec![$({
                let bound: unsafe fn($(inferred!($parameter)),*) -> _ = cudarc::driver::sys::$symbol;
                let ours = <unsafe fn($($parameter),*) -> c_uint as Sizes>::of_type();
                (stringify!($symbol), ours, bound.of_value())
            },)* $({
                let bound: unsafe fn($(inferred!($newer_parameter)),*) -> _ = cudarc::driver::sys::$newer_symbol;
                let ours = <unsafe fn($($newer_parameter),*) -> c_uint as Sizes>::of_type();
                (stringify!($newer_symbol), ours, bound.of_value())
            },)*]
        }
    };
}

calls! {
    init: "cuInit", cuInit, (c_uint);
    version: "cuDriverGetVersion", cuDriverGetVersion, (*mut c_int);
    count: "cuDeviceGetCount", cuDeviceGetCount, (*mut c_int);
    device: "cuDeviceGet", cuDeviceGet, (*mut c_int, c_int);
    name: "cuDeviceGetName", cuDeviceGetName, (*mut u8, c_int, c_int);
    total: "cuDeviceTotalMem", cuDeviceTotalMem_v2, (*mut usize, c_int);
    attribute: "cuDeviceGetAttribute", cuDeviceGetAttribute, (*mut c_int, c_int, c_int);
    can_reach: "cuDeviceCanAccessPeer", cuDeviceCanAccessPeer, (*mut c_int, c_int, c_int);
    retain_context: "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, (*mut Opaque, c_int);
    release_context: "cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2, (c_int);
    current: "cuCtxGetCurrent", cuCtxGetCurrent, (*mut Opaque);
    set_current: "cuCtxSetCurrent", cuCtxSetCurrent, (Opaque);
    synchronise: "cuCtxSynchronize", cuCtxSynchronize, ();
    info: "cuMemGetInfo", cuMemGetInfo_v2, (*mut usize, *mut usize);
    granularity: "cuMemGetAllocationGranularity", cuMemGetAllocationGranularity,
        (*mut usize, *const raw::CUmemAllocationProp, c_uint);
    reserve: "cuMemAddressReserve", cuMemAddressReserve, (*mut c_ulonglong, usize, usize, c_ulonglong, c_ulonglong);
    free_addresses: "cuMemAddressFree", cuMemAddressFree, (c_ulonglong, usize);
    create: "cuMemCreate", cuMemCreate, (*mut c_ulonglong, usize, *const raw::CUmemAllocationProp, c_ulonglong);
    release: "cuMemRelease", cuMemRelease, (c_ulonglong);
    map: "cuMemMap", cuMemMap, (c_ulonglong, usize, usize, c_ulonglong, c_ulonglong);
    unmap: "cuMemUnmap", cuMemUnmap, (c_ulonglong, usize);
    set_access: "cuMemSetAccess", cuMemSetAccess, (c_ulonglong, usize, *const raw::CUmemAccessDesc, usize);
    access: "cuMemGetAccess", cuMemGetAccess, (*mut c_ulonglong, *const raw::CUmemLocation, c_ulonglong);
    pointer_attribute: "cuPointerGetAttribute", cuPointerGetAttribute, (*mut c_void, c_int, c_ulonglong);
    allocate: "cuMemAlloc", cuMemAlloc_v2, (*mut c_ulonglong, usize);
    free: "cuMemFree", cuMemFree_v2, (c_ulonglong);
    copy_in: "cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2, (c_ulonglong, *const u8, usize, Opaque);
    copy_out: "cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2, (*mut u8, c_ulonglong, usize, Opaque);
    copy: "cuMemcpyDtoDAsync", cuMemcpyDtoDAsync_v2, (c_ulonglong, c_ulonglong, usize, Opaque);
    fill: "cuMemsetD8Async", cuMemsetD8Async, (c_ulonglong, c_uchar, usize, Opaque);
    create_stream: "cuStreamCreate", cuStreamCreate, (*mut Opaque, c_uint);
    await_stream: "cuStreamSynchronize", cuStreamSynchronize, (Opaque);
    destroy_stream: "cuStreamDestroy", cuStreamDestroy_v2, (Opaque);
    exchange_capture_mode: "cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode, (*mut c_uint);
    (optional)
    context_id: "cuCtxGetId", cuCtxGetId, (Opaque, *mut c_ulonglong);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter's type, as the compiler finds it.
    macro_rules! inferred {
        ($parameter:ty) => {
            _
        };
    }
    pub(super) use inferred;

    /// The sizes of a function's parameters, and of what it answers.
    pub(super) trait Sizes: Sized {
        fn of_type() -> Vec<usize>;

        fn of_value(self) -> Vec<usize> {
            Self::of_type()
        }
    }

    macro_rules! sizes {
        ($($parameter:ident)*) => {
            impl<$($parameter,)* Answer> Sizes for unsafe fn($($parameter),*) -> Answer {
                fn of_type() -> Vec<usize> {
                    vec![$(size_of::<$parameter>(),)* size_of::<Answer>()]
                }
            }
        };
    }
    sizes!();
    sizes!(A);
    sizes!(A B);
    sizes!(A B C);
    sizes!(A B C D);
    sizes!(A B C D E);

    #[test]
    fn each_function_has_the_parameters_that_the_bindings_declare() {
        let all = sizes();
        assert_eq!(all.len(), 35);
        for (symbol, ours, bound) in all {
            assert_eq!(ours, bound, "{symbol}");
        }
    }
}
