//! A device whose memory runs out before its budget does: what is parked or cold gives way to a growth.

use super::setup::{self, DEVICE, LIMIT, UNIT, options, simulator, used};
use leasehold::{
    BackingHandle, Buffer, BufferSpec, ErrorKind, HolderId, Host, PrefixCache, PrefixCacheSpec, Reclaim, ReclaimOrder,
    Shortage, Shortfall,
};
use leasehold_plugin_api::{Backing, BackingError, HostServices};
use leasehold_tests::blocks::{self, chain};
use leasehold_tests::child::in_child;
use leasehold_tests::cuda::{Lasting, Simulator};
use leasehold_tests::descriptors::limit_descriptors;
use leasehold_tests::fault::linked_in;
use leasehold_tests::victim::Victim;
use std::sync::{Arc, Mutex};

/// Units that the device has; the budget has many more.
const UNITS: u64 = 16;

/// Both backings on one device of 16 units.
fn device() -> (Simulator, Host, [BackingHandle; 2]) {
    let simulator = simulator();
    simulator.limit_memory(0, UNITS * UNIT);
    let create = |name: &'static str| {
        let options = options(&[]);
        move |services: HostServices| -> Result<Box<dyn Backing>, BackingError> { linked_in(name, &options, services) }
    };
    let host = Host::builder()
        .limit(DEVICE, LIMIT)
        .with_backing("cuda-vmm", create("cuda-vmm"))
        .with_backing("cuda-pool", create("cuda-pool"))
        .load()
        .expect("needs nothing else");
    let backings = ["cuda-vmm", "cuda-pool"].map(|name| host.backing(name).unwrap());
    (simulator, host, backings)
}

fn buffer(host: &Host, backing: &BackingHandle) -> Buffer {
    host.buffer(backing, &BufferSpec::new(2 * UNITS * UNIT)).unwrap()
}

fn taken(simulator: &Simulator) -> u64 {
    simulator.books().used(0) / UNIT
}

#[test]
fn what_a_pool_has_parked_gives_way_to_another_backing_of_the_device() {
    let (simulator, host, [vmm, pool]) = device();
    buffer(&host, &pool).grow_to(UNITS * UNIT).unwrap();
    assert_eq!((taken(&simulator), used(&host)), (UNITS, UNITS * UNIT), "all of the device is parked");
    let mut grows = buffer(&host, &vmm);
    for units in [3, 5] {
        grows.grow_to(units * UNIT).expect("parked memory is nobody's");
        assert_eq!((taken(&simulator), used(&host)), (UNITS, UNITS * UNIT), "and no more goes than is wanted");
    }
    let full = grows.grow_to((UNITS + 1) * UNIT).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::OutOfMemory, "{full}");
    assert_eq!((grows.committed(), used(&host)), (5 * UNIT, 5 * UNIT), "nothing else was there to go");
    drop((grows, vmm, pool, host));
    simulator.finish();
}

/// A prefix of so many blocks of a unit, which nobody but the cache holds.
fn cold_prefix(host: &Host, pool: &BackingHandle, blocks: u8) -> PrefixCache {
    let cache = host.prefix_cache(pool, &PrefixCacheSpec::new(1, UNIT)).unwrap();
    let chain = chain(&(0..blocks).collect::<Vec<_>>());
    let prefix = blocks::write(host, pool, 1, UNIT, &chain).unwrap().seal().unwrap();
    cache.insert(&chain, 0, prefix).unwrap();
    cache
}

#[test]
fn a_cold_prefix_gives_way_and_one_that_is_mapped_does_not() {
    for name in ["cuda-vmm", "cuda-pool"] {
        let (simulator, host, [vmm, pool]) = device();
        let cache = cold_prefix(&host, &pool, 12);
        let backing = host.backing(name).unwrap();
        let mut mapped = host.buffer_set(&pool, 1, &BufferSpec::new(UNITS * UNIT)).unwrap();
        mapped.map_prefixes(&cache.find(&chain(&[0, 1])).parts).unwrap();
        let mut grows = buffer(&host, &backing);
        assert_eq!(grows.grow_to(8 * UNIT).unwrap_err().kind(), ErrorKind::OutOfMemory, "{name}: it is in use");
        assert_eq!((grows.committed(), cache.snapshot().prefixes, used(&host)), (0, 1, 12 * UNIT), "{name}");

        drop(mapped);
        grows.grow_to(8 * UNIT).expect("the prefix is cold");
        assert_eq!((cache.snapshot().prefixes, cache.snapshot().evicted.prefixes), (0, 1), "{name}");
        assert!(taken(&simulator) <= UNITS, "{name}");
        drop((grows, cache, backing, vmm, pool, host));
        simulator.finish();
    }
}

