//! Finds the driver's library and its functions: a path or nothing in, candidates with the table of functions out, or the
//! refusal that says what was tried and what to install. Nothing is initialised here.
//!
//! Without a path these are the candidates, in order: what is loaded under one of the driver's names, then what the dynamic
//! linker finds by them. `libcuda.so.1` is the driver's own name; `libcuda.so` is that of the development files, and in a
//! toolkit of a stub, which serves to link and fails in `cuInit`. So the caller initialises one candidate after the other, and
//! keeps the first that is no stub. What it does not keep is closed again, so that it doesn't take the driver's name.
//!
//! A library at a path is used itself, through the handle that it was opened by. It has to be what the process finds by one
//! of the driver's names (its `SONAME`): an engine that looks for the driver must come to the same one.
#![expect(unsafe_code, reason = "opens a library and looks its functions up")]

use crate::sys::Calls;
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

/// The names by which programs look for the driver: its own first.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// `RTLD_NOLOAD` of the C libraries of Linux: what isn't loaded is not found, dlopen(3).
const ONLY_WHAT_IS_LOADED: i32 = 4;

/// A library with the driver's functions. It is closed unless it is kept.
#[derive(Debug)]
pub(crate) struct Candidate {
    library: Library,
    /// Invariant 1: of `library`, and used only while that is open.
    calls: Calls,
}

impl Candidate {
    /// Its functions, for as long as it is open.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Its functions, for ever: it is never closed.
    pub(crate) fn keep(self) -> Calls {
        let _ = ManuallyDrop::new(self.library);
        self.calls
    }

    /// The file that it was loaded from, where the system shows it.
    pub(crate) fn path(&self) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        file_at(&maps, self.calls.address())
    }

    /// # Errors
    ///
    /// The library, and the symbol that it lacks.
    ///
    /// # Safety
    ///
    /// What the library has under the names of the driver's functions are these functions.
    unsafe fn of(library: Library) -> Result<Self, (Library, &'static str)> {
        // SAFETY: the caller says so, and the library stays open for as long as the table is used (1).
        match unsafe { Calls::find(&library) } {
            Ok(calls) => Ok(Self { library, calls }),
            Err(symbol) => Err((library, symbol)),
        }
    }
}

/// The file that is mapped at an address: proc(5), `/proc/pid/maps`.
fn file_at(maps: &str, address: usize) -> Option<String> {
    let holds = |line: &&str| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let parse = |text| usize::from_str_radix(text, 16).ok();
        range.and_then(|(start, end)| Some((parse(start)?..parse(end)?).contains(&address))).unwrap_or(false)
    };
    let line = maps.lines().find(holds)?;
    line.find('/').and_then(|at| line.get(at..)).map(str::to_owned)
}

/// The libraries that are to be tried, or why one is none, in order. Each is looked for when it is asked for.
pub(crate) fn candidates() -> impl Iterator<Item = Result<Candidate, BackingError>> {
    let ways = [FLAGS | ONLY_WHAT_IS_LOADED, FLAGS].into_iter();
    ways.flat_map(|flags| NAMES.into_iter().filter_map(move |name| find_by_name(name, flags)))
}

/// The library of a name, where there is one.
fn find_by_name(name: &str, flags: i32) -> Option<Result<Candidate, BackingError>> {
    // SAFETY: opening a library of one of the driver's names runs the driver's initialisers, which is what is wanted.
    let library = Library::from(unsafe { unix::Library::open(Some(name), flags) }.ok()?);
    // SAFETY: a library of the driver's name has its functions behind their names.
    let candidate = unsafe { Candidate::of(library) };
    Some(candidate.map_err(|(library, symbol)| {
        let version = version_of(&library);
        unavailable(format!(
            "the CUDA driver lacks the symbol {symbol}{version}: it is older than CUDA 11.0, or a stub; update the \
             NVIDIA driver, or name its own libcuda.so.1 (option `driver`)"
        ))
    }))
}

/// The library at a path.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable): no library, a library that is no driver or lacks a symbol, one that would not be
/// found by the driver's names.
pub(crate) fn at(path: &Path) -> Result<Candidate, BackingError> {
    // SAFETY: the caller, who names the path, vouches for the code that runs when its library is loaded.
    let opened = unsafe { unix::Library::open(Some(path), FLAGS) };
    let refused = |why: &dyn Display| unavailable(format!("no CUDA driver at {}: {why}", path.display()));
    let unopened =
        |why: &dyn Display| refused(&format!("{why}; name the driver's own libcuda.so.1, or leave it to be found"));
    let library = Library::from(opened.map_err(|error| unopened(&innermost(&error)))?);
    // SAFETY: the caller, who names the path, vouches that the driver's functions are behind their names.
    let candidate = unsafe { Candidate::of(library) }.map_err(|(library, symbol)| {
        let version = version_of(&library);
        refused(&format!(
            "it lacks the symbol {symbol}{version}; name the driver's own libcuda.so.1, of CUDA 11.0 or newer"
        ))
    })?;
    let is_found = NAMES.iter().any(|name| is_loaded_as(name, candidate.calls()));
    if is_found { Ok(candidate) } else { Err(another_came_first(path)) }
}

/// Whether what is loaded under a name is the library of these functions.
fn is_loaded_as(name: &str, calls: &Calls) -> bool {
    // SAFETY: nothing is loaded, so no code runs.
    let Ok(library) = (unsafe { unix::Library::open(Some(name), FLAGS | ONLY_WHAT_IS_LOADED) }) else { return false };
    // SAFETY: a library of the driver's name has its functions behind their names; they are compared, and not called.
    unsafe { Candidate::of(Library::from(library)) }.is_ok_and(|loaded| loaded.calls().is_same(calls))
}

/// The refusal of a library beside another one.
pub(crate) fn another_came_first(path: &Path) -> BackingError {
    unavailable(format!(
        "{} is not the CUDA driver that this process uses: another one was loaded first under its name, or this one's name \
         (SONAME) is not libcuda.so or libcuda.so.1; name the driver's own file, for every backing, in a fresh process",
        path.display()
    ))
}

/// The refusal where no library has any of the driver's names.
pub(crate) fn absent() -> BackingError {
    // SAFETY: as in `find_by_name`; it was not there just now.
    let why = match unsafe { unix::Library::open(Some("libcuda.so.1"), FLAGS) } {
        Ok(_) => "it appeared just now".to_owned(),
        Err(error) => innermost(&error),
    };
    unavailable(format!("no CUDA driver: tried libcuda.so.1 and libcuda.so ({why}); {INSTALL}"))
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

    #[test]
    fn the_file_at_an_address_is_the_one_that_is_mapped_there() {
        let maps = "1000-2000 r-xp 00000000 08:01 7    /a folder/libcuda.so\n3000-4000 rw-p 00000000 00:00 0 \n";
        assert_eq!(file_at(maps, 0x1FFF).as_deref(), Some("/a folder/libcuda.so"));
        assert_eq!(file_at(maps, 0x2000), None);
        assert_eq!(file_at(maps, 0x3000), None, "of no file");
    }
}
