//! What is to be given back, and how that ended.
//!
//! An outcome is the answer of a call that succeeded: the reason of one that is not complete is a part of it, and the
//! call's own error record is left alone, as by every success.

use super::{ErrorRecord, OUTCOME_COMPLETE, OUTCOME_FAILED, OUTCOME_QUARANTINED};
use crate::{AllocationId, BackingError, ErrorKind, RegionId, ReleaseOutcome, ReleaseTarget};
use abi_stable::StableAbi;

/// A [`ReleaseTarget`]: 0 region, 1 allocation, and its id.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct TargetRecord {
    kind: u32,
    id: u64,
}

impl From<ReleaseTarget> for TargetRecord {
    fn from(target: ReleaseTarget) -> Self {
        match target {
            ReleaseTarget::Region(id) => Self { kind: 0, id: id.get() },
            ReleaseTarget::Allocation(id) => Self { kind: 1, id: id.get() },
        }
    }
}

impl TargetRecord {
    /// What to release, unless the kind is not known.
    #[must_use]
    pub fn target(self) -> Option<ReleaseTarget> {
        match self.kind {
            0 => Some(ReleaseTarget::Region(RegionId::new(self.id))),
            1 => Some(ReleaseTarget::Allocation(AllocationId::new(self.id))),
            _ => None,
        }
    }
}

/// A [`ReleaseOutcome`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct OutcomeRecord {
    /// One of the `OUTCOME_…` numbers.
    outcome: u32,
    /// Physical bytes that are still owned; holds for [`OUTCOME_QUARANTINED`] alone.
    remaining_bytes: u64,
    /// Why it is not complete; nothing for [`OUTCOME_COMPLETE`].
    reason: ErrorRecord,
}

impl OutcomeRecord {
    /// The worst outcome, for a callee to write another.
    #[must_use]
    pub const fn unwritten() -> Self {
        Self { outcome: OUTCOME_QUARANTINED, remaining_bytes: u64::MAX, reason: ErrorRecord::empty() }
    }

    /// How it ended. An outcome that is not known counts as quarantined, with everything remaining: what came with it
    /// may mean anything.
    #[must_use]
    pub fn outcome(&self) -> ReleaseOutcome {
        match self.outcome {
            OUTCOME_COMPLETE => ReleaseOutcome::Complete,
            OUTCOME_FAILED => ReleaseOutcome::Failed(self.reason.read()),
            OUTCOME_QUARANTINED => {
                ReleaseOutcome::Quarantined { remaining_bytes: self.remaining_bytes, error: self.reason.read() }
            }
            outcome => ReleaseOutcome::Quarantined {
                remaining_bytes: u64::MAX,
                error: BackingError::new(ErrorKind::Unintelligible, format!("its outcome {outcome} is not known")),
            },
        }
    }
}

impl From<ReleaseOutcome> for OutcomeRecord {
    fn from(outcome: ReleaseOutcome) -> Self {
        let mut record = Self { outcome: OUTCOME_COMPLETE, remaining_bytes: 0, reason: ErrorRecord::empty() };
        match outcome {
            ReleaseOutcome::Complete => {}
            ReleaseOutcome::Failed(reason) => {
                record.outcome = OUTCOME_FAILED;
                record.reason.write(&reason);
            }
            ReleaseOutcome::Quarantined { remaining_bytes, error } => {
                record.outcome = OUTCOME_QUARANTINED;
                record.remaining_bytes = remaining_bytes;
                record.reason.write(&error);
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_outcomes_survive_their_records() {
        for target in [ReleaseTarget::Region(RegionId::new(7)), ReleaseTarget::Allocation(AllocationId::new(8))] {
            assert_eq!(TargetRecord::from(target).target(), Some(target));
        }
        assert_eq!(TargetRecord { kind: 2, id: 7 }.target(), None);
        let why = || BackingError::invalid("why");
        for outcome in [
            ReleaseOutcome::Complete,
            ReleaseOutcome::Failed(why()),
            ReleaseOutcome::Quarantined { remaining_bytes: 4096, error: why() },
        ] {
            assert_eq!(OutcomeRecord::from(outcome.clone()).outcome(), outcome);
        }
    }

    #[test]
    fn an_outcome_that_is_not_written_or_not_known_counts_as_quarantined() {
        let unknown = OutcomeRecord { outcome: 99, remaining_bytes: 0, reason: ErrorRecord::empty() };
        for record in [OutcomeRecord::unwritten(), unknown] {
            let outcome = record.outcome();
            assert!(matches!(outcome, ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, .. }), "{outcome:?}");
        }
    }
}
