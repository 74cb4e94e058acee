//! `leasehold replay`: serves a request trace over real buffers, and says what it cost.
//!
//! ```text
//! file ──► trace::Trace ──┐
//!          (azure,        ├──► scheduler::replay ──► outcome::RunSummary ──► summary::ReplayReport
//!           mooncake,     │        │      ▲               (one run)               (the JSON)
//!           synthetic) ───┘        │      └── tally (footprint, latency, timeline): counted on the way
//!                                  ▼
//!                          store::CacheStore ◄── strategy (growing, preallocated, reallocating) ──► leasehold
//!                          (the only door to memory)
//! ```
//!
//! `arguments` says what may be asked, `backings` on which backings, `setup` what that comes to, `command` carries it out: a
//! run that fails ends no other. `results` words what was
//! found for `table`, which prints it, and for the page of `report`, which shows the timeline of each run too. Trace,
//! scheduler, tally and summary are pure: a trace becomes requests, requests become calls on a [`store::CacheStore`],
//! calls become numbers; they are tested with a store that only counts. `strategy` puts real buffers behind the store,
//! all under one budget and one governor. `geometry` and `layout` tie tokens to bytes; `prefix` finds what prompts have
//! in common.
//!
//! One thread. What a run holds is given back before the next one begins.

mod arguments;
mod backings;
mod command;
#[cfg(test)]
mod counting_store;
mod footprint;
mod geometry;
mod latency;
mod layout;
mod options;
mod outcome;
mod prefix;
mod report;
mod results;
mod scheduler;
mod setup;
mod store;
mod strategy;
mod summary;
mod table;
mod tally;
mod timeline;
mod trace;

pub(crate) use arguments::ReplayArguments;
pub(crate) use command::run;
