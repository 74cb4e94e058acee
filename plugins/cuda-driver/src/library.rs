//! Finds the driver's library and its functions: a path or nothing in, the table of functions out, or the refusal that
//! says what was tried and what to install. Nothing is initialised here.
//!
//! A library at a path is used itself, through the handle that it was opened by. It has to be what the process finds by one
//! of the driver's two names (its `SONAME`): an engine that looks for the driver must come to the same one. Without a path
//! cudarc's loader takes the first of its names that opens, and keeps it: `libcuda.so` before `libcuda.so.1`, wherever they
//! are.
#![expect(unsafe_code, reason = "opens a library and looks its functions up")]

use crate::sys::Calls;
use cudarc::driver::sys as loader;
use leasehold_plugin_api::{BackingError, ErrorKind};
use libloading::Library;
use libloading::os::unix;
use std::fmt::Display;
use std::mem::ManuallyDrop;
use std::path::Path;

const INSTALL: &str =
    "install the NVIDIA driver (it brings libcuda.so.1), and in a container pass the devices through (--gpus all)";

/// What opens a path: every symbol now, so that one that is missing is told here and not by a later call that ends the
/// process; and none of them for other libraries, since this one's are always asked of its handle, and a stand-in must
/// not come between a program and its driver.
const FLAGS: i32 = unix::RTLD_NOW | unix::RTLD_LOCAL;

/// The names by which programs look for the driver: the first is that of the development files, and of the toolkit's stub.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// `RTLD_NOLOAD` of the C libraries of Linux: what isn't loaded is not found, dlopen(3).
const ONLY_WHAT_IS_LOADED: i32 = 4;

/// The functions of the driver.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable): no library, a library that is no driver or lacks a symbol, one at a path that
/// nobody would find by the driver's names.
pub(crate) fn find(path: Option<&Path>) -> Result<Calls, BackingError> {
    let Some(path) = path else { return find_by_name() };
    let calls = open(path)?;
    if NAMES.iter().any(|name| is_loaded_as(name, &calls)) { Ok(calls) } else { Err(another_came_first(path)) }
}

/// The refusal of a library beside another one.
pub(crate) fn another_came_first(path: &Path) -> BackingError {
    unavailable(format!(
        "{} is not the CUDA driver that this process uses: another one was loaded first under its name, or this one's name \
         (SONAME) is not libcuda.so or libcuda.so.1; name the driver's own file, for every backing, in a fresh process",
        path.display()
    ))
}

/// Whether what is loaded under a name is the library of these functions.
fn is_loaded_as(name: &str, calls: &Calls) -> bool {
    // SAFETY: nothing is loaded, so no code runs.
    let Ok(library) = (unsafe { unix::Library::open(Some(name), FLAGS | ONLY_WHAT_IS_LOADED) }) else { return false };
    // SAFETY: a library of the driver's name has its functions behind their names; they are compared, and not called.
    unsafe { Calls::find(&Library::from(library)) }.is_ok_and(|loaded| loaded.is_same(calls))
}

/// Opens the library at a path, and keeps it for ever where it is a driver: another one would be closed again, so that
/// it can't stand in for the driver by its name.
fn open(path: &Path) -> Result<Calls, BackingError> {
    // SAFETY: whoever names a path vouches for the code that runs when its library is loaded.
    let opened = unsafe { unix::Library::open(Some(path), FLAGS) };
    let refused = |why: &dyn Display| unavailable(format!("no CUDA driver at {}: {why}", path.display()));
    let unopened =
        |why: &dyn Display| refused(&format!("{why}; name the driver's own libcuda.so.1, or leave it to be found"));
    let library = Library::from(opened.map_err(|error| unopened(&innermost(&error)))?);
    // SAFETY: whoever names a path vouches that the driver's functions are behind their names; it stays loaded, below.
    let found = unsafe { Calls::find(&library) };
    let calls = found.map_err(|symbol| {
        let version = version_of(&library);
        refused(&format!(
            "it lacks the symbol {symbol}{version}; name the driver's own libcuda.so.1, of CUDA 11.0 or newer"
        ))
    })?;
    let _ = ManuallyDrop::new(library);
    Ok(calls)
}

/// The library that cudarc's loader finds, or has found.
fn find_by_name() -> Result<Calls, BackingError> {
    // SAFETY: opening a library of one of the driver's names runs the driver's initialisers, which is what is wanted.
    if !unsafe { loader::is_culib_present() } {
        return Err(absent());
    }
    // SAFETY: as above; a library of such a name was there just now, so this doesn't panic.
    let library = unsafe { loader::culib() };
    // SAFETY: the library has the driver's name, and cudarc's loader keeps it for ever.
    unsafe { Calls::find(library) }.map_err(|symbol| {
        let version = version_of(library);
        unavailable(format!(
            "the CUDA driver lacks the symbol {symbol}{version}: it is older than CUDA 11.0, or a stub; update the \
             NVIDIA driver, or name its own libcuda.so.1 (option `driver`)"
        ))
    })
}

/// No library of any of the driver's names.
fn absent() -> BackingError {
    // SAFETY: as in `find_by_name`; it was not there just now.
    let why = match unsafe { unix::Library::open(Some("libcuda.so.1"), FLAGS) } {
        Ok(_) => "it appeared just now".to_owned(),
        Err(error) => innermost(&error),
    };
    unavailable(format!("no CUDA driver: tried libcuda.so, libcuda.so.1 and their older names ({why}); {INSTALL}"))
}

/// The version of a driver that lacks something, where it has as much as that.
fn version_of(library: &Library) -> String {
    type Version = unsafe extern "C" fn(*mut i32) -> u32;
    // SAFETY: the function of that name has these parameters: CUDA Driver API, `cuDriverGetVersion`.
    let Ok(function) = (unsafe { library.get::<Version>(b"cuDriverGetVersion\0") }) else { return String::new() };
    let mut version = 0;
    // SAFETY: as above, with an out-parameter that lives. It needs no cuInit.
    match unsafe { function(&raw mut version) } {
        0 => format!(" (it is of CUDA {})", dotted(version)),
        _ => String::new(),
    }
}

/// 12080 as 12.8: CUDA Driver API, `cuDriverGetVersion`.
pub(crate) fn dotted(version: i32) -> String {
    format!("{}.{}", version.wrapping_div(1000), version.wrapping_rem(1000).wrapping_div(10))
}

/// The dynamic linker's own words: libloading's only name the call.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

fn unavailable(message: String) -> BackingError {
    BackingError::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_reads_as_people_write_it() {
        assert_eq!(dotted(12_080), "12.8");
        assert_eq!(dotted(13_010), "13.1");
    }
}
