//! Reserved address ranges, plain allocations, and the parts of a region that commit.

use super::{Address, AllocationId, HolderId, MemoryRole, RegionId};

/// A request for address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveRequest {
    /// The region's identity, minted by the host.
    pub id: RegionId,
    /// Its size: a positive multiple of the granularity.
    pub bytes: u64,
    /// Alignment of the base: a power of two, at least the granularity.
    pub align: u64,
    /// What the memory is for.
    pub role: MemoryRole,
    /// On whose behalf.
    pub holder: HolderId,
}

/// One reserved address range. Nothing in it is committed at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its identity, as requested.
    pub id: RegionId,
    /// Where it begins; fixed until its release.
    pub base: Address,
    /// Its size, as requested.
    pub bytes: u64,
}

/// A request for a plain allocation, committed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocateRequest {
    /// The allocation's identity, minted by the host.
    pub id: AllocationId,
    /// Its size, positive.
    pub bytes: u64,
    /// Alignment of the base: a power of two.
    pub align: u64,
    /// What the memory is for.
    pub role: MemoryRole,
    /// On whose behalf.
    pub holder: HolderId,
}

/// One plain allocation, whose bytes read as zero at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its identity, as requested.
    pub id: AllocationId,
    /// Where it begins.
    pub base: Address,
    /// Physical bytes behind it: at least what was asked for, rounded up to the backing's own unit.
    pub bytes: u64,
}

/// A part of one region, in whole granules.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, abi_stable::StableAbi)]
pub struct CommitRange {
    /// The region's number; see [`CommitRange::region`].
    region: u64,
    /// Bytes from the region's base, a multiple of the granularity.
    pub offset: u64,
    /// Its size, a positive multiple of the granularity.
    pub bytes: u64,
}

impl CommitRange {
    /// The part of `region` that begins `offset` bytes in.
    #[must_use]
    pub const fn new(region: RegionId, offset: u64, bytes: u64) -> Self {
        Self { region: region.get(), offset, bytes }
    }

    /// The region that it is a part of.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        RegionId::new(self.region)
    }

    /// The offset of the first byte past it, or `None` where that overflows.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }

    /// The bytes of all the ranges together; [`u64::MAX`] where no number is that large.
    #[must_use]
    pub fn total_bytes(ranges: &[Self]) -> u64 {
        ranges.iter().fold(0, |sum, range| sum.saturating_add(range.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_bytes_together_and_at_most_what_a_number_holds() {
        let range = |bytes| CommitRange::new(RegionId::new(1), 0, bytes);
        assert_eq!(CommitRange::total_bytes(&[]), 0);
        assert_eq!(CommitRange::total_bytes(&[range(4096), range(8192)]), 12_288);
        assert_eq!(CommitRange::total_bytes(&[range(u64::MAX), range(1)]), u64::MAX);
    }
}
