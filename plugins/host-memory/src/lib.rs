//! What the backings of host memory share.
//!
//! ```text
//! a backing ──┬─► AddressSpace ──► sys    the kernel (unsafe is in these two)
//!             ├─► MapBudget, MapShare     how many mappings the process may hold
//!             └─► granule                 whether a granule can serve (pure)
//! ```
//!
//! In: plain values. Out: a [`Fault`] where the kernel refuses, a typed refusal where the request is wrong. Each type owns
//! what it took and gives it back on drop. What is committed, and by which mechanism, is the business of each backing.
//! Everything may be used from any thread; nothing panics.

mod address_space;
mod fault;
pub mod granule;
mod map_budget;
pub mod sys;

pub use address_space::AddressSpace;
pub use fault::Fault;
pub use map_budget::{MapBudget, MapShare, max_map_count};
