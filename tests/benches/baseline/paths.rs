//! The operations, by name. What each does before and after the counted turns does not count.

use crate::meter::{Meter, WARM_UP};
use crate::rigs::Rig;
use leasehold::{BlockHash, Domain, Door, Governor, Host, MemoryRole, PrefixCache, PrefixCacheSpec, PrefixSpec};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::plugins::{Registry, library};
use std::hint::black_box;

/// Runs one operation.
pub(crate) type Path = fn(&mut Meter);

const PATHS: [(&str, Path); 20] = [
    ("batching_pool", batching_in_turns),
    ("cache_evict", cache_evict),
    ("cache_find", cache_find),
    ("cuda_pool_step_and_shrink", |meter| cuda_step_and_shrink(meter, "cuda-pool")),
    ("cuda_vmm_step_and_shrink", |meter| cuda_step_and_shrink(meter, "cuda-vmm")),
    ("grow_committed", grow_committed),
    ("growth_cost_linked", |meter| growth_cost(meter, Door::Builtin)),
    ("growth_cost_loaded", |meter| growth_cost(meter, Door::AbiStable)),
    ("host_load", host_load),
    ("lease_charge_and_refund", lease_charge_and_refund),
    ("map_and_clear_prefix_pool", map_and_clear_prefix),
    ("reserve_and_release_mmap", |meter| reserve_and_release(meter, &Rig::mmap(Door::AbiStable))),
    ("reserve_and_release_pool", |meter| reserve_and_release(meter, &Rig::pool())),
    ("step_and_shrink_linked", |meter| step_and_shrink(meter, &Rig::mmap(Door::Builtin), 1)),
    ("step_and_shrink_loaded", |meter| step_and_shrink(meter, &Rig::mmap(Door::AbiStable), 1)),
    ("step_and_shrink_mmap_48", |meter| step_and_shrink(meter, &Rig::mmap(Door::AbiStable), PLANES)),
    ("step_and_shrink_pool", |meter| step_and_shrink(meter, &Rig::pool(), 1)),
    ("step_and_shrink_pool_48", |meter| step_and_shrink(meter, &Rig::pool(), PLANES)),
    ("step_mmap_48", |meter| step(meter, &Rig::mmap(Door::AbiStable))),
    ("step_pool_48", |meter| step(meter, &Rig::pool())),
];

/// Keys and values of 24 layers.
const PLANES: usize = 48;
/// Keys and values of 28 layers.
const DEVICE_PLANES: usize = 56;

/// The operation of that name.
pub(crate) fn find(name: &str) -> Option<Path> {
    PATHS.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
}

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|(name, _)| *name)
}

/// A buffer grows within what is committed.
fn grow_committed(meter: &mut Meter) {
    let rig = Rig::mmap(Door::AbiStable);
    let mut set = rig.set(1, 1024);
    set.grow_to(1024 * rig.granule).expect("there is memory");
    meter.count(100_000, |turn| black_box(&mut set).grow_to(black_box(turn)).expect("it is committed"));
}

/// What a growth would cost is asked for, without a system call.
fn growth_cost(meter: &mut Meter, door: Door) {
    let rig = Rig::mmap(door);
    let set = rig.set(1, 16);
    meter.count(1000, |_| drop(black_box(black_box(&set).growth_cost(black_box(rig.granule)))));
}

/// Each plane grows by one granule and shrinks by it.
fn step_and_shrink(meter: &mut Meter, rig: &Rig, planes: usize) {
    let mut set = rig.set(planes, 256);
    set.grow_to(rig.granule).expect("there is memory");
    meter.count(200, |_| {
        set.grow_to(2 * rig.granule).expect("there is memory");
        set.shrink_to(rig.granule).expect("it shrinks");
    });
    meter.count_mappings(&[&set]);
}

/// Each of 48 planes grows by one granule, and goes on growing.
fn step(meter: &mut Meter, rig: &Rig) {
    let mut set = rig.set(PLANES, 256);
    meter.count(64, |turn| set.grow_to((turn + 1) * rig.granule).expect("there is memory"));
    meter.count_mappings(&[&set]);
}

/// Continuous batching: eight sets grow by a granule in turns; from when each has its length the oldest is emptied and
/// another request begins in its place, on what the one before left. An operation is one step of all eight.
fn batching_in_turns(meter: &mut Meter) {
    const SETS: u64 = 8;
    const LENGTH: u64 = 16;
    let rig = Rig::pool();
    let mut sets: Vec<_> = (0..SETS).map(|_| rig.set(16, LENGTH)).collect();
    meter.count(240, |turn| {
        for (place, set) in (0..SETS).zip(&mut sets) {
            let granules = (turn + place * LENGTH / SETS) % LENGTH + 1;
            if granules == 1 {
                set.clear().expect("it empties");
            }
            set.grow_to(granules * rig.granule).expect("there is memory");
        }
    });
    meter.count_mappings(&sets.iter().collect::<Vec<_>>());
}

