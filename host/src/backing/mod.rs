//! Turns a plugin's answers into memory that the rest of the host can rely on.
//!
//! ```text
//!   tables (.so) ─► ImportedBacking ─┐
//!                                    ├─► dyn Backing ─► CheckedBacking ─► buffers, allocations
//!   linked in ───────────────────────┘                     │
//!        ▲                                                 ├─ LiveRanges: what is where in the domain
//!        └── ServiceContext: log, authority, charge ◄──────┤
//!                                                          └─ Quarantine: what could not be given back
//! ```
//!
//! * `imported`: a `dyn Backing` that calls through the tables. The only unsafe code here, with `services`.
//! * `services`: the host's side of `HostServices`.
//! * `checked`: every call with its answer checked; a backing that breaks the contract is taken out of service.
//! * `capabilities`: asked once, compared for ever after.
//!
//! What happens to buffers is not decided here: see `buffer`. Nothing here reads registry files.

mod answers;
mod capabilities;
mod checked;
mod fault;
mod imported;
mod live_ranges;
mod quarantine;
mod services;

pub use capabilities::Capabilities;
pub(crate) use checked::{CheckedBacking, Discovery, Placement, contain, destroy};
pub(crate) use fault::{BackingFault, Operation};
pub(crate) use imported::ForeignEntry;
pub(crate) use live_ranges::AddressMap;
pub use quarantine::ReapReport;
pub(crate) use quarantine::Unreleased;
pub(crate) use services::ServiceContext;
