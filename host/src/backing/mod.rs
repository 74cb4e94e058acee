//! Turns a plugin's answers into memory that the rest of the host can rely on.
//!
//! ```text
//!   tables (.so) ─► ImportedBacking ─┐
//!                                    ├─► MadeBacking ─► CheckedBacking ─► buffers, allocations
//!   linked in ────► dyn Backing ─────┘                     │
//!        ▲                                                 ├─ AddressMap: what is where
//!        └── ServiceContext: log, authority, charge ◄──────┤
//!                                                          └─ Quarantine: what could not be given back
//! ```
//!
//! * `imported`, `foreign`: a backing that is called through its tables.
//! * `services`: the host's side of `HostServices`; `contexts` finds it by the number that a plugin knows.
//! * `refunds`: what a backing refunded during one call.
//! * `made`: a backing that came through either door, and what it says of itself.
//! * `direct`: every call as the backing answers it, for whoever examines one.
//! * `checked`: every call with its answer checked; a backing that breaks the contract is taken out of service.
//! * `answers`: what an answer may be. Pure.
//! * `capabilities`: asked once, compared for ever after.
//! * `address_map`: which addresses are taken, so that no two live things overlap.
//! * `quarantine`: what could not be given back, until it can.
//! * `prefix`: a hold on a prefix's memory, which is given back with the last one; `prefix_memory` is what is held.
//! * `reach`: copies by whoever can reach the memory.
//! * `bytes`: addresses as slices, where the CPU can touch them.
//!
//! Unsafe code is in `imported`, `foreign`, `services` and `bytes` alone.
//!
//! What happens to buffers is not decided here: see `buffer`. Nothing here reads registry files.

mod address_map;
mod answers;
pub(crate) mod bytes;
mod capabilities;
mod checked;
mod contexts;
mod direct;
mod foreign;
mod imported;
mod made;
mod prefix;
mod prefix_memory;
mod quarantine;
mod reach;
mod refunds;
mod services;

pub(crate) use address_map::AddressMap;
pub use capabilities::Capabilities;
pub(crate) use capabilities::Capability;
pub(crate) use checked::{CheckedBacking, Placement};
pub(crate) use direct::DirectBacking;
pub(crate) use imported::ForeignEntry;
pub(crate) use made::{Discovery, MadeBacking, contain};
pub(crate) use prefix::PrefixHandle;
pub(crate) use prefix_memory::PrefixMemory;
pub use quarantine::ReapReport;
pub(crate) use quarantine::Unreturned;
pub(crate) use reach::{length, part, part_mut};
pub(crate) use services::ServiceContext;

use crate::quiet::quietly;
