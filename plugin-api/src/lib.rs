//! The contract between the Leasehold host and its backings, and the tables that carry it across a shared library.
//!
//! A **backing** is one memory mechanism on one device. Its author implements [`Backing`] (three methods for an eager
//! allocator), the capabilities that it has, and [`BackingFactory`]; then writes one line:
//!
//! ```
//! use leasehold_plugin_api::*;
//! # use std::sync::Mutex;
//! # #[derive(Default)]
//! struct Heap {
//!     live: Mutex<std::collections::HashMap<AllocationId, Vec<u8>>>,
//! }
//!
//! impl Backing for Heap {
//!     fn describe(&self) -> Description {
//!         Description::new(DeviceKey::HOST, "a vector for each allocation")
//!     }
//!
//!     fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
//! #       if request.align > 1 { return Err(BackingError::unsupported("alignment")); }
//!         let bytes = usize::try_from(request.bytes).map_err(|_| BackingError::out_of_memory(request.bytes))?;
//!         let mut memory = vec![0; bytes];
//!         let base = Address::from_pointer(memory.as_mut_ptr()); // the host writes there: not as_ptr
//!         self.live.lock().unwrap().insert(request.id, memory);
//!         Ok(Allocation { id: request.id, base, bytes: request.bytes })
//!     }
//!
//!     fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
//!         let ReleaseTarget::Allocation(id) = target else {
//!             return ReleaseOutcome::Failed(BackingError::unknown_id("only allocations are made here"));
//!         };
//!         match self.live.lock().unwrap().remove(&id) {
//!             Some(_) => ReleaseOutcome::Complete,
//!             None => ReleaseOutcome::Failed(BackingError::unknown_id(id)),
//!         }
//!     }
//! }
//!
//! impl BackingFactory for Heap {
//!     const NAME: &'static str = "heap";
//!     const SUMMARY: &'static str = "plain vectors";
//!     // SAFETY: what `allocate` hands out is initialised, only the host touches it, and it stays until its release through
//!     // the one value that holds it; a forked child has a copy, as of every private page.
//!     const HOST_ACCESS: HostAccess<Self> = unsafe { HostAccess::direct_and_copied_by_fork() };
//!     type Options = NoOptions;
//!     fn create(_options: NoOptions, _host: HostServices) -> Result<Self, BackingError> {
//!         Ok(Heap { live: Mutex::default() })
//!     }
//! }
//!
//! export_backing!(Heap);
//! ```
//!
//! The same line serves both ways in: a crate of `crate-type = ["cdylib", "rlib"]` can be loaded from its `.so` or
//! linked into the host (`library = "builtin"`).
//!
//! * The values ([`Address`], [`CommitRange`], [`Change`], …): plain data, no behaviour beyond arithmetic.
//! * [`Backing`], [`VirtualBacking`], [`SharedMapping`], [`Transfer`]: what an author implements and the host calls.
//! * [`HostServices`]: what the host offers back: a log, its authorities, charge and refund.
//! * [`toolkit`]: what most backings would otherwise write for themselves.
//! * [`abi`]: the C-shaped tables in between. Authors never need it.
//!
//! What this crate does *not* do: it loads nothing, checks no answer of a backing and keeps no books; that is the host
//! (crate `leasehold`).

pub mod abi;
mod backing;
mod error;
mod factory;
mod options;
mod services;
mod shared_mapping;
pub mod toolkit;
mod transfer;
mod values;
mod virtual_backing;

pub use backing::{Backing, Extension};
pub use bytesize::ByteSize;
pub use error::{BackingError, ErrorKind};
pub use factory::{BackingFactory, BackingRegistration};
pub use options::{NoOptions, OptionValue, Options};
pub use services::{HostServices, LogLevel};
pub use shared_mapping::{Prefix, PrefixMapping, PrefixRange, PrefixRequest, SharedMapping};
pub use transfer::Transfer;
pub use values::{
    Accounting, Address, AllocateRequest, Allocation, AllocationId, AuthorityId, Change, CommitRange, CpuAccess,
    Description, DeviceKey, Domain, HolderId, HostAccess, MemoryRole, ParseDomainError, PrefixId, Region, RegionId,
    ReleaseOutcome, ReleaseTarget, ReserveRequest, StepScope, Tier,
};
pub use virtual_backing::VirtualBacking;

#[doc(hidden)]
pub use inventory;

#[cfg(doctest)]
#[doc = include_str!("../../docs/plugin-author-guide.md")]
struct PluginAuthorGuide;
