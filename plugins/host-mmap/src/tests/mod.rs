//! What the backing does to real memory: requests, residency, kernel mappings, failures, and a model of it all.
#![expect(clippy::arithmetic_side_effects, reason = "a test whose arithmetic overflows fails")]

mod failures;
mod growth;
mod mappings;
mod memory;
mod model;
mod requests;

use crate::{HostMmap, HostMmapOptions, HugePages};
use leasehold_host_memory::MapBudget;
use leasehold_plugin_api::{
    BackingError, ByteSize, Change, CommitRange, HolderId, MemoryRole, Region, RegionId, ReserveRequest, VirtualBacking,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 * KIB;

fn backing(options: &HostMmapOptions) -> HostMmap {
    HostMmap::new(options).unwrap()
}

/// A backing that commits whole MiB.
fn in_mib() -> HostMmap {
    backing(&HostMmapOptions { granule: Some(ByteSize(MIB)), ..HostMmapOptions::default() })
}

/// A backing with a mapping budget of its own.
fn within(max_map_count: u64) -> (HostMmap, &'static MapBudget) {
    let budget = Box::leak(Box::new(MapBudget::below(max_map_count)));
    (HostMmap::within(budget, &HostMmapOptions::default()).unwrap(), budget)
}

fn request(id: u64, bytes: u64, align: u64) -> ReserveRequest {
    ReserveRequest { id: RegionId::new(id), bytes, align, role: MemoryRole::KvCache, holder: HolderId::new(1) }
}

fn reserve(backing: &HostMmap, id: u64, bytes: u64) -> Region {
    backing.reserve(&request(id, bytes, backing.granularity())).unwrap()
}

fn range(id: u64, offset: u64, bytes: u64) -> CommitRange {
    CommitRange::new(RegionId::new(id), offset, bytes)
}

fn commit(backing: &HostMmap, id: u64, offset: u64, bytes: u64) -> Result<Change, BackingError> {
    backing.commit(&[range(id, offset, bytes)])
}

fn decommit(backing: &HostMmap, id: u64, offset: u64, bytes: u64) -> Result<Change, BackingError> {
    backing.decommit(&[range(id, offset, bytes)])
}

fn committed(backing: &HostMmap, id: u64) -> u64 {
    backing.committed_bytes(RegionId::new(id)).unwrap()
}

fn both(bytes: u64) -> Change {
    Change { mapped_bytes: bytes, owned_bytes: bytes }
}

const EVERY_ADVICE: [HugePages; 3] = [HugePages::System, HugePages::Madvise, HugePages::Never];
