//! What is refused, and with which kind.

use super::*;
use leasehold_plugin_api::{BackingFactory, CpuAccess};

#[test]
fn it_says_that_it_is_host_memory_and_offers_sharing() {
    let pool = HostPool::new(&HostPoolOptions::default()).unwrap();
    assert_eq!(HostPool::HOST_ACCESS.access(), CpuAccess::Direct, "its files are not copied by a fork");
    assert!(pool.as_virtual_backing().is_some() && pool.as_shared_mapping().is_some() && pool.as_transfer().is_none());
    assert_eq!((HostPool::NAME, pool.granularity()), ("host-pool", GRANULE));
    assert_eq!(pool.accounting(), Accounting::Buffer);
}

#[test]
fn impossible_requests_are_refused_by_kind_and_charge_nothing() {
    let (pool, books, budget) = within(65_530);
    for bytes in [0, 1, 6912, u64::MAX] {
        assert_eq!(kind(pool.reserve(&request(1, bytes, ONE))), ErrorKind::InvalidRequest, "{bytes} bytes");
        assert_eq!(kind(create(&pool, 1, bytes, ONE)), ErrorKind::InvalidRequest, "{bytes} bytes");
    }
    assert_eq!(kind(pool.reserve(&request(1, 1 << 47, ONE))), ErrorKind::AddressSpaceExhausted);
    assert_eq!(kind(create(&pool, 1, 1 << 47, ONE)), ErrorKind::AddressSpaceExhausted);
    for align in [0, 3, GRANULE / 2, u64::MAX] {
        let request = ReserveRequest { align, ..request(1, MIB, ONE) };
        assert_eq!(kind(pool.reserve(&request)), ErrorKind::InvalidRequest, "alignment {align}");
    }
    assert_eq!(kind(allocate(&pool, 1, 0, ONE)), ErrorKind::InvalidRequest);
    assert_eq!(kind(allocate(&pool, 1, u64::MAX, ONE)), ErrorKind::OutOfMemory);
    assert_eq!(kind(allocate(&pool, 1, 1 << 47, ONE)), ErrorKind::AddressSpaceExhausted);
    assert_eq!((books.charges(), budget.used()), (0, 0));
}

#[test]
fn an_allocation_is_whole_granules_and_aligned() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let id = AllocationId::new(1);
    let request = AllocateRequest { id, bytes: 6912, align: 2 * MIB, role: MemoryRole::Weights, holder: ONE };
    let allocation = pool.allocate(&request).unwrap();
    assert!(allocation.base.is_aligned_to(2 * MIB));
    assert!(memory::holds(allocation.base, 0, GRANULE, 0));
    assert_eq!((allocation.bytes, books.charged()), (GRANULE, GRANULE));
    assert_eq!(kind(pool.allocate(&request)), ErrorKind::InvalidRequest);
    assert_eq!(pool.release(ReleaseTarget::Allocation(id)), ReleaseOutcome::Complete);
    assert!(matches!(pool.release(ReleaseTarget::Allocation(id)), ReleaseOutcome::Failed(_)));
}

#[test]
fn live_ids_are_refused_and_dead_ones_unknown() {
    let (pool, books) = pool(&HostPoolOptions::default());
    reserve(&pool, 1, MIB, ONE);
    create(&pool, 1, MIB, ONE).unwrap();
    assert_eq!(kind(pool.reserve(&request(1, MIB, ONE))), ErrorKind::InvalidRequest);
    assert_eq!(kind(create(&pool, 1, MIB, ONE)), ErrorKind::InvalidRequest);
    assert_eq!(books.charged(), MIB);
    release(&pool, 1);
    release_prefix(&pool, 1);
    let id = PrefixId::new(1);
    assert_eq!(kind(commit(&pool, 1, 0, GRANULE)), ErrorKind::UnknownId);
    assert_eq!(kind(pool.committed_bytes(RegionId::new(1))), ErrorKind::UnknownId);
    assert_eq!(kind(pool.seal(id)), ErrorKind::UnknownId);
    assert_eq!(kind(pool.incremental_owned_bytes(id)), ErrorKind::UnknownId);
    assert!(matches!(pool.release_prefix(id), ReleaseOutcome::Failed(error) if error.kind() == ErrorKind::UnknownId));
}

#[test]
fn ranges_are_committed_once_and_whole() {
    let (pool, books) = pool(&HostPoolOptions::default());
    reserve(&pool, 1, 4 * MIB, ONE);
    commit(&pool, 1, MIB, MIB).unwrap();
    assert_eq!(kind(commit(&pool, 1, 0, 2 * MIB)), ErrorKind::AlreadyCommitted);
    assert_eq!(kind(pool.cost(&[range(1, MIB, MIB)])), ErrorKind::AlreadyCommitted);
    assert_eq!(kind(decommit(&pool, 1, 0, 2 * MIB)), ErrorKind::NotCommitted);
    for (offset, bytes) in [(0, 0), (0, 6912), (6912, GRANULE), (4 * MIB, GRANULE), (0, u64::MAX - (GRANULE - 1))] {
        assert_eq!(kind(commit(&pool, 1, offset, bytes)), ErrorKind::InvalidRequest, "{bytes} at {offset}");
    }
    let twice = [range(1, 0, MIB), range(1, MIB - GRANULE, GRANULE)];
    assert_eq!(kind(pool.commit(&twice)), ErrorKind::InvalidRequest);
    assert_eq!((books.charges(), committed(&pool, 1)), (1, MIB));
    assert_eq!(pool.commit(&[]), Ok(change(0, 0)));
}
