//! What buffers, sets and allocations do where systems of this kind have gone wrong: shrinking, odd sizes, figures that
//! overflow, misuse of a region, planes that are left uneven.

mod access;
mod allocations;
mod closing;
mod direct_calls;
mod failed_shrinks;
mod growing;
mod policies;
mod specs;
mod threads;

use leasehold::{Accounting, BackingHandle, Domain, Host};
use leasehold_tests::fault::{Faults, Under};
use leasehold_tests::rig::KIB;

const PAGE: u64 = 4 * KIB;

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().used_bytes
}

/// Whether the buffer pays, by a lease. A refused lease carries figures; and while nobody can tell what is committed, a
/// lease stays charged for the most that it can be. A backing that charges by itself always knows.
fn leases(backing: &BackingHandle) -> bool {
    backing.accounting() == Accounting::Buffer
}

/// A host over each backing that owns exactly what is committed. It stands behind faults; none is planned yet.
fn faulty(limit_bytes: u64) -> impl Iterator<Item = (Faults, Host, BackingHandle)> {
    Under::EXACT.into_iter().map(move |under| {
        println!("over {under:?}");
        let faults = Faults::new();
        let host = under.host(&faults, limit_bytes);
        let backing = host.backing("faulty").unwrap();
        (faults, host, backing)
    })
}
