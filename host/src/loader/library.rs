//! Opens a library through door 1 and reads what it offers.
//!
//! It is opened with all symbols bound at once (a missing one is reported here, not at some later call), its symbols
//! kept to itself, and never unloaded: a thread or a thread-local destructor of it may outlive everything we know of.
//! The root module comes from the handle's own symbol; abi_stable's loaders would hand back the first library that was
//! ever loaded.
#![expect(unsafe_code, reason = "opens a shared library and calls its entry")]

use super::error::{LoadError, LoadStage};
use crate::backing::ForeignEntry;
use abi_stable::library::{AbiHeaderRef, LibraryError, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use leasehold_plugin_api::abi::{BackingEntry, PluginRootRef, TABLES_VERSION};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::c_int;
use std::path::Path;

/// Linux: the object stays mapped after the last close; see dlopen(3).
const RTLD_NODELETE: c_int = 0x1000;

/// More backings than any library has.
const MOST_ENTRIES: usize = 4096;

/// Opens the library and lists its backings.
pub(super) fn open(path: &Path) -> Result<Vec<ForeignEntry>, LoadError> {
    let library = open_handle(path)?;
    let header = header(&library)?;
    // Kept open for ever: whatever came out of it stays valid.
    std::mem::forget(library);
    let root = root(header)?;
    entries(root)
}

fn open_handle(path: &Path) -> Result<Library, LoadError> {
    // SAFETY: running a library's initialisers is what a registry file asks for by naming it; the file was inspected.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
    library.map_err(|error| {
        let todo = "install what it needs, or build it on this machine (`ldd` lists what is missing)";
        LoadError::new(LoadStage::Open, format!("the dynamic linker refused it ({})", source_text(&error)), todo)
    })
}

/// The innermost text: libloading's own only names the call.
fn source_text(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), source_text)
}

fn header(library: &Library) -> Result<AbiHeaderRef, LoadError> {
    // SAFETY: the symbol is abi_stable's own, and only its macro exports it, with this type.
    let symbol = unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    let symbol = symbol.map_err(|_| {
        let why = "is not a Leasehold plugin: it does not export the root module of leasehold-plugin-api";
        LoadError::new(LoadStage::Door, why, "name a plugin, built with leasehold-plugin-api")
    })?;
    Ok(*symbol)
}

fn root(header: AbiHeaderRef) -> Result<PluginRootRef, LoadError> {
    let refused = |error: LibraryError| {
        let todo = "rebuild the plugin with the leasehold-plugin-api of this host";
        LoadError::new(
            LoadStage::Layout,
            format!("its tables are not this host's ({})", useful_part(&error.to_string())),
            todo,
        )
    };
    let header = header.upgrade().map_err(refused)?;
    header.init_root_module::<PluginRootRef>().map_err(refused)
}

/// A layout error runs to tens of kilobytes, from the root module down to the type that differs: that type's name, and
/// the first two things in which it differs. A text of another form is told by its last lines.
fn useful_part(text: &str) -> String {
    let last = text.rsplit("Layout of expected type:").next().unwrap_or(text);
    let name = last.lines().find_map(|line| line.trim().strip_prefix("type:"));
    let differences: Vec<_> = last.split("Error:").skip(1).take(2).map(one_line).collect();
    match (name, differences.is_empty()) {
        (Some(name), false) => format!("{name}: {}", differences.join(", ")),
        _ => {
            let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join(" ")
        }
    }
}

/// The words of a text in one line: `incompatible type size (expected 48, found 56)`.
fn one_line(difference: &str) -> String {
    let words = difference.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = words.split_once(" Expected: ").and_then(|(what, rest)| Some((what, rest.split_once(" Found: ")?)));
    match parts {
        Some((what, (expected, found))) => format!("{what} (expected {expected}, found {found})"),
        None => words,
    }
}

fn entries(root: PluginRootRef) -> Result<Vec<ForeignEntry>, LoadError> {
    let wrong = |why: String| LoadError::new(LoadStage::Door, why, "report this to the plugin's author");
    let table = root.plugin()();
    // SAFETY: a table, where there is one, is valid for the life of the process.
    let table = unsafe { table.as_ref() }.ok_or_else(|| wrong("answered no table".to_owned()))?;
    if table.version != TABLES_VERSION {
        let version = table.version;
        return Err(wrong(format!("has tables of version {version}, this host reads version {TABLES_VERSION}")));
    }
    if table.entry_count == 0 {
        return Err(wrong("offers no backing".to_owned()));
    }
    if table.entries.is_null() || table.entry_count > MOST_ENTRIES {
        let (entries, count) = (table.entries, table.entry_count);
        return Err(wrong(format!("names {count} backings at {entries:?}, which can't be")));
    }
    // SAFETY: the table's entries are as many as it says, and as long-lived.
    let entries: &'static [BackingEntry] = unsafe { std::slice::from_raw_parts(table.entries, table.entry_count) };
    // SAFETY: the layout of the entries was checked, and the library is never unloaded.
    Ok(entries.iter().map(|entry| unsafe { ForeignEntry::new(entry) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_layout_error_the_type_that_differs_is_told() {
        let text = "0 error(s).\nLayout of expected type:\n  --- Type Layout ---\n  type:Outer\n\n8 error(s)inside:\n\
                    Layout of expected type:\n  --- Type Layout ---\n  type:Inner\n  size:48 align:8\n\n\
                    Error:incompatible type size\nExpected:\n    48\nFound:\n    56\n\n\
                    Error:too many fields\nExpected:\n    6\nFound:\n    7\n\nError:unexpected field\n";
        let told = "Inner: incompatible type size (expected 48, found 56), too many fields (expected 6, found 7)";
        assert_eq!(useful_part(text), told);
    }

    #[test]
    fn an_error_of_another_form_is_told_by_its_end() {
        assert_eq!(useful_part("a\n\n b\nc\nd\ne\nf\n"), "b c d e f");
    }
}
