//! What is refused, and with which kind.

use super::*;
use leasehold_plugin_api::{
    Accounting, AllocateRequest, AllocationId, Backing, BackingFactory, CpuAccess, DeviceKey, ErrorKind,
    ReleaseOutcome, ReleaseTarget,
};

fn allocate(backing: &HostMmap, id: u64, bytes: u64, align: u64) -> Result<(u64, u64), BackingError> {
    let (role, holder) = (MemoryRole::Weights, HolderId::new(1));
    let request = AllocateRequest { id: AllocationId::new(id), bytes, align, role, holder };
    backing.allocate(&request).map(|allocation| (allocation.base.get(), allocation.bytes))
}

fn kind<T: std::fmt::Debug>(answer: Result<T, BackingError>) -> ErrorKind {
    answer.unwrap_err().kind()
}

#[test]
fn it_says_that_it_is_host_memory_paid_for_by_the_buffer() {
    let backing = backing(&HostMmapOptions::default());
    let description = backing.describe();
    assert_eq!(description.device, DeviceKey::HOST);
    assert_eq!(HostMmap::HOST_ACCESS.access(), CpuAccess::DirectAndCopiedByFork);
    assert_eq!((description.device_name.as_str(), backing.accounting()), ("host memory", Accounting::Buffer));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = meminfo.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(description.total_bytes, total * KIB);
    assert_eq!(HostMmap::NAME, "host-mmap");
    assert_eq!(backing.granularity(), PAGE);
}

