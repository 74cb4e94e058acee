//! Prefixes that are released while other threads name them.

use super::setup::{DEVICE, LIMIT, UNIT, options, simulator, used};
use leasehold::{HolderId, Host};
use leasehold_plugin_api::{
    Backing, MemoryRole, PrefixId, PrefixMapping, PrefixRange, PrefixRequest, RegionId, ReleaseOutcome, ReleaseTarget,
    ReserveRequest,
};
use leasehold_tests::fault::creator;

const ROLE: MemoryRole = MemoryRole::KvCache;
const HOLDER: HolderId = HolderId::new(1);
const REGION: RegionId = RegionId::new(1 << 42);
/// So many are named in one call, so that a release falls into it.
const PLACES: u64 = 200;

/// Names a prefix in calls that are refused, for another one that never was, while it is released.
fn release_beside_refusals(backing: &dyn Backing, id: PrefixId) {
    let sharing = backing.as_shared_mapping().unwrap();
    sharing.create_prefix(&PrefixRequest { id, bytes: UNIT, role: ROLE, holder: HOLDER }).unwrap();
    sharing.seal(id).unwrap();
    let mapping = |id, place: u64| PrefixMapping::new(PrefixRange::new(id, 0, UNIT), REGION, place * UNIT);
    let mut mappings: Vec<_> = (0..PLACES).map(|place| mapping(id, place)).collect();
    mappings.push(mapping(PrefixId::new(1 << 43), PLACES));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|_| drop(sharing.map_prefix(&mappings).unwrap_err())));
        scope.spawn(|| assert_eq!(sharing.release_prefix(id), ReleaseOutcome::Complete));
    });
}

/// The call that was refused held the memory last: it went back to the driver, and stayed charged for ever.
#[test]
fn a_prefix_that_is_released_while_a_mapping_of_it_is_refused_is_refunded() {
    let simulator = simulator();
    let builder = Host::builder().limit(DEVICE, LIMIT);
    let builder = builder.with_backing("pool", creator("cuda-pool", options(&[("park", "0")])));
    let builder = builder.examine(|_, backing| {
        let request =
            ReserveRequest { id: REGION, bytes: (PLACES + 1) * UNIT, align: UNIT, role: ROLE, holder: HOLDER };
        backing.as_virtual_backing().unwrap().reserve(&request).unwrap();
        for round in 0..400 {
            release_beside_refusals(backing, PrefixId::new((1 << 42) + round));
        }
        assert_eq!(backing.release(ReleaseTarget::Region(REGION)), ReleaseOutcome::Complete);
    });
    let host = builder.load().unwrap();
    assert_eq!((used(&host), simulator.books().used(0)), (0, 0), "charged, owned");
    drop(host);
    simulator.finish();
}
