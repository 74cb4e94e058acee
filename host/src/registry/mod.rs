//! What the user wrote, and what it leads to on disk; nothing is opened or loaded here.
//!
//! ```text
//! registry.toml ─► RegistryFile ─┐
//!    (text)        what was      ├─► Manifest
//!                  written       │   what it resolves to
//! LEASEHOLD_* ───► Selection ────┘
//! ```
//!
//! [`RegistryFile`](file::RegistryFile) knows the text and its lines, and no disk beyond the file itself; `Manifest` knows the disk, and
//! no text. Opening a library and checking its hash belong to the loader, which takes a `Manifest`.

mod backing_entry;
mod budget;
mod error;
mod file;
mod option_values;
mod position;
mod reader;
mod sections;
#[cfg(test)]
mod tests;
