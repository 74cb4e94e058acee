//! Physical memory that is owned once and read in many buffers: prefix caching without a copy.
//!
//! ```text
//!   PrefixSpec ─► admission ─► lease (where the buffer pays) ─► create_prefix
//!                                                                    │
//!        Prefix (written by its creator) ── seal ──► SharedPrefix (read-only everywhere, clones share it)
//!                                                         │ part
//!                                                         ▼
//!                                BufferSet::map_prefixes: into all planes of a buffer, or none
//! ```
//!
//! * `planes`: what both have: a hold on the memory, and where each plane lies.
//! * `spec`: what a prefix is to be.
//! * `writable`: a prefix that is not sealed yet.
//! * `shared`: a sealed prefix, and parts of it.
//!
//! A prefix is charged once, when it is created, and costs nothing more however often it is mapped. Its memory lives
//! until the last [`SharedPrefix`] and the last buffer that maps it are gone, in whichever order. Whether a prefix is
//! long enough to be shared is arithmetic: see `shareability`.

mod planes;
mod shared;
mod spec;
mod writable;

pub use shared::{PrefixPart, SharedPrefix};
pub use spec::PrefixSpec;
pub use writable::{Prefix, Unsealed};
