//! A pool behind the host: who pays for what is parked, over both ways in.

use leasehold::{
    BlockHash, Buffer, BufferSpec, Change, Domain, ErrorKind, Governor, Host, MemoryRole, PrefixCacheSpec, PrefixSpec,
    Reclaim, ReclaimOrder, Shortfall, StepScope,
};
use leasehold_tests::plugins::{self, Registry};
use leasehold_tests::victim::Victim;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const LIMIT: u64 = 64 * MIB;

fn hosts(options: &str) -> Vec<Host> {
    let library = plugins::text(&plugins::library("leasehold_host_pool"));
    let lines = format!("required = true\n[backing.options]\n{options}");
    let host = |library: &str| {
        let registry = Registry::new().backing("host-pool", library, &lines);
        registry.builder().limit(Domain::Host, LIMIT).load().unwrap_or_else(|error| panic!("{error}"))
    };
    vec![host("builtin"), host(&library)]
}

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().used_bytes
}

#[test]
fn what_is_parked_stays_charged_and_serves_again_without_a_charge() {
    for host in hosts("park = \"16 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        assert_eq!(host.trim(&backing, u64::MAX).unwrap() + backing.charged_bytes(), 0);
        assert_eq!(backing.capabilities().granularity(), Some(64 * KIB));
        assert!(backing.capabilities().has_shared_mapping());
        for _ in 0..3 {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(32 * MIB)).unwrap();
            assert!(used(&host) <= 16 * MIB);
            buffer.grow_to(24 * MIB).unwrap();
            buffer.as_mut_slice().unwrap().fill(7);
            assert_eq!(used(&host), 24 * MIB);
            buffer.shrink_to(4 * MIB).unwrap();
            assert_eq!(used(&host), 20 * MIB);
            let others = host.governor().lease(Domain::Host, MIB, MemoryRole::Weights).unwrap();
            assert_eq!(backing.charged_bytes() - buffer.owned_bytes(), 16 * MIB, "so much is parked");
            drop((buffer, others));
            assert_eq!((used(&host), backing.charged_bytes()), (16 * MIB, 16 * MIB));
        }
    }
}

#[test]
fn a_budget_that_is_parked_serves_the_pools_own_growth() {
    for host in hosts("park = \"64 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        for _ in 0..3 {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(2 * LIMIT)).unwrap();
            buffer.grow_to(LIMIT).unwrap();
            buffer.grow_to(LIMIT + 1).unwrap_err();
            assert_eq!((buffer.len(), used(&host)), (LIMIT, LIMIT));
        }
        assert_eq!(used(&host), LIMIT);
    }
}

#[test]
fn one_buffers_bytes_never_show_in_another() {
    for host in hosts("") {
        let backing = host.backing("host-pool").unwrap();
        for value in 1..5 {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(8 * MIB)).unwrap();
            buffer.grow_to(8 * MIB).unwrap();
            let bytes = buffer.as_mut_slice().unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(value);
        }
        assert_eq!(used(&host), 8 * MIB);
    }
}

#[test]
fn what_a_victim_leaves_parked_in_the_pool_that_charges_makes_room_before_the_next_has_to_give() {
    for host in hosts("park = \"64 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        let buffer = || host.buffer(&backing, &BufferSpec::new(LIMIT)).unwrap();
        let mut grows = buffer();
        grows.grow_to(10 * MIB).unwrap();
        let victims = [(); 4].map(|()| {
            let mut victim = buffer();
            victim.grow_to(12 * MIB).unwrap();
            victim.as_mut_slice().unwrap().fill(7);
            Victim::register(&host, Domain::Host, victim)
        });
        let lengths = || victims.each_ref().map(|victim| victim.len() / MIB);

        grows.grow_to(20 * MIB).expect("10 MiB are parked and 6 MiB were left");
        assert_eq!((victims[0].asked(), lengths(), used(&host)), (vec![4 * MIB], [8, 12, 12, 12], LIMIT));
        assert!(grows.as_slice().unwrap()[10 * MIB as usize..].iter().all(|byte| *byte == 0), "whoever left it");
        grows.grow_to(31 * MIB).expect("the second has what the first lacks");
        assert_eq!((lengths(), used(&host)), ([0, 9, 12, 12], LIMIT));

        grows.grow_to(LIMIT).expect("all of them together have that much");
        assert_eq!((grows.len(), lengths()), (LIMIT, [0; 4]));
        assert_eq!(buffer().grow_to(MIB).unwrap_err().kind(), ErrorKind::TierExhausted);
        assert_eq!(used(&host), LIMIT);
    }
}

