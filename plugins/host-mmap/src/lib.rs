//! A Leasehold backing for memory of the host: `mmap` reserves, `mprotect` commits, and the base never moves.
//!
//! ```text
//! backing ──► transaction ──► region ──┬─► mapping    what the kernel does (the only unsafe file)
//!    │                                 └─► runs       which bytes are committed (pure)
//!    └─► options
//! ```
//!
//! Below them is `leasehold-host-memory`: address space, the system calls, how many mappings the process may hold. The table
//! of what is live, the locking of a call, and the checks of requests are [`leasehold_plugin_api::toolkit`].
//!
//! In: the options of `[backing.options]` ([`HostMmapOptions`]) and the calls of the contract. Out: addresses of this
//! process, and typed refusals. It keeps no budget of bytes ([`Accounting::Buffer`](leasehold_plugin_api::Accounting)):
//! that is the host's.
//!
//! * **Reserve** takes inaccessible address space, which costs neither memory nor commit charge.
//! * **Commit** makes whole granules readable and writable; pages come at the first touch, or at once with `populate`.
//! * **Decommit** puts fresh inaccessible space in their place, so pages and commit charge go back at once and the next
//!   commit reads zeros. A region that grows and shrinks at its end stays two kernel mappings.
//! * Scattered commits are refused before the process runs into `vm.max_map_count`, and freeing works even there.
//!
//! Calls about different regions run at the same time. A call never panics on what the caller passes.

mod backing;
mod mapping;
mod options;
mod region;
mod runs;
#[cfg(test)]
mod tests;
mod transaction;

pub use backing::HostMmap;
pub use options::{HostMmapOptions, HugePages};

leasehold_plugin_api::export_backing!(HostMmap);