/// Gives up a buffer of somebody, once.
struct Preempts {
    victim: Mutex<Option<Buffer>>,
    told: Mutex<Vec<(u64, Shortage)>>,
}

impl Reclaim for Preempts {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.told.lock().unwrap().push((shortfall.bytes, shortfall.shortage));
        let victim = self.victim.lock().unwrap().take();
        victim.map_or(0, |victim| victim.committed())
    }
}

/// What was given up is parked in the pool, and charged still.
#[test]
fn who_is_preempted_makes_room_wherever_its_memory_goes() {
    for (from, to) in
        [("cuda-vmm", "cuda-vmm"), ("cuda-vmm", "cuda-pool"), ("cuda-pool", "cuda-vmm"), ("cuda-pool", "cuda-pool")]
    {
        let (simulator, host, [vmm, pool]) = device();
        let mut victim = buffer(&host, &host.backing(from).unwrap());
        victim.grow_to(12 * UNIT).unwrap();
        let preempts = Arc::new(Preempts { victim: Mutex::new(Some(victim)), told: Mutex::default() });
        let (theirs, mine) = (HolderId::new(8), HolderId::new(7));
        let registered = host
            .governor()
            .on_pressure(DEVICE, ReclaimOrder::new().holder(theirs), Arc::<Preempts>::clone(&preempts))
            .unwrap();
        let grow = |holder| {
            let spec = BufferSpec::new(2 * UNITS * UNIT).holder(holder);
            let mut grows = host.buffer(&host.backing(to).unwrap(), &spec).unwrap();
            let grown = grows.grow_to(10 * UNIT);
            grown.map(|()| grows)
        };
        assert_eq!(grow(theirs).unwrap_err().kind(), ErrorKind::OutOfMemory, "{from}, {to}: not for itself");
        assert!(preempts.told.lock().unwrap().is_empty(), "{from}, {to}");
        let grown = grow(mine).unwrap_or_else(|error| panic!("{from}, {to}: {error}"));
        assert_eq!(*preempts.told.lock().unwrap(), [(10 * UNIT, Shortage::Memory)], "{from}, {to}");
        assert_eq!(grown.committed(), 10 * UNIT, "{from}, {to}");
        drop((grown, registered, preempts, vmm, pool, host));
        simulator.finish();
    }
}

#[test]
fn a_pool_parks_no_more_than_its_bound_after_a_growth_that_failed_though_somebody_parked_meanwhile() {
    let simulator = simulator();
    let (host, pool) = setup::host("cuda-pool", &[("park", &(4 * UNIT).to_string())]);
    let of_units = |units| {
        let mut buffer = buffer(&host, &pool);
        buffer.grow_to(units * UNIT).unwrap();
        buffer
    };
    let (parked, mut grows, victim) = (of_units(4), of_units(0), of_units(4));
    drop(parked);
    host.governor().set_limit(DEVICE, used(&host)).unwrap();
    let preempts = Arc::new(Preempts { victim: Mutex::new(Some(victim)), told: Mutex::default() });
    let order = ReclaimOrder::new();
    let registered = host.governor().on_pressure(DEVICE, order, Arc::<Preempts>::clone(&preempts)).unwrap();
    simulator.plan("cuMemCreate", 1, Lasting::Once, 999);
    grows.grow_to(6 * UNIT).unwrap_err();
    assert_eq!(*preempts.told.lock().unwrap(), [(2 * UNIT, Shortage::Budget)], "four were parked");
    assert_eq!(used(&host), 4 * UNIT, "and those and two of the victim's are too many to park");
    assert_eq!(taken(&simulator), 4);
    drop((registered, grows, pool, host));
    simulator.finish();
}

/// Evicting would free memory, of which there is enough.
#[test]
fn no_holder_is_asked_where_descriptors_run_out() {
    if !in_child("short_of_memory::no_holder_is_asked_where_descriptors_run_out", &[]) {
        return;
    }
    let (simulator, host, [vmm, pool]) = device();
    simulator.set("descriptors", 1);
    for backing in [&vmm, &pool] {
        let (mut victim, mut grows) = (buffer(&host, backing), buffer(&host, backing));
        victim.grow_to(2 * UNIT).unwrap();
        let victim = Victim::register(&host, DEVICE, victim);
        limit_descriptors(2);
        let error = grows.grow_to(4 * UNIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backing, "{error}");
        assert!(error.to_string().contains("no file descriptor left") && !error.is_exhausted(), "{error}");
        assert_eq!((victim.len(), grows.committed()), (2 * UNIT, 0), "{error}");
        limit_descriptors(256);
        grows.grow_to(4 * UNIT).unwrap();
    }
    drop((vmm, pool, host));
    simulator.finish();
}
