//! Ties the stages together: from a registry file to backings that are ready, and from those to buffers.
//!
//! ```text
//!   registry.toml ─► RegistryFile ─► Manifest ─► Plugin ─► dyn Backing ─► CheckedBacking
//!                        registry/                loader/       backing/        │
//!                                                                               ▼
//!   Buffer, BufferSet, Allocation ◄── admission ◄── Governor (books by domain)  Host
//!   Prefix, PrefixCache                                governor/
//!        buffer/, prefix/, prefix_cache/
//! ```
//!
//! * `assembly`: one entry of the manifest through every stage. One backing's trouble never stops the others.
//! * `budgets`: how much may be spent in each domain, once its devices are described.
//! * `disks`: which number each disk has.
//! * `entry`, `report`: what became of each entry, stage by stage.
//! * `find`: the choice of a backing by what it must offer.
//!
//! A [`Host`] owns its governor and its backings. A backing lives until the host and the last buffer, prefix and prefix
//! cache on it are gone; then it is destroyed. Libraries are never unloaded. Any thread may use a host.

mod assembly;
mod budgets;
mod builder;
mod disks;
mod entry;
mod find;
mod report;

pub use builder::HostBuilder;
pub use find::Requirements;
pub use report::{BackingReport, BackingState, Stage, StageReport};

use crate::admission;
use crate::backing::{Capabilities, CheckedBacking, ReapReport};
use crate::buffer::{Allocation, AllocationSpec, Buffer, BufferSet, BufferSpec};
use crate::error::Error;
use crate::governor::{Governor, GovernorCore, GovernorSnapshot};
use crate::prefix::{Prefix, PrefixSpec};
use crate::prefix_cache::{PrefixCache, PrefixCacheSpec};
use entry::Entry;
use leasehold_plugin_api::{Accounting, Description, Domain};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backing that is ready for buffers. Clones share it.
#[derive(Clone, Debug)]
pub struct BackingHandle {
    backing: Arc<CheckedBacking>,
}

impl BackingHandle {
    /// The name in the registry file.
    #[must_use]
    pub fn name(&self) -> &str {
        self.backing.name()
    }

    /// What it said of itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        self.backing.description()
    }

    /// What it offers.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        self.backing.capabilities()
    }

    /// Who pays for its physical memory.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        self.backing.accounting()
    }

    /// The domain that its memory is charged to.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.backing.books().domain()
    }

    /// Bytes that the backing itself has charged to its domain: what is behind buffers, allocations and prefixes, and what
    /// it has parked, which [`Host::trim`] gives back. 0 where the buffers pay.
    #[must_use]
    pub fn charged_bytes(&self) -> u64 {
        self.backing.charged_bytes()
    }
}

/// The backings of one registry file under one governor.
#[derive(Debug)]
pub struct Host {
    registry: Option<PathBuf>,
    core: Arc<GovernorCore>,
    entries: Vec<Entry>,
}

impl Host {
    /// Loads every backing that the registry file names. A backing that can't be had is reported in
    /// [`backings`](Self::backings) and stops nobody else, unless the file calls it required.
    ///
    /// # Errors
    ///
    /// [`Registry`](crate::ErrorKind::Registry) with line and column when the file is wrong,
    /// [`RequiredBacking`](crate::ErrorKind::RequiredBacking).
    pub fn load(registry: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().registry(registry).load()
    }

    /// Settings beyond the registry file.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// The registry file, where there is one.
    #[must_use]
    pub fn registry(&self) -> Option<&Path> {
        self.registry.as_deref()
    }

    /// The books of every domain.
    #[must_use]
    pub fn governor(&self) -> Governor {
        Governor::new(Arc::clone(&self.core))
    }

    /// What the books say now.
    #[must_use]
    pub fn snapshot(&self) -> GovernorSnapshot {
        self.core.snapshot()
    }

    /// What became of every backing, in the order of the registry file.
    #[must_use]
    pub fn backings(&self) -> Vec<BackingReport> {
        self.entries.iter().map(Entry::report).collect()
    }

