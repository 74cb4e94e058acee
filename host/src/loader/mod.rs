//! Turns a library on disk, or what is linked in, into a plugin that can make backings.
//!
//! ```text
//!   LibrarySource ─► candidate (is it a file of this machine?) ─► library (dlopen, door) ─► Plugin
//!        └──────── builtin ─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! * `candidate`: looks at the file before the dynamic linker does: a truncated library would kill the process.
//! * `library`: opens it and checks its layout. The only unsafe code here. A library is never unloaded.
//! * `plugin`: chooses among the backings that a plugin offers, and makes one.
//!
//! Nothing here knows budgets or registry files.

mod candidate;
mod error;
mod library;
mod plugin;

pub use plugin::Door;
pub(crate) use plugin::Plugin;
