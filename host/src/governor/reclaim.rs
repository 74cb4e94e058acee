//! What whoever can give memory back sees of the governor: what is missing, and when it is asked.

use leasehold_plugin_api::{Domain, HolderId, MemoryRole};
use std::fmt;

/// Somebody who can give memory back when a budget, or the memory itself, runs short: an engine that can preempt a
/// request, a cache that can forget.
///
/// It is called on the thread of the request, in the middle of a lease or a growth, and may lease, grow, shrink and drop
/// what it likes, register and deregister: while it answers, others are asked and itself never. It may be called from
/// many threads at once. Take no lock in it that may be held while memory is asked for, its own requests included: use
/// `try_lock`, and give nothing where that fails. If it panics, it gave nothing.
pub trait Reclaim: Send + Sync {
    /// Gives back at least `shortfall.bytes` bytes of the domain, or as much as there is. Answers what it believes to have
    /// given back, for the log alone: what counts is what the ledger says then. Where other threads took some of it
    /// meanwhile, it may be asked again for the same request.
    fn reclaim(&self, shortfall: &Shortfall) -> u64;
}

/// What is missing for a request to be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortfall {
    /// Whose memory.
    pub domain: Domain,
    /// What must come back at this moment. Where the budget is short: used and requested bytes less the limit. Where the
    /// memory is: what was asked of the system, less what came back since.
    pub bytes: u64,
    /// What the memory is for.
    pub role: MemoryRole,
    /// What there is too little of.
    pub shortage: Shortage,
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortage {
    /// The budget: with the request, the limit would be passed.
    Budget,
    /// The memory: the budget has room, and the device or the machine has none left for the request. How much is left
    /// nobody tells, so that less than [`bytes`](Shortfall::bytes) may do.
    Memory,
}

impl fmt::Display for Shortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Budget => "budget",
            Self::Memory => "memory",
        })
    }
}

/// When a reclaimer is asked, and when it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimOrder {
    pub(super) priority: i32,
    pub(super) holder: Option<HolderId>,
}

impl ReclaimOrder {
    /// Priority 0, and nobody's memory in particular.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with another priority: the higher is asked first, of equal ones the one that was registered earlier.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The same, for one that gives up this holder's memory: it is not asked to make room for the holder itself.
    #[must_use]
    pub fn holder(mut self, holder: HolderId) -> Self {
        self.holder = Some(holder);
        self
    }
}