    /// The backing of that name.
    ///
    /// # Errors
    ///
    /// [`NoBackingFits`](crate::ErrorKind::NoBackingFits) when there is none, or it isn't ready.
    pub fn backing(&self, name: &str) -> Result<BackingHandle, Error> {
        Ok(find::named(&self.entries, name)?)
    }

    /// The backing of the highest priority among those that are ready and fit; of equal ones the first in the file.
    ///
    /// # Errors
    ///
    /// [`NoBackingFits`](crate::ErrorKind::NoBackingFits), naming why each does not.
    pub fn find(&self, requirements: &Requirements) -> Result<BackingHandle, Error> {
        Ok(find::best(&self.entries, requirements)?)
    }

    /// Admits one buffer.
    ///
    /// # Errors
    ///
    /// [`AuthorityMismatch`](crate::ErrorKind::AuthorityMismatch) when the backing keeps other books than this host,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when it can't reserve, and what the backing reports. Nothing is
    /// reserved then.
    pub fn buffer(&self, backing: &BackingHandle, spec: &BufferSpec) -> Result<Buffer, Error> {
        Buffer::admit(&backing.backing, &self.core, spec)
    }

    /// Admits a set of `planes` buffers that grow together.
    ///
    /// # Errors
    ///
    /// As [`buffer`](Self::buffer).
    pub fn buffer_set(&self, backing: &BackingHandle, planes: usize, spec: &BufferSpec) -> Result<BufferSet, Error> {
        BufferSet::admit(&backing.backing, &self.core, planes, spec)
    }

    /// Admits memory that is committed as a whole.
    ///
    /// # Errors
    ///
    /// [`TierExhausted`](crate::ErrorKind::TierExhausted), and as [`buffer`](Self::buffer).
    pub fn allocate(&self, backing: &BackingHandle, spec: &AllocationSpec) -> Result<Allocation, Error> {
        Allocation::admit(&backing.backing, &self.core, spec)
    }

    /// Takes physical memory for a prefix, which its creator writes and then seals.
    ///
    /// # Errors
    ///
    /// [`TierExhausted`](crate::ErrorKind::TierExhausted), [`Unsupported`](crate::ErrorKind::Unsupported) when the backing
    /// can't share, and as [`buffer`](Self::buffer).
    pub fn prefix(&self, backing: &BackingHandle, spec: &PrefixSpec) -> Result<Prefix, Error> {
        Prefix::admit(&backing.backing, &self.core, spec)
    }

    /// Opens a cache of prefixes of that backing, which gives cold ones up when the budget runs short.
    ///
    /// # Errors
    ///
    /// [`AuthorityMismatch`](crate::ErrorKind::AuthorityMismatch) when the backing keeps other books than this host,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when it can't share,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when its blocks are nothing or no whole granules.
    pub fn prefix_cache(&self, backing: &BackingHandle, spec: &PrefixCacheSpec) -> Result<PrefixCache, Error> {
        PrefixCache::admit(&backing.backing, &self.governor(), spec)
    }

    /// Has a backing give up memory that it owns and nobody uses, as a pool's parked memory is: as much as makes `bytes`
    /// bytes, or all of it. Answers the bytes that it gave back to the books of this host during the call, whatever it
    /// says. A request that does not fit does the same by itself.
    ///
    /// # Errors
    ///
    /// [`AuthorityMismatch`](crate::ErrorKind::AuthorityMismatch) when the backing keeps other books than this host, and
    /// what the backing reports; some memory may have been given up then.
    pub fn trim(&self, backing: &BackingHandle, bytes: u64) -> Result<u64, Error> {
        admission::check_books(&backing.backing, &self.core)?;
        Ok(backing.backing.trim(bytes)?)
    }

    /// Tries once more to release memory that a backing failed to release when its buffer or prefix was dropped. In a forked
    /// child it does nothing and reports zeros.
    pub fn reap(&self) -> ReapReport {
        let backings = self.entries.iter().filter_map(Entry::backing);
        backings.map(|backing| backing.reap()).fold(ReapReport::default(), ReapReport::and)
    }
}
