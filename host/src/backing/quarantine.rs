//! What goes back to a backing; and what could not yet: it stays charged, is named, and is tried again.

use super::prefix_memory::PrefixMemory;
use crate::governor::Lease;
use leasehold_plugin_api::{Address, PrefixId, ReleaseTarget};
use std::sync::Arc;

/// What a release gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Memory(ReleaseTarget),
    Prefix(PrefixId),
}

/// Memory that is to go back to its backing. Its lease, where the buffer held one, stays charged until it has.
#[derive(Debug)]
pub(crate) struct Unreturned {
    pub(super) target: Target,
    /// From where to where it is in the address map, where it is in there.
    pub(super) addresses: Option<(Address, Address)>,
    pub(super) lease: Option<Lease>,
    /// Physical bytes behind it that are still owned.
    pub(super) remaining_bytes: u64,
    /// What is mapped in it: these live as long.
    pub(super) prefixes: Vec<Arc<PrefixMemory>>,
    /// Whether it was made at all.
    pub(super) existence: Existence,
}

/// Whether what is to go back was made at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    Certain,
    /// The call that would have made it broke off, or its answer was not believed: an id that the backing doesn't know
    /// was never made.
    InDoubt,
}

impl Unreturned {
    /// A region or an allocation, the bytes that it owns, and the lease on them.
    pub(crate) fn memory(
        target: ReleaseTarget,
        (base, bytes): (Address, u64),
        owned_bytes: u64,
        lease: Option<Lease>,
    ) -> Self {
        let addresses = base.checked_add(bytes).map(|end| (base, end));
        Self { addresses, existence: Existence::Certain, ..Self::unseen(Target::Memory(target), owned_bytes, lease) }
    }

    /// The same, with the prefixes that are mapped in it.
    pub(crate) fn with_prefixes(mut self, prefixes: Vec<Arc<PrefixMemory>>) -> Self {
        self.prefixes = prefixes;
        self
    }

    /// A prefix that nobody holds any more.
    pub(super) fn prefix(memory: PrefixMemory) -> Self {
        let PrefixMemory { id, window, bytes, lease, .. } = memory;
        let addresses = window.checked_add(bytes).map(|end| (window, end));
        Self { addresses, existence: Existence::Certain, ..Self::unseen(Target::Prefix(id), bytes, lease) }
    }

    /// What nobody has seen: refused after it was made, or made before a call broke off.
    pub(super) fn unseen(target: Target, owned_bytes: u64, lease: Option<Lease>) -> Self {
        let (addresses, prefixes) = (None, Vec::new());
        Self { target, addresses, lease, remaining_bytes: owned_bytes, prefixes, existence: Existence::InDoubt }
    }
}

/// What a round of trying again achieved; see [`Host::reap`](crate::Host::reap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// Regions, allocations and prefixes that were given back.
    pub released: usize,
    /// Regions, allocations and prefixes that still could not be.
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
