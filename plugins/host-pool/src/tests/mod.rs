//! What the pool does to real memory: recycling, isolation, sharing, failures, threads, and a model of it all.
#![expect(clippy::arithmetic_side_effects, reason = "a test whose arithmetic overflows fails")]

mod books;
mod broken_off;
mod failures;
mod growth;
mod isolation;
mod limits;
mod memory;
mod model;
mod prefixes;
mod recycling;
mod reentrance;
mod requests;

use crate::pool::Pool;
use crate::store::Store;
use crate::treasury::Treasury;
use crate::{HostPool, HostPoolOptions};
use books::Books;
use leasehold_host_memory::MapBudget;
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, AllocationId, Backing, BackingError, ByteSize, Change, CommitRange,
    ErrorKind, HolderId, MemoryRole, Prefix, PrefixId, PrefixMapping, PrefixRange, PrefixRequest, Region, RegionId,
    ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, VirtualBacking,
};
use std::sync::Arc;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GRANULE: u64 = 64 * KIB;

const ONE: HolderId = HolderId::new(1);
const OTHER: HolderId = HolderId::new(2);

fn parking(bytes: u64) -> HostPoolOptions {
    HostPoolOptions { park: Some(ByteSize(bytes)), ..HostPoolOptions::default() }
}

fn over(options: &HostPoolOptions, books: impl Treasury + 'static, budget: &'static MapBudget) -> HostPool {
    let settings = options.resolve(4 * KIB).unwrap();
    let pool = Pool::new(settings, Store::new(settings.granule).unwrap(), Box::new(books)).unwrap();
    HostPool::over(pool, Accounting::Buffer, budget)
}

/// A pool with books of its own.
fn pool(options: &HostPoolOptions) -> (HostPool, Arc<Books>) {
    let books = Arc::new(Books::default());
    (over(options, books.clone(), MapBudget::of_library()), books)
}

/// A pool with a mapping budget of its own.
fn within(max_map_count: u64) -> (HostPool, Arc<Books>, &'static MapBudget) {
    let budget: &'static MapBudget = Box::leak(Box::new(MapBudget::below(max_map_count)));
    let books = Arc::new(Books::default());
    (over(&HostPoolOptions::default(), books.clone(), budget), books, budget)
}

fn request(id: u64, bytes: u64, holder: HolderId) -> ReserveRequest {
    ReserveRequest { id: RegionId::new(id), bytes, align: GRANULE, role: MemoryRole::KvCache, holder }
}

fn reserve(pool: &HostPool, id: u64, bytes: u64, holder: HolderId) -> Region {
    pool.reserve(&request(id, bytes, holder)).unwrap()
}

fn range(id: u64, offset: u64, bytes: u64) -> CommitRange {
    CommitRange::new(RegionId::new(id), offset, bytes)
}

fn commit(pool: &HostPool, id: u64, offset: u64, bytes: u64) -> Result<Change, BackingError> {
    pool.commit(&[range(id, offset, bytes)])
}

fn decommit(pool: &HostPool, id: u64, offset: u64, bytes: u64) -> Result<Change, BackingError> {
    pool.decommit(&[range(id, offset, bytes)])
}

fn committed(pool: &HostPool, id: u64) -> u64 {
    pool.committed_bytes(RegionId::new(id)).unwrap()
}

fn release(pool: &HostPool, id: u64) {
    assert_eq!(pool.release(ReleaseTarget::Region(RegionId::new(id))), ReleaseOutcome::Complete);
}

fn allocate(pool: &HostPool, id: u64, bytes: u64, holder: HolderId) -> Result<Allocation, BackingError> {
    let id = AllocationId::new(id);
    pool.allocate(&AllocateRequest { id, bytes, align: 1, role: MemoryRole::Weights, holder })
}

fn create(pool: &HostPool, id: u64, bytes: u64, holder: HolderId) -> Result<Prefix, BackingError> {
    pool.create_prefix(&PrefixRequest { id: PrefixId::new(id), bytes, role: MemoryRole::KvCache, holder })
}

fn release_prefix(pool: &HostPool, id: u64) {
    assert_eq!(pool.release_prefix(PrefixId::new(id)), ReleaseOutcome::Complete);
}

/// A part of a prefix, in a region.
fn place(prefix: u64, from: u64, bytes: u64, region: u64, offset: u64) -> PrefixMapping {
    PrefixMapping::new(PrefixRange::new(PrefixId::new(prefix), from, bytes), RegionId::new(region), offset)
}

fn change(mapped_bytes: u64, owned_bytes: u64) -> Change {
    Change { mapped_bytes, owned_bytes }
}

fn kind<T: std::fmt::Debug>(answer: Result<T, BackingError>) -> ErrorKind {
    answer.unwrap_err().kind()
}
