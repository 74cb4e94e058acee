//! A pool behind the host: who pays for what is parked, over both ways in.

use leasehold::{Buffer, BufferSpec, Domain, ErrorKind, Host, Reclaim, ReclaimOrder, Shortfall};
use leasehold_tests::plugins::{self, Registry};
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
            drop(buffer);
            assert_eq!(used(&host), 16 * MIB);
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

/// Shrinks a buffer by what is missing, each time that it is asked.
struct Shrinks {
    victim: Mutex<Buffer>,
    asked: Mutex<Vec<u64>>,
}

impl Reclaim for Shrinks {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.asked.lock().unwrap().push(shortfall.bytes);
        let mut victim = self.victim.lock().unwrap();
        let len = victim.len().saturating_sub(shortfall.bytes);
        victim.shrink_to(len).unwrap();
        0
    }
}

#[test]
fn what_a_reclaimer_leaves_parked_in_the_pool_that_charges_serves_the_growth_at_once() {
    for host in hosts("park = \"64 MiB\"") {
        let backing = host.backing("host-pool").unwrap();
        let buffer = || host.buffer(&backing, &BufferSpec::new(LIMIT)).unwrap();
        let (mut victim, mut grows) = (buffer(), buffer());
        victim.grow_to(48 * MIB).unwrap();
        victim.as_mut_slice().unwrap().fill(7);
        grows.grow_to(10 * MIB).unwrap();
        let shrinks = Arc::new(Shrinks { victim: Mutex::new(victim), asked: Mutex::default() });
        let _registered =
            host.governor().on_pressure(Domain::Host, ReclaimOrder::new(), Arc::<Shrinks>::clone(&shrinks)).unwrap();

        grows.grow_to(30 * MIB).expect("14 MiB are parked and 6 MiB were left");
        assert_eq!(*shrinks.asked.lock().unwrap(), [14 * MIB], "and nobody is asked for what is parked by then");
        assert_eq!((shrinks.victim.lock().unwrap().len(), used(&host)), (34 * MIB, LIMIT));
        assert!(grows.as_slice().unwrap()[10 * MIB as usize..].iter().all(|byte| *byte == 0), "whoever left it");

        grows.grow_to(LIMIT).expect("the other has that much");
        assert_eq!((grows.len(), shrinks.victim.lock().unwrap().len()), (LIMIT, 0));
        let mut third = buffer();
        assert_eq!(third.grow_to(MIB).unwrap_err().kind(), ErrorKind::TierExhausted);
        assert_eq!(used(&host), LIMIT);
    }
}
