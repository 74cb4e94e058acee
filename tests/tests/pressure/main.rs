//! A budget that runs short: who is asked to give, for how much, in what order, and what the books make of the answers.

mod answers;
mod asking;
mod nested;
mod parked;
mod registration;
mod threads;

use leasehold::{BackingHandle, Domain, Error, Governor, Host, Lease, MemoryRole, ReclaimOrder, Registration};
use leasehold_host_mmap::HostMmap;
use leasehold_plugin_api::{self as api, BackingFactory as _};
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Books, Faults, FaultyBacking, host_mmap};
use leasehold_tests::parking::parking_mmap;
use std::sync::{Arc, Mutex};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 << 10;
const ALL_BOOKS: [fn(api::HostServices) -> Books; 2] = [|_| Books::OfTheBuffers, Books::OfItsHost];

fn governor(limit_bytes: u64) -> Governor {
    Governor::with_limits([(Domain::Host, limit_bytes)]).unwrap()
}

fn used(governor: &Governor) -> u64 {
    governor.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn lease(governor: &Governor, bytes: u64) -> Result<Lease, Error> {
    governor.lease(Domain::Host, bytes, MemoryRole::KvCache)
}

fn faulty(limit_bytes: u64, books: fn(api::HostServices) -> Books) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host_with(limit_bytes, books).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

/// A host with a backing that keeps the books and parks what is decommitted, and one that does neither.
fn parking(limit_bytes: u64) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = Host::builder()
        .limit(Domain::Host, limit_bytes)
        .with_accessible_backing("parking", FaultyBacking::ACCESS, parking_mmap(&faults))
        .with_accessible_backing("host-mmap", HostMmap::HOST_ACCESS, host_mmap)
        .load()
        .unwrap();
    let backing = host.backing("parking").unwrap();
    (faults, host, backing)
}

/// Registers somebody who gives back at most `most` bytes of a lease at a time.
fn giver(
    asked: &Asked,
    governor: &Governor,
    name: &'static str,
    order: ReclaimOrder,
    held: Held,
    most: u64,
) -> Registration {
    asked.register(governor, name, order, move |shortfall| held.give(shortfall.bytes.min(most)))
}

/// Registers somebody who gives nothing.
fn miser(asked: &Asked, governor: &Governor, name: &'static str, order: ReclaimOrder) -> Registration {
    asked.register(governor, name, order, |_| 0)
}

/// A lease that a reclaimer gives back from.
#[derive(Clone)]
struct Held(Arc<Mutex<Lease>>);

impl Held {
    fn new(governor: &Governor, bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(lease(governor, bytes).unwrap())))
    }

    fn give(&self, bytes: u64) -> u64 {
        let mut lease = self.0.lock().unwrap();
        let before = lease.bytes();
        lease.shrink(bytes);
        before - lease.bytes()
    }

    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().bytes()
    }
}
