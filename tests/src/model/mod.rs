//! A plain model of what buffers, prefixes and a prefix cache hold, and random operations on them.
//!
//! ```text
//!   operation ──► World ──► the library, over a backing that fails where it is told to (fault::Under)
//!                   │
//!                   └──► SetModel, Memory, CacheModel: plain bytes and counts
//! ```
//!
//! * `operation`: what can be done, and how it is drawn.
//! * `memory`: the bytes of one prefix; whoever holds it in the model has an `Rc` of it.
//! * `set`: one set.
//! * `cache`: which blocks are where, and who was used last.
//! * `world`, `world/buffers`, `world/sharing`: play operations, and compare after each.
//!
//! The model knows bytes, lengths, who holds which prefix, and what may be charged; it knows nothing of regions, leases or
//! ranges. After every operation, failed ones included, the library must agree with it.

mod cache;
mod memory;
mod operation;
mod set;
mod world;

pub use operation::{Operation, Piece, Rest, broken, broken_sharing, sharing, sound};
pub use world::play;

/// The granule of every backing here.
pub const PAGE: u64 = 4 << 10;
/// What each plane of a set can grow to.
pub const CAPACITY: u64 = 24 * PAGE;
/// The budget at first.
pub const LIMIT: u64 = 64 * PAGE;
/// Sets, allocations and prefixes that live at once, of each. What is in slot n belongs to holder n + 1.
pub const SLOTS: usize = 3;
/// The planes of what the cache holds.
pub const CACHE_PLANES: usize = 2;

/// As a length of memory.
fn len(bytes: u64) -> usize {
    usize::try_from(bytes).expect("fits")
}

/// As a number of bytes.
fn bytes(len: usize) -> u64 {
    u64::try_from(len).expect("fits")
}
