//! A Leasehold backing for memory of the host that is pooled and shared: physical granules live in files that exist in
//! memory alone, and regions are windows on them.
//!
//! ```text
//!           ┌─► transaction ─┐            ┌─► commitment, placement     frames of its own, parts of prefixes
//! backing ──┤                ├─► region ──┼─► extents                   which frames are where (pure)
//!    │      └─► sharing ─────┘     │      └─► window                    the kernel (unsafe)
//!    │             └─► prefix ─────┤
//!    └─► options                   └─► pool ──┬─► frames ──► holes, parked    which frame serves whom (pure)
//!                                    │        ├─► store                       files, and holes in them (unsafe)
//!                                  supply     └─► treasury                    who is charged
//! ```
//!
//! In: the options of `[backing.options]` ([`HostPoolOptions`]) and the calls of the contract. Out: addresses of this
//! process, and typed refusals. It keeps its own books with the host
//! ([`Accounting::Backing`](leasehold_plugin_api::Accounting)): physical memory is charged before it is taken, and
//! refunded when it is given back.
//!
//! * **Commit** maps frames behind the range: parked ones first, which cost neither a charge nor a page fault; then
//!   holes of a file, whose pages come at the first touch. A region's frames follow each other wherever that is
//!   possible, so that the kernel keeps it as one mapping.
//! * **Decommit** parks the frames, up to a bound, and gives the rest back. What one holder left is zeroed before
//!   another gets it.
//! * **A prefix** is a list of frames with a window to write them through. Sealing maps the window anew through a
//!   descriptor that can only read; so is every place in a region. The frames live until the last of those is gone.
//!
//! The memory is shared, not private, so a process that is forked off inherits none of the windows (`MADV_DONTFORK`); the
//! host lets none of its calls in. It inherits the descriptors of the files, and with them the memory lives until it ends or
//! executes another program. Calls about
//! different regions run at the same time, and a call may come back from within a charge. No call panics on what the
//! caller passes.

mod backing;
mod commitment;
mod extents;
mod failpoints;
mod frames;
mod holes;
mod obtaining;
mod options;
mod parked;
mod piece_bound;
mod placement;
mod pool;
mod prefix;
mod prefix_memory;
mod region;
mod run;
mod sharing;
mod store;
mod supply;
#[cfg(test)]
mod tests;
mod transaction;
mod treasury;
mod window;

pub use backing::HostPool;
pub use options::{HostPoolOptions, Scrub};

leasehold_plugin_api::export_backing!(HostPool);
