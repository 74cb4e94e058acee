//! Replays a request trace against a cache store, and says what it cost.
//!
//! ```text
//! file ──► trace::Trace ──┐
//!          (azure,        ├──► scheduler::replay ──► outcome::RunSummary ──► summary::ReplayReport
//!           mooncake,     │        │      ▲               (one run)               (the JSON)
//!           synthetic) ───┘        │      └── tally (footprint, latency): counted on the way
//!                                  ▼
//!                          store::CacheStore   (the only door to memory)
//! ```
//!
//! Everything here is pure: a trace becomes requests, requests become calls on a
//! [`store::CacheStore`], calls become numbers. What stands behind the store is unknown to this
//! module, which is why the scheduler is tested with a store that only counts. `geometry` gives the
//! one number that ties tokens to bytes.
//!
//! Owns no memory but the parsed trace. Does not parse arguments, draw tables or touch a buffer:
//! that is the command. One thread; nothing here blocks except reading the trace and what the store
//! does.

#![cfg_attr(not(test), expect(dead_code, reason = "the command that consumes this module is not written yet"))]

#[cfg(test)]
mod counting_store;
mod footprint;
mod geometry;
mod latency;
mod outcome;
mod scheduler;
mod store;
mod summary;
mod tally;
mod trace;
