//! A pool behind the host: who pays for what is parked, over both ways in.

use leasehold::{BufferSpec, Domain, Host};
use leasehold_tests::plugins::{self, Registry};

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
