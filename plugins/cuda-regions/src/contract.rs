//! The contract's traits, answered by all regions of one backing.

use crate::regions::DeviceRegions;
use leasehold_plugin_api::{
    Address, BackingError, Change, CommitRange, Prefix, PrefixId, PrefixMapping, PrefixRequest, Region, RegionId,
    ReleaseOutcome, ReserveRequest, SharedMapping, Transfer, VirtualBacking,
};

impl VirtualBacking for DeviceRegions {
    fn granularity(&self) -> u64 {
        self.granule()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.reserve(request)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.commit(ranges)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.decommit(ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.committed_bytes(region)
    }
}

impl Transfer for DeviceRegions {
    fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError> {
        self.read(from, into)
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError> {
        self.write(to, bytes)
    }

    fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError> {
        self.fill(to, bytes, value)
    }
}

impl SharedMapping for DeviceRegions {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        self.create_prefix(request)
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        self.seal(prefix)
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        self.incremental_owned_bytes(prefix)
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.map_prefix(mappings)
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.unmap(mappings)
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        self.release_prefix(prefix)
    }
}