#[test]
fn a_buffer_tells_what_it_owns_and_maps_and_what_more_would_cost() {
    for host in hosts("park = 0") {
        let backing = host.backing("host-pool").unwrap();
        let prefix = host.prefix(&backing, &PrefixSpec::new(MIB)).unwrap().seal().unwrap();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(8 * MIB)).unwrap();
        let parts = [prefix.part(0, MIB / 2).unwrap()];
        assert_eq!(buffer.mapping_cost(&parts).unwrap(), Change { mapped_bytes: MIB / 2, owned_bytes: 0 });
        buffer.map_prefixes(&parts).unwrap();
        assert_eq!(buffer.growth_cost(MIB).unwrap(), Change { mapped_bytes: MIB / 2, owned_bytes: MIB / 2 });
        buffer.grow_to(MIB).unwrap();
        assert_eq!((buffer.owned_bytes(), buffer.mapped_bytes()), (MIB / 2, MIB));
        assert_eq!((buffer.backing_name(), used(&host)), ("host-pool", 3 * MIB / 2));
    }
}

/// Moves a buffer to where it needs other memory first.
struct Moves {
    buffer: Mutex<Buffer>,
    governor: Governor,
    scratch_bytes: Mutex<Vec<u64>>,
}

impl Reclaim for Moves {
    fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
        self.buffer.lock().unwrap().shrink_to(0).unwrap();
        let scratch = self.governor.lease(Domain::Host, MIB, MemoryRole::Workspace(StepScope::OneStep));
        self.scratch_bytes.lock().unwrap().push(scratch.map_or(0, |scratch| scratch.bytes()));
        0
    }
}

#[test]
fn whoever_parks_in_its_answer_and_then_needs_the_room_itself_has_it() {
    for host in hosts("park = \"64 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        let buffer = || host.buffer(&backing, &BufferSpec::new(LIMIT)).unwrap();
        let (mut moved, mut grows) = (buffer(), buffer());
        moved.grow_to(LIMIT).unwrap();
        let (governor, scratch_bytes) = (host.governor(), Mutex::default());
        let moves = Arc::new(Moves { buffer: Mutex::new(moved), governor, scratch_bytes });
        let reclaimer: Arc<dyn Reclaim> = Arc::<Moves>::clone(&moves);
        let _registration = host.governor().on_pressure(Domain::Host, ReclaimOrder::new(), reclaimer).unwrap();
        grows.grow_to(4 * MIB).expect("there is room");
        assert_eq!(*moves.scratch_bytes.lock().unwrap(), [MIB]);
    }
}

/// What a cold prefix leaves parked may serve another thread before it is given up.
#[test]
fn a_budget_that_runs_short_beside_growth_gets_every_cold_prefix() {
    const BLOCK: u64 = 64 * KIB;
    const BLOCKS: usize = 32;
    for host in hosts("park = \"64 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        let cache = host.prefix_cache(&backing, &PrefixCacheSpec::new(1, BLOCK)).unwrap();
        host.governor().set_limit(Domain::Host, 48 * BLOCK).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let grower = scope.spawn(|| {
                let mut buffer = host.buffer(&backing, &BufferSpec::new(LIMIT)).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    (1..=8).for_each(|blocks| drop(buffer.grow_to(blocks * BLOCK)));
                    buffer.shrink_to(0).unwrap();
                }
            });
            let mut made = 0_u64;
            let refused_early = (0..500).filter(|_| {
                while cache.snapshot().blocks < BLOCKS {
                    made += 1;
                    let chain = BlockHash::root(&made.to_le_bytes()).chain([[0]]);
                    let Ok(prefix) = host.prefix(&backing, &PrefixSpec::new(BLOCK)) else { break };
                    cache.insert(&chain, 0, prefix.seal().unwrap()).unwrap();
                }
                let lease = || host.governor().lease(Domain::Host, BLOCK, MemoryRole::KvCache);
                let leases: Result<Vec<_>, _> = (0..BLOCKS / 2).map(|_| lease()).collect();
                leases.is_err() && cache.snapshot().blocks > 4
            });
            assert_eq!(refused_early.count(), 0, "refused while prefixes are cold");
            is_done.store(true, Ordering::Relaxed);
            grower.join().unwrap();
        });
    }
}
