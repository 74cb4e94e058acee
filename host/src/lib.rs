//! Memory for inference engines that grows without moving, from backings that are dropped in as shared libraries, under
//! one governor that leases every byte.
//!
//! An engine loads a registry file, finds a backing by what it must offer, admits buffers and grows them:
//!
//! ```no_run
//! use leasehold::{BufferSpec, Host, Requirements, Tier};
//!
//! # fn main() -> Result<(), leasehold::Error> {
//! let host = Host::load("registry.toml")?;
//! let backing = host.find(&Requirements::growable().tier(Tier::Host))?;
//! let mut keys = host.buffer(&backing, &BufferSpec::new(1 << 30))?;
//! let base = keys.base();
//! for token in 1..=1000 {
//!     keys.grow_to(token * 2048)?;
//! }
//! assert_eq!(keys.base(), base);
//! println!("{}", host.snapshot());
//! # Ok(())
//! # }
//! ```
//!
//! The stages, in the order of the flow: `registry` (text to what is to be loaded), `loader` (library to plugin),
//! `backing` (plugin to answers that can be relied on), `governor` (who may spend what), `admission`, `prefix`, `buffer`,
//! `prefix_cache`, and `host`, which ties them together. `machine` says what the process runs on, `shareability` is
//! arithmetic. Imports run one way: see `docs/ARCHITECTURE.md`. `shareability` stands
//! alone: how much of a prefix can be shared is arithmetic.

mod admission;
mod backing;
mod buffer;
mod error;
mod governor;
mod host;
mod loader;
mod machine;
mod prefix;
mod prefix_cache;
mod quiet;
mod registry;
mod shareability;

pub use backing::{Capabilities, ReapReport};
pub use buffer::{Allocation, AllocationSpec, Buffer, BufferSet, BufferSpec, GrowthPolicy};
pub use error::{Error, ErrorKind, Quarantined, TierExhausted};
pub use governor::{
    DomainSnapshot, Governor, GovernorSnapshot, Lease, Reclaim, ReclaimOrder, Registration, Shortage, Shortfall,
};
pub use host::{BackingHandle, BackingReport, BackingState, Host, HostBuilder, Requirements, Stage, StageReport};
pub use leasehold_plugin_api::{
    Accounting, Address, AuthorityId, BackingError, Change, CpuAccess, Description, DeviceKey, Domain, HolderId,
    MemoryRole, StepScope, Tier,
};
pub use loader::Door;
pub use machine::EnvironmentTrust;
pub use prefix::{Prefix, PrefixPart, PrefixSpec, SharedPrefix, Unsealed};
pub use prefix_cache::{BlockHash, Eviction, FoundPrefix, PrefixCache, PrefixCacheSnapshot, PrefixCacheSpec};
pub use registry::{Selection, SelectionError};
pub use shareability::{CacheGeometry, CacheLayout, Shareability, ShareabilityError};

/// The contract of backings, for programs that bring one themselves: see [`HostBuilder::with_backing`] and
/// [`HostBuilder::with_accessible_backing`]. Plugins take it from the crate `leasehold-plugin-api`, which has the tables too.
pub mod contract {
    pub use leasehold_plugin_api::{
        Accounting, Address, AllocateRequest, Allocation, AllocationId, AuthorityId, Backing, BackingError,
        BackingFactory, Change, CommitRange, CpuAccess, Description, DeviceKey, Domain, ErrorKind, Extension, HolderId,
        HostAccess, HostServices, LogLevel, MemoryRole, Prefix, PrefixId, PrefixMapping, PrefixRange, PrefixRequest,
        Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, StepScope, Tier, Transfer,
        VirtualBacking,
    };
}

// Linked in for `library = "builtin"`, and for programs without a registry file.
use leasehold_host_mmap as _;
