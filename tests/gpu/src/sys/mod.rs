//! The driver's functions on streams, graphs and kernels: looked up once, each with its documented parameters, and called.
//!
//! In: where the driver's library is. Out: tables of functions, and what each call answers as a `Result`. They own the
//! library alone: streams and graphs are their caller's, and every call on one says what its caller promises. Nothing
//! panics. The CUDA Driver API has the signatures: "Stream Management", "Graph Management", "Module Management",
//! "Execution Control" and `cuMemsetD8Async`.

mod graphs;
mod kernels;
mod streams;

pub(crate) use graphs::Graphs;
pub(crate) use kernels::Kernels;
pub(crate) use streams::{Flavour, Streams};

use crate::table::Trouble;
use leasehold_cuda_driver::Fault;
use std::ffi::{c_uint, c_void};

/// A stream, a graph, a kernel or the like, as the driver hands them out.
pub(crate) type Opaque = *mut c_void;

/// Declares a table of functions: its name, then field, symbol, parameters.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident; $($field:ident: $symbol:literal, ($($parameter:ty),*);)*) => {
        $(#[$about])*
        pub(crate) struct $table {
            $(
                /// Invariant 1: the driver's function of that symbol, with the parameters that its documentation gives
                /// it. A `CUresult` is a 32-bit number. `find` looks it up.
                $field: unsafe extern "C" fn($($parameter),*) -> c_uint,
            )*
            /// Invariant 2: the library that the functions are from. It stays loaded for as long as they can be called.
            _library: libloading::Library,
        }

        impl $table {
            /// Finds every function in the driver's library, which is loaded already: the one at a path, or the system's.
            ///
            /// # Errors
            ///
            /// There is no such library, or it lacks one of the functions.
            pub(crate) fn find(driver: Option<&std::path::Path>) -> Result<Self, Trouble> {
                let path = driver.unwrap_or(std::path::Path::new("libcuda.so.1"));
                // SAFETY: it is loaded already, so none of its code runs here.
                let library = unsafe { libloading::Library::new(path) };
                let library = library.map_err(|error| Trouble::Lacking(error.to_string()))?;
                $(
                    // SAFETY: the function of that symbol has these parameters (1).
                    let found = unsafe { library.get::<unsafe extern "C" fn($($parameter),*) -> c_uint>($symbol.as_bytes()) };
                    let $field = *found.map_err(|error| super::lacking($symbol, &error))?;
                )*
                Ok(Self { $($field,)* _library: library })
            }
        }
    };
}
use functions;

fn lacking(symbol: &str, error: &libloading::Error) -> Trouble {
    Trouble::Lacking(format!("the driver lacks {symbol}: {error}"))
}

fn check(name: &'static str, code: c_uint) -> Result<(), Trouble> {
    if code == 0 { Ok(()) } else { Err(Fault::new(name, code).into()) }
}
