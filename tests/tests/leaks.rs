//! Hosts that come and go leave nothing on the heap. CI runs this under AddressSanitizer and LeakSanitizer too.

use leasehold::{BlockHash, BufferSpec, Domain, Door, Host, PrefixCacheSpec, PrefixSpec};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::plugins::{Registry, library_by, text};
use std::fs;

/// Hosts that are made and dropped before memory is measured: tables have their size by then.
const BEFORE: u32 = 100;
/// Hosts that are made and dropped between two measurements: fewer on a device, whose simulation takes its time.
const HOSTS: u32 = 1000;
const DEVICE_HOSTS: u32 = 300;
/// What the heap may grow by over all of these: a few pages, as an allocator's free lists vary; 1 KiB a host is five times
/// as much at least.
const GROWTH_BYTES: u64 = 64 << 10;

const GRANULE: u64 = 64 << 10;

/// Bytes that the process may write, which its heap is in: the sixth figure of proc_pid_statm(5).
fn writable_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(5).unwrap().parse().unwrap();
    pages * u64::try_from(rustix::param::page_size()).unwrap()
}

fn registry(door: Door, backing: &str, options: &str) -> Registry {
    let crate_name = format!("leasehold_{}", backing.replace('-', "_"));
    let lines = format!("required = true\nbacking = {backing:?}\n[backing.options]\n{options}");
    Registry::new().backing("measured", &library_by(door, &crate_name), &lines)
}

/// Makes a host, uses all that its backing offers, and drops it.
fn come_and_go(file: &std::path::Path, domain: Domain) {
    let host = Host::builder().registry(file).limit(domain, 64 << 20).load().unwrap();
    let backing = host.backing("measured").unwrap();
    let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(16 * GRANULE)).unwrap();
    set.grow_to(2 * GRANULE).unwrap();
    set.write(1, 0, b"some bytes").unwrap();
    drop(host.allocate(&backing, &leasehold::AllocationSpec::new(GRANULE)).unwrap());
    if backing.capabilities().has_shared_mapping() {
        let cache = host.prefix_cache(&backing, &PrefixCacheSpec::new(2, GRANULE)).unwrap();
        let chain = BlockHash::root(b"leaks").chain([b"block"]);
        let prefix = host.prefix(&backing, &PrefixSpec::new(GRANULE).planes(2)).unwrap();
        cache.insert(&chain, 0, prefix.seal().unwrap()).unwrap();
        let mut mapped = host.buffer_set(&backing, 2, &BufferSpec::new(16 * GRANULE)).unwrap();
        mapped.map_prefixes(&cache.find(&chain).parts).unwrap();
        mapped.grow_to(2 * GRANULE).unwrap();
    }
    set.shrink_to(0).unwrap();
}

fn check(name: &str, registry: &Registry, domain: Domain) {
    let file = registry.write();
    // A sanitizer sees each leak by itself, and keeps what is freed for a while.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return (0..5).for_each(|_| come_and_go(&file, domain));
    }
    (0..BEFORE).for_each(|_| come_and_go(&file, domain));
    let hosts = if domain == Domain::Host { HOSTS } else { DEVICE_HOSTS };
    let before = writable_bytes();
    (0..hosts).for_each(|_| come_and_go(&file, domain));
    let grown = writable_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_BYTES, "{name}: {grown} bytes more after {hosts} hosts");
}

/// One test, so that no other one allocates meanwhile.
#[test]
fn hosts_that_come_and_go_leave_nothing_on_the_heap() {
    for (door, how) in [(Door::Builtin, "linked in"), (Door::AbiStable, "loaded")] {
        for backing in ["host-mmap", "host-pool"] {
            check(&format!("{backing} {how}"), &registry(door, backing, ""), Domain::Host);
        }
        for backing in ["cuda-vmm", "cuda-pool"] {
            let simulator = Simulator::start();
            simulator.set("granularity", GRANULE);
            simulator.set("recommended", GRANULE);
            let options = format!("driver = {:?}", text(&Simulator::path()));
            check(&format!("{backing} {how}"), &registry(door, backing, &options), Domain::Device(0));
            simulator.finish();
        }
    }
}
