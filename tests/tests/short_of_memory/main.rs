//! Memory that runs short though the budget does not: who is asked to give, and when the call is made once more.

mod asking;
mod limits;
mod parked;
mod repeating;

use leasehold::{BackingHandle, Buffer, BufferSpec, Domain, Host, Lease, MemoryRole, ReclaimOrder, Registration};
use leasehold_plugin_api as api;
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Books, Fault, Faults};
use std::sync::Mutex;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 << 10;
const NO_MEMORY: Fault = Fault::Refuse(api::ErrorKind::OutOfMemory);
const ALL_BOOKS: [fn(api::HostServices) -> Books; 2] = [|_| Books::OfTheBuffers, Books::OfItsHost];

/// A host with a budget that has room for everything, and a backing that finds no memory where it is told to.
fn faulty(books: fn(api::HostServices) -> Books) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host_with(MIB, books).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

fn buffer(host: &Host, backing: &BackingHandle) -> Buffer {
    host.buffer(backing, &BufferSpec::new(2 * MIB)).unwrap()
}

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn lease(host: &Host, bytes: u64) -> Lease {
    host.governor().lease(Domain::Host, bytes, MemoryRole::Weights).unwrap()
}

/// Registers somebody who gives back at most `most` bytes of a lease at a time, and says that it gave nothing.
fn giver(asked: &Asked, host: &Host, name: &'static str, held: Lease, most: u64) -> Registration {
    let held = Mutex::new(held);
    asked.register(&host.governor(), name, ReclaimOrder::new(), move |shortfall| {
        held.lock().unwrap().shrink(shortfall.bytes.min(most));
        0
    })
}

/// Registers somebody who gives nothing.
fn miser(asked: &Asked, host: &Host, name: &'static str, order: ReclaimOrder) -> Registration {
    asked.register(&host.governor(), name, order, |_| 0)
}
