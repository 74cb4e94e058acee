//! What a backing could not give back: it stays charged, is named, and is tried again.

use crate::governor::Lease;
use leasehold_plugin_api::{Address, ReleaseTarget};

/// Memory that a backing could not give back. Its lease, where the buffer held one, stays charged until it could.
#[derive(Debug)]
pub(super) struct Quarantined {
    pub(super) target: ReleaseTarget,
    /// From where to where it is in the address map, where it is in there.
    pub(super) addresses: Option<(Address, Address)>,
    pub(super) lease: Option<Lease>,
    pub(super) remaining_bytes: u64,
}

/// What a round of trying again achieved; see [`Host::reap`](crate::Host::reap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// Regions and allocations that were given back.
    pub released: usize,
    /// Regions and allocations that still could not be.
    pub remaining: usize,
    /// Physical bytes behind those.
    pub remaining_bytes: u64,
}

impl ReapReport {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            released: self.released.saturating_add(other.released),
            remaining: self.remaining.saturating_add(other.remaining),
            remaining_bytes: self.remaining_bytes.saturating_add(other.remaining_bytes),
        }
    }
}
