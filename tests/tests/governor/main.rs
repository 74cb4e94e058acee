//! The governor under contention, under a lowered limit, and in words: what it refuses, it refuses with figures.

mod limits;
mod threads;
mod words;

use leasehold::{BackingHandle, Domain, Governor, Host};
use leasehold_tests::fault::Faults;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 * KIB;

fn governor(limit_bytes: u64) -> Governor {
    Governor::with_limits([(Domain::Host, limit_bytes)]).unwrap()
}

fn used(governor: &Governor) -> u64 {
    governor.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn faulty(limit_bytes: u64) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host(limit_bytes).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}
