//! One call over parts of many regions: all of it, or none.
//!
//! ```text
//! lock ─ check ─ unlock ─► obtain handles (may call the host) ─► lock ─ check ─ map ─ unlock ─► take back, or restore
//! ```
//!
//! Handles are obtained with no lock held, so everything is checked once more before it is done. All regions of the call
//! are locked together ([`CallParts`](leasehold_plugin_api::toolkit::CallParts)).

mod commit;
mod mapping;
