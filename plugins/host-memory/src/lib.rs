//! What the backings of host memory share.
//!
//! ```text
//! a backing ──┬─► AddressSpace ──► sys    the kernel (unsafe is in these two)
//!             ├─► MapBudget, MapShare     how many mappings the library may hold
//!             └─► granule                 whether a granule can serve (pure)
//! ```
//!
//! In: plain values. Out: a [`Fault`] where the kernel refuses, a typed refusal where the request is wrong. Each type
//! owns what it took and gives it back on drop. What is committed, and by which mechanism, is the business of each
//! backing. Everything may be used from any thread; nothing panics.
//!
//! The budget of mappings is one for each library, since libraries share no statics: a program and each plugin that it
//! loads has its own copy of this crate. Two of them together can pass `vm.max_map_count` while each is within its
//! three quarters. Then the kernel refuses (`ENOMEM`) what needs one more mapping, whoever asks: commits and mappings
//! of prefixes are undone and refused, reservations too, and new threads and large allocations of the process. Giving
//! back still works. It is avoided by backings that are in one library (linked into the program, or two crates in one
//! plugin), which share one budget; by larger granules, which make fewer pieces; or by a higher `vm.max_map_count`.

mod address_space;
mod fault;
pub mod granule;
mod map_budget;
pub mod sys;

pub use address_space::AddressSpace;
pub use fault::Fault;
pub use map_budget::{MapBudget, MapShare, max_map_count};
