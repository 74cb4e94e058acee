//! What an act on memory changed.

use super::{AllocationId, RegionId};
use crate::BackingError;

/// What a commit or decommit changed, exactly.
///
/// The two axes are kept apart: **mapped** bytes are visible at addresses, **owned** bytes are physical memory that
/// someone pays for, mapped or parked in a pool. A commit reports bytes newly mapped and newly owned; a decommit
/// reports bytes no longer mapped and no longer owned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Bytes that became visible (commit) or stopped being visible (decommit).
    pub mapped_bytes: u64,
    /// Physical bytes that someone began (commit) or ceased (decommit) to pay for.
    pub owned_bytes: u64,
}

/// What [`Backing::release`](crate::Backing::release) gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseTarget {
    /// A region, with everything committed in it.
    Region(RegionId),
    /// A plain allocation.
    Allocation(AllocationId),
}

/// How a release ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// All of it is given back; the id is dead.
    Complete,
    /// Nothing changed; the same release may be tried again.
    Failed(BackingError),
    /// Some of it happened. The id serves only for further releases; what remains stays charged.
    Quarantined {
        /// Physical bytes that are still owned; 0 where addresses alone are still held.
        remaining_bytes: u64,
        /// Why the rest could not be given back.
        error: BackingError,
    },
}
