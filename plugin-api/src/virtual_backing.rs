//! The capability to reserve address space once and put physical memory behind it as it is needed.

use crate::{BackingError, Change, CommitRange, Region, RegionId, ReserveRequest};

/// Memory that grows behind a fixed address.
///
/// One call takes ranges of many regions, so that all key and value planes of all layers grow in one crossing. Every
/// range lies within its region and covers whole granules; no two ranges of one call overlap. A call without ranges
/// succeeds and changes nothing.
pub trait VirtualBacking: Send + Sync {
    /// The unit of commit in bytes: a power of two, the same for the life of the backing.
    fn granularity(&self) -> u64;

    /// Takes address space. Nothing is committed and nothing is owned.
    ///
    /// # Errors
    ///
    /// [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted) or
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest). Nothing is left behind.
    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError>;

    /// Puts physical memory behind every range, or behind none. It reads as zero, or as what this very holder left.
    ///
    /// # Errors
    ///
    /// [`AlreadyCommitted`](crate::ErrorKind::AlreadyCommitted) when a range holds a committed granule,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when a range is not in whole granules, leaves its region or
    /// overlaps another, [`OutOfMemory`](crate::ErrorKind::OutOfMemory),
    /// [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted) when no more mappings are left,
    /// [`UnknownId`](crate::ErrorKind::UnknownId), and the kinds that fit the device. Nothing is changed.
    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError>;

    /// Takes the physical memory behind every range away. The bytes are lost, the address space stays. A pool may park
    /// the memory for a later commit: then it stays owned.
    ///
    /// # Errors
    ///
    /// [`NotCommitted`](crate::ErrorKind::NotCommitted) when a range holds a granule that is not committed (nothing is
    /// changed), and the kinds that fit the device. Where the mechanism itself can't undo a half-done decommit, it
    /// works from the end of each range backwards, so that a region whose commitment ends with its range keeps a prefix
    /// of it; [`committed_bytes`](VirtualBacking::committed_bytes) tells how much: the host asks after every failure.
    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError>;

    /// Says what committing the ranges would newly map and newly own, without doing it.
    ///
    /// # Errors
    ///
    /// As [`commit`](VirtualBacking::commit), for what can be known beforehand.
    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError>;

    /// Bytes that commits have put into the region and nothing has taken away; prefixes that are mapped there don't count.
    ///
    /// # Errors
    ///
    /// [`UnknownId`](crate::ErrorKind::UnknownId).
    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError>;
}
