//! Turns an admitted backing into memory that grows at a fixed address.
//!
//! ```text
//!   Buffer ──► BufferSet ──► Plane (one region each)
//!                 │ grow_to: target (growth) ─► charge (lease) ─► commit (backing) ─► watermark
//!                 │ shrink_to: decommit ─► refund ─► watermark
//!                 └ drop: release every region ─► refund; what can't be given back goes to quarantine
//! ```
//!
//! * `spec`: what a buffer is to be.
//! * `growth`: how far a growth commits. Pure arithmetic.
//! * `plane`: one region, what is charged for it and what of it may be used. Unsafe code is here and in `allocation`.
//! * `set`: planes that grow together or not at all. `set/growing`: the only file that charges and commits.
//!   `set/sharing`: prefixes mapped in front.
//! * `single`: one plane, with its bytes as a slice.
//! * `allocation`: memory that is committed as a whole, for comparison and for what never grows.
//!
//! `len ≤ committed ≤ capacity` holds always, after every failure too.

mod allocation;
mod growth;
mod plane;
mod set;
mod single;
mod spec;

pub use allocation::{Allocation, AllocationSpec};
pub use growth::GrowthPolicy;
pub use set::BufferSet;
pub use single::Buffer;
pub use spec::BufferSpec;