#[test]
fn impossible_reservations_are_refused_by_kind_and_leave_nothing_behind() {
    let (backing, budget) = within(65_530);
    let reserve = |bytes, align| kind(backing.reserve(&request(1, bytes, align)));
    for bytes in [0, 1, 6912, u64::MAX] {
        assert_eq!(reserve(bytes, PAGE), ErrorKind::InvalidRequest, "{bytes} bytes");
    }
    for align in [0, 3, PAGE / 2, PAGE + 1, u64::MAX] {
        assert_eq!(reserve(MIB, align), ErrorKind::InvalidRequest, "alignment {align}");
    }
    for bytes in [1 << 47, 1 << 63, u64::MAX - (PAGE - 1)] {
        assert_eq!(reserve(bytes, PAGE), ErrorKind::AddressSpaceExhausted, "{bytes} bytes");
    }
    assert_eq!(reserve(MIB, 1 << 63), ErrorKind::AddressSpaceExhausted);
    assert_eq!(reserve(1 << 46, 1 << 63), ErrorKind::AddressSpaceExhausted);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_reservation_without_address_space_says_what_limits_it() {
    let error = backing(&HostMmapOptions::default()).reserve(&request(1, 1 << 47, PAGE)).unwrap_err();
    assert_eq!(
        error.message(),
        "no address space for 140737488355328 bytes aligned to 4096: mmap(PROT_NONE) failed: ENOMEM (12); ask for \
         less, or raise the address space limit (ulimit -v, RLIMIT_AS) or vm.max_map_count"
    );
    assert_eq!((error.native_code(), error.requested_bytes()), (Some(12), 1 << 47));
}

#[test]
fn a_base_is_aligned_as_asked_and_nothing_around_it_stays_mapped() {
    let backing = backing(&HostMmapOptions::default());
    for (id, shift) in (12..=40).enumerate() {
        let id = u64::try_from(id).unwrap();
        let region = backing.reserve(&request(id, 3 * PAGE, 1 << shift)).unwrap();
        assert!(region.base.is_aligned_to(1 << shift), "{} for 2^{shift}", region.base);
        commit(&backing, id, 0, 3 * PAGE).unwrap();
        memory::mark(region.base, 0, 3 * PAGE, 1);
        assert_eq!(memory::mappings(region.base, 3 * PAGE), 1);
    }
}

#[test]
fn a_live_id_is_refused_and_the_first_region_stays() {
    let backing = in_mib();
    let first = reserve(&backing, 1, 4 * MIB);
    commit(&backing, 1, 0, MIB).unwrap();
    assert_eq!(kind(backing.reserve(&request(1, MIB, MIB))), ErrorKind::InvalidRequest);
    assert_eq!(committed(&backing, 1), MIB);
    memory::mark(first.base, 0, MIB, 1);
}

#[test]
fn malformed_ranges_are_refused_before_anything_is_committed() {
    let backing = in_mib();
    reserve(&backing, 1, 8 * MIB);
    let valid = range(1, 0, MIB);
    for (offset, bytes) in [
        (MIB, 0),
        (MIB, 6912),
        (6912, MIB),
        (8 * MIB, MIB),
        (7 * MIB, 2 * MIB),
        (MIB, u64::MAX - (MIB - 1)),
        (u64::MAX - (MIB - 1), MIB),
        (0, MIB),
    ] {
        let ranges = [valid, range(1, offset, bytes)];
        assert_eq!(kind(backing.commit(&ranges)), ErrorKind::InvalidRequest, "{bytes} at {offset}");
        assert_eq!(kind(backing.cost(&ranges)), ErrorKind::InvalidRequest, "{bytes} at {offset}");
        assert_eq!(committed(&backing, 1), 0);
    }
}

#[test]
fn ranges_of_one_call_that_overlap_are_named() {
    let backing = in_mib();
    reserve(&backing, 1, 8 * MIB);
    let error = backing.commit(&[range(1, 2 * MIB, 2 * MIB), range(1, MIB, 2 * MIB)]).unwrap_err();
    assert_eq!(
        error.message(),
        "region 1: two ranges of one call overlap, 2097152 bytes at offset 1048576 and 2097152 bytes at offset \
         2097152; name each granule once"
    );
}

#[test]
fn the_same_range_is_committed_once_and_decommitted_once() {
    let backing = in_mib();
    reserve(&backing, 1, 8 * MIB);
    assert_eq!(commit(&backing, 1, 0, 2 * MIB), Ok(both(2 * MIB)));
    assert_eq!(kind(commit(&backing, 1, MIB, 2 * MIB)), ErrorKind::AlreadyCommitted);
    assert_eq!(kind(backing.cost(&[range(1, MIB, 2 * MIB)])), ErrorKind::AlreadyCommitted);
    assert_eq!(kind(decommit(&backing, 1, MIB, 2 * MIB)), ErrorKind::NotCommitted);
    assert_eq!(committed(&backing, 1), 2 * MIB);
    assert_eq!(decommit(&backing, 1, 0, 2 * MIB), Ok(both(2 * MIB)));
    assert_eq!(kind(decommit(&backing, 1, 0, 2 * MIB)), ErrorKind::NotCommitted);
}

#[test]
fn a_released_region_is_unknown_ever_after() {
    let backing = in_mib();
    reserve(&backing, 1, 4 * MIB);
    reserve(&backing, 2, 4 * MIB);
    commit(&backing, 1, 0, MIB).unwrap();
    let target = ReleaseTarget::Region(RegionId::new(1));
    assert_eq!(backing.release(target), ReleaseOutcome::Complete);
    assert!(matches!(backing.release(target), ReleaseOutcome::Failed(error) if error.kind() == ErrorKind::UnknownId));
    let ranges = [range(2, 0, MIB), range(1, MIB, MIB)];
    assert_eq!(kind(backing.commit(&ranges)), ErrorKind::UnknownId);
    assert_eq!(kind(backing.decommit(&ranges)), ErrorKind::UnknownId);
    assert_eq!(kind(backing.cost(&ranges)), ErrorKind::UnknownId);
    assert_eq!(kind(backing.committed_bytes(RegionId::new(1))), ErrorKind::UnknownId);
    assert_eq!(committed(&backing, 2), 0);
}

#[test]
fn a_cost_is_what_the_commit_then_changes_and_changes_nothing_itself() {
    let backing = in_mib();
    reserve(&backing, 1, 8 * MIB);
    reserve(&backing, 2, 8 * MIB);
    let ranges = [range(2, MIB, 3 * MIB), range(1, 0, MIB), range(2, 5 * MIB, MIB)];
    assert_eq!(backing.cost(&ranges), Ok(both(5 * MIB)));
    assert_eq!((committed(&backing, 1), committed(&backing, 2)), (0, 0));
    assert_eq!(backing.commit(&ranges), Ok(both(5 * MIB)));
    assert_eq!((committed(&backing, 1), committed(&backing, 2)), (MIB, 4 * MIB));
    assert_eq!(backing.commit(&[]), Ok(both(0)));
}

#[test]
fn an_allocation_is_whole_pages_aligned_and_zero() {
    let (backing, budget) = within(65_530);
    let (base, bytes) = allocate(&backing, 1, 6912, 2 * MIB).unwrap();
    let base = leasehold_plugin_api::Address::new(base);
    assert_eq!(bytes, 2 * PAGE);
    assert!(base.is_aligned_to(2 * MIB));
    assert!(memory::holds(base, 0, bytes, 0));
    memory::mark(base, 0, bytes, 7);
    assert_eq!(memory::mappings(base, bytes), 1);
    let target = ReleaseTarget::Allocation(AllocationId::new(1));
    assert_eq!(backing.release(target), ReleaseOutcome::Complete);
    assert!(matches!(backing.release(target), ReleaseOutcome::Failed(error) if error.kind() == ErrorKind::UnknownId));
    assert_eq!(budget.used(), 0);
}

#[test]
fn impossible_allocations_are_refused_by_kind() {
    let backing = backing(&HostMmapOptions::default());
    for (bytes, align) in [(0, 1), (1, 0), (1, 3)] {
        assert_eq!(kind(allocate(&backing, 1, bytes, align)), ErrorKind::InvalidRequest, "{bytes}, {align}");
    }
    assert_eq!(kind(allocate(&backing, 1, u64::MAX, 1)), ErrorKind::OutOfMemory);
    assert_eq!(kind(allocate(&backing, 1, 1 << 47, 1)), ErrorKind::AddressSpaceExhausted);
    allocate(&backing, 1, 1, 1).unwrap();
    assert_eq!(kind(allocate(&backing, 1, 1, 1)), ErrorKind::InvalidRequest);
}
