//! What most backings would otherwise write for themselves: nothing of the contract depends on it.
//!
//! * [`Table`]: which regions, allocations or prefixes are live, looked up by many threads at once.
//! * [`request`]: whether what is asked for is well-formed, with the words of a refusal. Pure.

pub mod request;
mod table;

pub use table::Table;
