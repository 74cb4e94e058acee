//! What growing and shrinking cost, in calls of the driver: the simulator counts them, so the figures are exact.

use super::setup::{NAMES, UNIT, host, simulator, used};
use leasehold::{BufferSpec, PrefixSpec};
use leasehold_tests::cuda::Simulator;
use std::collections::BTreeMap;

const PLANES: u64 = 4;
const GRANULES: u64 = 3;

/// The calls that change memory, and how often each was made since the last time.
struct Counter<'s> {
    simulator: &'s Simulator,
    before: BTreeMap<&'static str, u64>,
}

const WATCHED: [&str; 9] = [
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemsetD8_v2",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuCtxSynchronize",
];

impl<'s> Counter<'s> {
    fn new(simulator: &'s Simulator) -> Self {
        let mut counter = Self { simulator, before: BTreeMap::new() };
        counter.take();
        counter
    }

    /// Calls since the last time, without those that were not made.
    fn take(&mut self) -> BTreeMap<&'static str, u64> {
        let now: BTreeMap<_, _> = WATCHED.iter().map(|name| (*name, self.simulator.count(name))).collect();
        let since = |(name, count): (&&'static str, &u64)| {
            let made = count - self.before.get(*name).copied().unwrap_or(0);
            (made > 0).then_some((*name, made))
        };
        let made = now.iter().filter_map(since).collect();
        self.before = now;
        made
    }
}

fn calls<const N: usize>(pairs: [(&'static str, u64); N]) -> BTreeMap<&'static str, u64> {
    pairs.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn growing_by_a_run_gives_access_once_a_plane_and_shrinking_unmaps_once_a_plane() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) =
            host(name, &[("park", "64 MiB")].iter().copied().filter(|_| name == "cuda-pool").collect::<Vec<_>>());
        let mut counter = Counter::new(&simulator);
        let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(64 * UNIT)).unwrap();
        assert_eq!(counter.take(), calls([("cuMemAddressReserve", PLANES)]), "{name}");
        let units = PLANES * GRANULES;
        let grown = |creates| {
            calls([
                ("cuMemCreate", creates),
                ("cuMemMap", units),
                ("cuMemSetAccess", PLANES),
                ("cuMemsetD8_v2", PLANES),
            ])
        };
        set.grow_to(GRANULES * UNIT).unwrap();
        assert_eq!(counter.take(), grown(units), "{name}: the first growth");
        set.grow_to(2 * GRANULES * UNIT).unwrap();
        assert_eq!(counter.take(), grown(units), "{name}: the second growth");
        set.shrink_to(2 * GRANULES * UNIT - 1).unwrap();
        set.grow_to(2 * GRANULES * UNIT).unwrap();
        assert_eq!(counter.take(), calls([]), "{name}: within what is committed");
        set.shrink_to(GRANULES * UNIT).unwrap();
        let releases = if name == "cuda-vmm" { units } else { 0 };
        assert_eq!(counter.take(), calls([("cuMemRelease", releases), ("cuMemUnmap", PLANES)]), "{name}: shrinking");
        set.grow_to(2 * GRANULES * UNIT).unwrap();
        let creates = if name == "cuda-vmm" { units } else { 0 };
        assert_eq!(counter.take(), grown(creates), "{name}: nothing is made where it is parked");
        drop(set);
        let gone = counter.take();
        assert_eq!((gone["cuMemUnmap"], gone["cuMemAddressFree"]), (PLANES, PLANES), "{name}: one unmap a plane");
        host.trim(&backing, u64::MAX).unwrap();
        assert_eq!(used(&host), 0, "{name}");
    }
    simulator.finish();
}

#[test]
fn what_the_same_holder_left_is_not_zeroed_and_what_another_left_is() {
    let simulator = simulator();
    let (host, backing) = host("cuda-pool", &[]);
    let spec = |holder| BufferSpec::new(16 * UNIT).holder(leasehold::HolderId::new(holder));
    let mut first = host.buffer_set(&backing, 1, &spec(1)).unwrap();
    first.grow_to(3 * UNIT).unwrap();
    first.fill(0, 0, 3 * UNIT, 7).unwrap();
    first.shrink_to(0).unwrap();
    let mut counter = Counter::new(&simulator);
    first.grow_to(UNIT).unwrap();
    assert_eq!(counter.take(), calls([("cuMemMap", 1), ("cuMemSetAccess", 1)]), "its own");
    let mut other = host.buffer_set(&backing, 1, &spec(2)).unwrap();
    counter.take();
    other.grow_to(2 * UNIT).unwrap();
    assert_eq!(counter.take(), calls([("cuMemMap", 2), ("cuMemSetAccess", 1), ("cuMemsetD8_v2", 1)]), "another's");
    let mut seen = vec![1; usize::try_from(2 * UNIT).unwrap()];
    other.read(0, 0, &mut seen).unwrap();
    assert!(leasehold_tests::is_all(&seen, 0), "another holder's bytes");
    drop((first, other, host, backing));
    simulator.finish();
}

#[test]
fn mapping_a_prefix_maps_each_unit_and_gives_access_once_a_plane() {
    let simulator = simulator();
    let (host, backing) = host("cuda-pool", &[]);
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(GRANULES * UNIT).planes(4)).unwrap();
    prefix.write(3, UNIT, b"shared").unwrap();
    let mut counter = Counter::new(&simulator);
    let prefix = prefix.seal().unwrap();
    assert_eq!(counter.take(), calls([("cuCtxSynchronize", 1), ("cuMemSetAccess", 1)]), "published behind a wait");
    let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(16 * UNIT)).unwrap();
    counter.take();
    let before = used(&host);
    set.map_prefix(&prefix).unwrap();
    assert_eq!(counter.take(), calls([("cuMemMap", PLANES * GRANULES), ("cuMemSetAccess", PLANES)]));
    assert_eq!(used(&host), before, "nothing is owned for it");
    let mut seen = [0; 6];
    set.read(3, UNIT, &mut seen).unwrap();
    assert_eq!(&seen, b"shared");
    set.clear().unwrap();
    assert_eq!(counter.take(), calls([("cuMemUnmap", PLANES)]));
    drop((set, prefix, host, backing));
    simulator.finish();
}
