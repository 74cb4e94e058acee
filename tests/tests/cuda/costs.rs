//! What growing and shrinking cost, in calls of the driver: the simulator counts them, so the figures are exact.

use super::setup::{NAMES, UNIT, host, simulator, used};
use leasehold::{BufferSpec, PrefixSpec};
use leasehold_tests::cuda::Simulator;
use std::collections::BTreeMap;

const PLANES: u64 = 4;
const GRANULES: u64 = 3;

/// The calls of the driver since the last time.
struct Counter<'s> {
    simulator: &'s Simulator,
    before: BTreeMap<String, u64>,
}

/// How often each function was called, functions that were never called left out: first those that change memory or wait
/// for the device, then the others, such as those on contexts.
#[derive(Debug, PartialEq, Eq)]
struct Calls {
    memory: BTreeMap<String, u64>,
    others: BTreeMap<String, u64>,
}

impl Calls {
    fn are_none(&self) -> bool {
        self.memory.is_empty() && self.others.is_empty()
    }
}

impl<'s> Counter<'s> {
    fn new(simulator: &'s Simulator) -> Self {
        Self { simulator, before: simulator.books().calls }
    }

    /// Those that change memory or wait.
    fn take(&mut self) -> BTreeMap<String, u64> {
        self.take_all().memory
    }

    fn take_all(&mut self) -> Calls {
        let now = self.simulator.books().calls;
        let since = |(name, count): (&String, &u64)| {
            let made = count - self.before.get(name).copied().unwrap_or(0);
            (made > 0).then(|| (name.clone(), made))
        };
        let made: BTreeMap<_, _> = now.iter().filter_map(since).collect();
        self.before = now;
        let is_memory = |name: &String| name.starts_with("cuMem") || name.ends_with("Synchronize");
        let (memory, others) = made.into_iter().partition(|(name, _)| is_memory(name));
        Calls { memory, others }
    }
}

fn calls<const N: usize>(pairs: [(&str, u64); N]) -> BTreeMap<String, u64> {
    pairs.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
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
                ("cuMemsetD8Async", PLANES),
                ("cuStreamSynchronize", 1),
            ])
        };
        set.grow_to(GRANULES * UNIT).unwrap();
        assert_eq!(counter.take(), grown(units), "{name}: the first growth");
        set.grow_to(2 * GRANULES * UNIT).unwrap();
        assert_eq!(counter.take(), grown(units), "{name}: the second growth");
        set.shrink_to(2 * GRANULES * UNIT - 1).unwrap();
        set.grow_to(2 * GRANULES * UNIT).unwrap();
        let within = counter.take_all();
        assert!(within.are_none(), "{name}, within what is committed: {within:?}");
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

/// The calls of one growth of four planes by that many granules each.
fn growth_by(simulator: &Simulator, name: &'static str, granules: u64) -> Calls {
    let (host, backing) = host(name, &[]);
    let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(64 * UNIT)).unwrap();
    let mut counter = Counter::new(simulator);
    set.grow_to(granules * UNIT).unwrap();
    counter.take_all()
}

#[test]
fn nothing_but_making_and_mapping_grows_with_the_granules() {
    let simulator = simulator();
    for name in NAMES {
        let (few, many) = (growth_by(&simulator, name, 20), growth_by(&simulator, name, 60));
        assert_eq!(few.others, many.others, "{name}");
        for (function, count) in &many.memory {
            let scales = ["cuMemCreate", "cuMemMap"].contains(&function.as_str());
            let times = if scales { 3 } else { 1 };
            assert_eq!(*count, times * few.memory[function], "{name}: {function}");
        }
        assert_eq!(few.memory.len(), many.memory.len(), "{name}");
    }
    simulator.finish();
}

/// The query takes 8 ms beside work on some devices, and leaves reclaimable memory out on those that share it with the host.
#[test]
fn no_growth_asks_how_much_memory_is_free() {
    let simulator = simulator();
    simulator.set("reported_free", 0);
    for name in NAMES {
        let grown = growth_by(&simulator, name, 60);
        assert_eq!(grown.memory.get("cuMemGetInfo_v2"), None, "{name}");
        assert_eq!(grown.memory["cuMemCreate"], PLANES * 60, "{name}: and what it reports refuses nothing");
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
    assert_eq!(
        counter.take(),
        calls([("cuMemMap", 2), ("cuMemSetAccess", 1), ("cuMemsetD8Async", 1), ("cuStreamSynchronize", 1)]),
        "another's"
    );
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
    let published = calls([("cuCtxSynchronize", 1), ("cuMemGetAccess", 1), ("cuMemSetAccess", 1)]);
    assert_eq!(counter.take(), published, "behind a wait, and looked at");
    let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(16 * UNIT)).unwrap();
    counter.take();
    let before = used(&host);
    set.map_prefix(&prefix).unwrap();
    assert_eq!(counter.take(), calls([("cuMemMap", PLANES * GRANULES), ("cuMemSetAccess", PLANES)]));
    assert_eq!(used(&host), before, "nothing is owned for it");
    let mut seen = [0; 6];
    set.read(3, UNIT, &mut seen).unwrap();
    assert_eq!(&seen, b"shared");
    counter.take();
    set.clear().unwrap();
    assert_eq!(counter.take(), calls([("cuMemUnmap", PLANES)]));
    drop((set, prefix, host, backing));
    simulator.finish();
}
