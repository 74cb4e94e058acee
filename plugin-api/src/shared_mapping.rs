//! The capability to own physical memory once and map it into many regions.

use crate::{Address, BackingError, Change, CommitRange, HolderId, MemoryRole, PrefixId, RegionId, ReleaseOutcome};

/// A request for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRequest {
    /// Its identity, minted by the host.
    pub id: PrefixId,
    /// Its size: a positive multiple of the backing's granule.
    pub bytes: u64,
    /// What it is for.
    pub role: MemoryRole,
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

/// A part of one prefix, in whole granules.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, abi_stable::StableAbi)]
pub struct PrefixRange {
    /// The prefix's number; see [`PrefixRange::prefix`].
    prefix: u64,
    /// Bytes from the prefix's beginning, a multiple of the granule.
    pub offset: u64,
    /// Its size, a positive multiple of the granule.
    pub bytes: u64,
}

impl PrefixRange {
    /// The part of `prefix` that begins `offset` bytes in.
    #[must_use]
    pub const fn new(prefix: PrefixId, offset: u64, bytes: u64) -> Self {
        Self { prefix: prefix.get(), offset, bytes }
    }

    /// The prefix that it is a part of.
    #[must_use]
    pub const fn prefix(&self) -> PrefixId {
        PrefixId::new(self.prefix)
    }

    /// The offset of the first byte past it, or `None` where that overflows.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

/// One place where a part of a prefix is mapped.
///
/// A prefix may hold the planes of many layers one behind the other: each goes into a region of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, abi_stable::StableAbi)]
pub struct PrefixMapping {
    /// What is mapped.
    pub source: PrefixRange,
    /// The region's number; see [`PrefixMapping::region`].
    region: u64,
    /// Bytes from the region's base, a multiple of the granule.
    pub offset: u64,
}

impl PrefixMapping {
    /// `source` mapped into `region` from `offset` on.
    #[must_use]
    pub const fn new(source: PrefixRange, region: RegionId, offset: u64) -> Self {
        Self { source, region: region.get(), offset }
    }

    /// The region.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        RegionId::new(self.region)
    }

    /// The part of the region that it takes.
    #[must_use]
    pub const fn target(&self) -> CommitRange {
        CommitRange::new(self.region(), self.offset, self.source.bytes)
    }

    /// The bytes that all the mappings show together; [`u64::MAX`] where no number is that large.
    #[must_use]
    pub fn total_bytes(mappings: &[Self]) -> u64 {
        mappings.iter().fold(0, |sum, mapping| sum.saturating_add(mapping.source.bytes))
    }
}

/// One physical prefix in many regions.
///
/// Its physical memory is charged once and costs nothing more however often it is mapped; it lives until its last
/// mapping and its handle are gone, in whichever order. A prefix that this backing did not make, or has released, is
/// refused before any cost is reported, even a cost of zero.
pub trait SharedMapping: Send + Sync {
    /// Takes physical memory for a prefix, and a window to write it through. It reads as zero, or as what this very
    /// holder left.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory), [`BudgetRefused`](crate::ErrorKind::BudgetRefused),
    /// [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted),
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest). Nothing is left behind.
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError>;

    /// Ends all writing: from now on the prefix is read-only wherever it is mapped, the creator's window included, and
    /// no mapping of it can be made writable again.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId), or
    /// [`WrongState`](crate::ErrorKind::WrongState) when it is sealed already. It is as it was then, unless that failed
    /// too: [`BrokenOff`](crate::ErrorKind::BrokenOff), and nobody may write to it any more.
    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError>;

    /// Physical bytes that one more mapping of the prefix would newly own.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId).
    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError>;

    /// Maps every part at its place, read-only, or none of them. Places of one call don't overlap; a part may be mapped
    /// at any number of places. [`committed_bytes`](crate::VirtualBacking::committed_bytes) does not count them.
    ///
    /// # Errors
    ///
    /// [`Foreign`](crate::ErrorKind::Foreign), [`UnknownId`](crate::ErrorKind::UnknownId),
    /// [`WrongState`](crate::ErrorKind::WrongState) when a prefix isn't sealed,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when a part or a place is not in whole granules, leaves its
    /// prefix or region or overlaps another place, [`AlreadyCommitted`](crate::ErrorKind::AlreadyCommitted) when a
    /// place is taken, [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted) when no more mappings are
    /// left. Nothing is left mapped, unless unmapping failed too: [`BrokenOff`](crate::ErrorKind::BrokenOff).
    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError>;

    /// Takes mappings away, each as it was mapped. The release of a region takes what is mapped in it away too.
    ///
    /// # Errors
    ///
    /// [`NotCommitted`](crate::ErrorKind::NotCommitted) when there is no such mapping,
    /// [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted) when no more mappings are left. Nothing is
    /// changed, unless mapping anew failed: [`BrokenOff`](crate::ErrorKind::BrokenOff), and nobody may read there any
    /// more.
    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError>;

    /// Gives the handle and its window back, and the physical memory once nothing maps it any more.
    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome;
}
