//! What most backings would otherwise write for themselves: nothing of the contract depends on it.
//!
//! * [`Table`]: which regions, allocations or prefixes are live, looked up by many threads at once.
//! * [`CallParts`] and [`LockedParts`]: one call over many regions, which are locked in an order that can't deadlock.
//! * [`request`]: whether what is asked for is well-formed, with the words of a refusal. Pure.

mod locked_parts;
pub mod request;
mod table;

pub use locked_parts::{CallParts, Lockable, LockedParts, Part, Stopped};
pub use table::Table;
