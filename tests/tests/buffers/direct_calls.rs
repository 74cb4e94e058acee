//! Each backing called directly, as no buffer ever would: ranges and ids that are wrong.

use crate::{PAGE, faulty};
use leasehold::{AllocationSpec, BufferSpec, Domain, Host};
use leasehold_plugin_api::{
    self as api, AllocateRequest, AllocationId, Backing, BackingError, CommitRange, HolderId, MemoryRole, RegionId,
    ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use leasehold_tests::fault::Under;
use leasehold_tests::observe::open_bytes;
use leasehold_tests::rig::{LIMIT, MIB};
use std::collections::HashSet;

/// Calls each backing directly, as no buffer ever would.
fn with_raw(check: fn(&dyn Backing, &dyn VirtualBacking)) {
    for under in Under::EXACT {
        println!("over {under:?}");
        let create = move |services| -> Result<Box<dyn Backing>, BackingError> {
            let raw = under.bare(services)?;
            check(&*raw, raw.as_virtual_backing().unwrap());
            Ok(raw)
        };
        let host = Host::builder().limit(Domain::Host, LIMIT).with_backing("raw", create).load().unwrap();
        host.backing("raw").unwrap_or_else(|error| panic!("{error}"));
    }
}

fn reserve(backing: &dyn VirtualBacking, id: u64, bytes: u64) -> Result<api::Region, BackingError> {
    let (role, holder) = (MemoryRole::KvCache, HolderId::new(1));
    backing.reserve(&ReserveRequest { id: RegionId::new(id), bytes, align: PAGE, role, holder })
}

fn range(id: u64, offset: u64, bytes: u64) -> [CommitRange; 1] {
    [CommitRange::new(RegionId::new(id), offset, bytes)]
}

#[test]
fn a_range_that_is_not_whole_granules_drops_nothing_of_its_neighbours() {
    with_raw(|_, backing| {
        let region = reserve(backing, 1, 8 * PAGE).unwrap();
        backing.commit(&range(1, 0, 8 * PAGE)).unwrap();
        let odd = [(1, PAGE), (PAGE, 1), (PAGE / 2, PAGE), (0, 0), (8 * PAGE, PAGE), (7 * PAGE, 2 * PAGE)];
        let overflowing = [(u64::MAX - PAGE + 1, PAGE), (PAGE, u64::MAX - PAGE + 1), (u64::MAX, u64::MAX)];
        for (offset, bytes) in odd.into_iter().chain(overflowing) {
            for outcome in [backing.decommit(&range(1, offset, bytes)), backing.commit(&range(1, offset, bytes))] {
                assert_eq!(outcome.unwrap_err().kind(), api::ErrorKind::InvalidRequest, "{offset}, {bytes}");
            }
            assert_eq!(open_bytes(region.base, 8 * PAGE), 8 * PAGE, "{offset}, {bytes}");
        }
        backing.decommit(&range(1, 3 * PAGE, PAGE)).unwrap();
        assert_eq!(open_bytes(region.base, 8 * PAGE), 7 * PAGE);
        assert_eq!(open_bytes(region.base.checked_add(3 * PAGE).unwrap(), PAGE), 0, "this granule and no other");
    });
}

#[test]
fn a_range_is_committed_once_and_decommitted_once() {
    with_raw(|_, backing| {
        let region = reserve(backing, 1, 4 * PAGE).unwrap();
        backing.commit(&range(1, PAGE, 2 * PAGE)).unwrap();
        for (offset, granules) in [(0, 2), (1, 1), (2, 2), (0, 4)] {
            let error = backing.commit(&range(1, offset * PAGE, granules * PAGE)).unwrap_err();
            assert_eq!(error.kind(), api::ErrorKind::AlreadyCommitted, "{offset}, {granules}");
        }
        for (offset, granules) in [(0, 1), (0, 2), (2, 2), (3, 1)] {
            let error = backing.decommit(&range(1, offset * PAGE, granules * PAGE)).unwrap_err();
            assert_eq!(error.kind(), api::ErrorKind::NotCommitted, "{offset}, {granules}");
        }
        let left = (backing.committed_bytes(RegionId::new(1)).unwrap(), open_bytes(region.base, 4 * PAGE));
        assert_eq!(left, (2 * PAGE, 2 * PAGE));
    });
}

#[test]
fn a_region_is_dead_after_its_release() {
    with_raw(|backing, growing| {
        reserve(growing, 1, 4 * PAGE).unwrap();
        growing.commit(&range(1, 0, PAGE)).unwrap();
        let target = ReleaseTarget::Region(RegionId::new(1));
        assert_eq!(backing.release(target), ReleaseOutcome::Complete);
        let ReleaseOutcome::Failed(error) = backing.release(target) else { panic!("is released twice") };
        assert_eq!(error.kind(), api::ErrorKind::UnknownId);
        let after = [
            growing.commit(&range(1, 0, PAGE)).unwrap_err(),
            growing.decommit(&range(1, 0, PAGE)).unwrap_err(),
            growing.cost(&range(1, 0, PAGE)).unwrap_err(),
            growing.committed_bytes(RegionId::new(1)).unwrap_err(),
        ];
        for error in after {
            assert_eq!(error.kind(), api::ErrorKind::UnknownId, "{error}");
        }
    });
}

#[test]
fn an_id_that_is_live_is_not_given_out_again() {
    with_raw(|backing, growing| {
        let region = reserve(growing, 1, PAGE).unwrap();
        assert_eq!(reserve(growing, 1, PAGE).unwrap_err().kind(), api::ErrorKind::InvalidRequest);
        let (role, holder) = (MemoryRole::Weights, HolderId::new(1));
        let request = AllocateRequest { id: AllocationId::new(1), bytes: 1, align: 1, role, holder };
        backing.allocate(&request).expect("regions and allocations are numbered apart");
        assert_eq!(backing.allocate(&request).unwrap_err().kind(), api::ErrorKind::InvalidRequest);
        growing.commit(&range(1, 0, PAGE)).unwrap();
        assert_eq!(open_bytes(region.base, PAGE), PAGE, "the first one still works");
    });
}

#[test]
fn the_host_uses_no_id_twice() {
    for (faults, host, backing) in faulty(LIMIT) {
        for _ in 0..50 {
            drop(host.buffer_set(&backing, 3, &BufferSpec::new(MIB)).unwrap());
            drop(host.allocate(&backing, &AllocationSpec::new(1)).unwrap());
        }
        let handed_out = faults.handed_out();
        let ids: HashSet<_> = handed_out.iter().map(|extent| extent.target).collect();
        assert_eq!((handed_out.len(), ids.len()), (200, 200));
    }
}