/// A lease that is held grows and shrinks.
fn lease_charge_and_refund(meter: &mut Meter) {
    let governor = Governor::with_limits([(Domain::Host, 1 << 30)]).expect("there is randomness");
    let mut lease = governor.lease(Domain::Host, 4096, MemoryRole::KvCache).expect("it fits");
    meter.count(100_000, |_| {
        lease.grow(black_box(4096)).expect("it fits");
        lease.shrink(black_box(4096));
    });
}

/// A set of 48 planes is made and dropped, empty.
fn reserve_and_release(meter: &mut Meter, rig: &Rig) {
    meter.count(50, |_| drop(black_box(rig.set(PLANES, 256))));
}

/// A prefix of four granules is mapped into 48 planes, which are then emptied.
fn map_and_clear_prefix(meter: &mut Meter) {
    let rig = Rig::pool();
    let prefix = rig.host.prefix(&rig.backing, &PrefixSpec::new(4 * rig.granule).planes(PLANES)).expect("it fits");
    let prefix = prefix.seal().expect("it is not sealed yet");
    let mut set = rig.set(PLANES, 256);
    meter.count(50, |_| {
        set.map_prefix(&prefix).expect("it fits");
        set.clear().expect("it empties");
    });
    set.map_prefix(&prefix).expect("it fits");
    set.grow_to(8 * rig.granule).expect("there is memory");
    meter.count_mappings(&[&set]);
}

/// A chain of 32 blocks of which 16 are known.
fn cache_find(meter: &mut Meter) {
    let rig = Rig::pool();
    let cache = rig.host.prefix_cache(&rig.backing, &PrefixCacheSpec::new(1, rig.granule)).expect("it shares");
    let chain = chain(0, 32);
    insert(&rig, &cache, &chain[..16]);
    meter.count(1000, |_| {
        let found = black_box(cache.find(black_box(&chain)));
        assert_eq!(found.blocks, 16);
    });
}

/// The least recently used of the prefixes is given back.
fn cache_evict(meter: &mut Meter) {
    const EVICTED: u32 = 64;
    let rig = Rig::pool();
    let cache = rig.host.prefix_cache(&rig.backing, &PrefixCacheSpec::new(1, rig.granule)).expect("it shares");
    for number in 0..WARM_UP + u64::from(EVICTED) {
        insert(&rig, &cache, &chain(number, 4));
    }
    meter.count(EVICTED, |_| assert_eq!(cache.evict(1).prefixes, 1));
}

fn chain(number: u64, blocks: u64) -> Vec<BlockHash> {
    BlockHash::root(b"baseline").chain((0..blocks).map(|block| (number * 1000 + block).to_le_bytes()))
}

fn insert(rig: &Rig, cache: &PrefixCache, chain: &[BlockHash]) {
    let blocks = u64::try_from(chain.len()).expect("fits");
    let prefix = rig.host.prefix(&rig.backing, &PrefixSpec::new(blocks * rig.granule)).expect("it fits");
    cache.insert(chain, 0, prefix.seal().expect("it is not sealed yet")).expect("it fits the cache");
}

/// A registry file with four entries is loaded, whose libraries this process has loaded before.
fn host_load(meter: &mut Meter) {
    let mut registry = Registry::new();
    for name in ["one", "two", "three", "four"] {
        let library = registry.copy(&library("leasehold_host_mmap"), &format!("lib{name}.so"));
        registry = registry.backing(name, &library, "required = true\nbacking = \"host-mmap\"\n");
    }
    let file = registry.write();
    meter.count(16, |_| drop(black_box(Host::load(&file).expect("all four are ready"))));
}

/// 56 planes on a device grow by one granule and shrink by it.
fn cuda_step_and_shrink(meter: &mut Meter, backing: &str) {
    let simulator = Simulator::start();
    simulator.set("granularity", 64 << 10);
    simulator.set("recommended", 64 << 10);
    let rig = Rig::cuda(backing);
    let mut set = rig.set(DEVICE_PLANES, 16);
    set.grow_to(rig.granule).expect("there is memory");
    meter.count_driver_calls(&simulator, 8, |_| {
        set.grow_to(2 * rig.granule).expect("there is memory");
        set.shrink_to(rig.granule).expect("it shrinks");
    });
}
