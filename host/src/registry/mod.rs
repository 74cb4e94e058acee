//! What the user wrote, and what it leads to on disk; nothing is opened or loaded here.
//!
//! ```text
//! registry.toml ─► RegistryFile ─┐
//!    (text)        what was      ├─► Manifest
//!                  written       │   what it resolves to
//! LEASEHOLD_* ───► Selection ────┘
//! ```
//!
//! [`RegistryFile`](file::RegistryFile) knows the text and its lines, and no disk beyond the file itself;
//! [`Manifest`](manifest::Manifest) knows the disk, and no text. Opening a library and checking its hash belong to the
//! loader, which takes a manifest.

mod backing_entry;
mod budget;
mod error;
mod file;
mod library;
mod manifest;
mod option_values;
mod position;
mod reader;
mod sections;
mod selection;
#[cfg(test)]
mod tests;

pub(crate) use backing_entry::is_backing_name;
pub(crate) use budget::BudgetSpec;
pub(crate) use error::RegistryError;
pub(crate) use file::RegistryFile;
pub(crate) use library::LibrarySource;
pub(crate) use manifest::{Enablement, Manifest, ManifestEntry};
pub use selection::{Selection, SelectionError};
