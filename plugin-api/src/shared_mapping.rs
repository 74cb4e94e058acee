//! The capability to own physical memory once and map it into many regions.

use crate::{Address, BackingError, Change, HolderId, PrefixId, RegionId, ReleaseOutcome};

/// A request for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRequest {
    /// Its identity, minted by the host.
    pub id: PrefixId,
    /// Its size: a positive multiple of the backing's granule.
    pub bytes: u64,
    /// On whose behalf it is made.
    pub holder: HolderId,
}

/// Physical memory that is owned once, with a window to write it through until it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its identity, as requested.
    pub id: PrefixId,
    /// Where the creator's window begins.
    pub window: Address,
    /// Its size, as requested.
    pub bytes: u64,
    /// Physical bytes that its creation newly owned: fewer than `bytes` where parked memory served.
    pub owned_bytes: u64,
}

/// One place where a prefix is mapped, whole.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, abi_stable::StableAbi)]
pub struct PrefixMapping {
    prefix: u64,
    region: u64,
    /// Bytes from the region's base, a multiple of the granule.
    pub offset: u64,
}

impl PrefixMapping {
    /// `prefix` mapped into `region` from `offset` on.
    #[must_use]
    pub const fn new(prefix: PrefixId, region: RegionId, offset: u64) -> Self {
        Self { prefix: prefix.get(), region: region.get(), offset }
    }

    /// The prefix.
    #[must_use]
    pub const fn prefix(&self) -> PrefixId {
        PrefixId::new(self.prefix)
    }

    /// The region.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        RegionId::new(self.region)
    }
}

/// One physical prefix in many regions.
///
/// A prefix that this backing did not make is refused before any cost is reported, even a cost of zero.
pub trait SharedMapping: Send + Sync {
    /// Takes physical memory for a prefix, and a window to write it through.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory), [`BudgetRefused`](crate::ErrorKind::BudgetRefused),
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest). Nothing is left behind.
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError>;

    /// Ends all writing: from now on the prefix is read-only wherever it is mapped, the creator's window included.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId), or
    /// [`WrongState`](crate::ErrorKind::WrongState) when it is sealed already.
    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError>;

    /// Physical bytes that one more mapping of the prefix would newly own.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId).
    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError>;

    /// Maps every prefix at its place, or none of them.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId),
    /// [`AlreadyCommitted`](crate::ErrorKind::AlreadyCommitted) when a place is taken,
    /// [`WrongState`](crate::ErrorKind::WrongState) when a prefix isn't sealed. Nothing is left mapped.
    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError>;

    /// Takes mappings away. The physical memory lives until its last mapping and its last handle are gone.
    ///
    /// # Errors
    ///
    /// [`NotCommitted`](crate::ErrorKind::NotCommitted) when there is no such mapping. Nothing is changed.
    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError>;

    /// Gives the handle back, and the physical memory once nothing maps it any more.
    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome;
}
