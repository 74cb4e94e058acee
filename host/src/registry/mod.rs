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
pub(crate) mod budget;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod library;
pub(crate) mod manifest;
mod option_values;
pub(crate) mod position;
mod reader;
mod sections;
mod selection;
#[cfg(test)]
mod tests;

pub use selection::{Selection, SelectionError};
