//! Memory that comes and goes: commits and decommits.

use crate::broken::{Broken, broken_off};
use crate::region::{OpenRegion, Returns};
use crate::regions::DeviceRegions;
use crate::source::{HandleRelease, Need, Piece, Supply};
use leasehold_cuda_driver::Fault;
use leasehold_plugin_api::toolkit::{CallParts, Lockable, LockedParts, Stopped, request};
use leasehold_plugin_api::{BackingError, Change, CommitRange, RegionId};

impl DeviceRegions {
    /// Says what committing the ranges would change, as things are.
    pub(crate) fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        CallParts::new(ranges)?.with_locked(self.table(), |locked| locked.check(OpenRegion::check_free))?;
        let mapped_bytes = CommitRange::total_bytes(ranges);
        Ok(Change { mapped_bytes, owned_bytes: self.source().newly_owned(self.granules(mapped_bytes)) })
    }

    /// Commits every range, or none.
    pub(crate) fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let parts = CallParts::new(ranges)?;
        let needs = parts.with_locked(self.table(), |locked| {
            locked.check(OpenRegion::check_free)?;
            let needs = locked.iter().map(|(region, part)| region.need(self.granules(part.bytes)));
            Ok(needs.collect::<Vec<Need>>())
        })?;
        let (mut supply, mut returns) = (Supply::default(), Returns::default());
        let outcome = self.source().obtain(&needs, &mut supply).and_then(|()| {
            parts.with_locked(self.table(), |locked| {
                locked.check(OpenRegion::check_free)?;
                self.commit_or_undo(locked, &mut supply.parts, &mut returns)
            })
        });
        let owned_bytes = self.end_commit(outcome, supply, returns, |index, debts| {
            if let Some(region) = parts.get(index).and_then(|part| self.table().find(part.region())) {
                region.keep(debts);
            }
        })?;
        Ok(Change { mapped_bytes: CommitRange::total_bytes(ranges), owned_bytes })
    }

    /// Ends a commit: what was not used goes back to the source, or is a debt of the region of its part. Answers the
    /// bytes that are newly owned.
    pub(crate) fn end_commit(
        &self,
        outcome: Result<(), BackingError>,
        mut supply: Supply,
        returns: Returns,
        keep: impl Fn(usize, Vec<Piece>),
    ) -> Result<u64, BackingError> {
        let Err(error) = outcome else {
            self.settle(returns);
            return Ok(supply.owned_bytes);
        };
        let restored = self.source().restore(&mut supply);
        supply.parts.into_iter().enumerate().for_each(|(index, debts)| keep(index, debts));
        self.settle(returns);
        match restored {
            Ok(()) => Err(error),
            Err(debt) => Err(in_debt(&error, debt)),
        }
    }

    pub(crate) fn commit_or_undo(
        &self,
        locked: &mut LockedParts<'_, OpenRegion<'_>, CommitRange>,
        supplied: &mut [Vec<Piece>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let what = format!("{} bytes not committed", locked.total_bytes());
        let _bound = self.device().bind().map_err(|fault| Broken::undone(fault).into_error(&what))?;
        // How each piece was before it was mapped, to restore the supply with.
        let formers: Vec<Vec<_>> =
            supplied.iter().map(|part| part.iter().map(|piece| piece.former).collect()).collect();
        let outcome =
            locked.try_each_with(supplied.iter_mut(), |region, part, pieces| region.commit(part, pieces, returns));
        let outcome = outcome.and_then(|()| {
            let zeroed = self.end_zeroing(locked);
            zeroed.map_err(|fault| Stopped { done: locked.count(), error: Broken::undone(fault) })
        });
        let Err(Stopped { done, error: mut broken }) = outcome else { return Ok(()) };
        let committed = supplied.iter_mut().zip(formers).take(done);
        locked.each_with(committed, |region, part, (pieces, formers)| {
            if let Err(fault) = region.undo_commit(part, &formers, pieces) {
                broken.undo = broken.undo.or(Some(fault));
            }
        });
        Err(broken.into_error(&what))
    }

    /// Waits for the zeroing that the parts began, where they did.
    fn end_zeroing(&self, locked: &mut LockedParts<'_, OpenRegion<'_>, CommitRange>) -> Result<(), Fault> {
        if locked.regions_mut().any(|region| region.is_zeroing()) {
            self.device().wait_for_zeroing()?;
            locked.regions_mut().for_each(OpenRegion::end_zeroing);
        }
        Ok(())
    }

    /// Decommits every range, a contiguous run in one call of the driver. The first that the driver refuses ends it: what
    /// was decommitted before stays so.
    pub(crate) fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let mut returns = Returns::default();
        let outcome = CallParts::new(ranges)?.with_locked(self.table(), |locked| {
            locked.check(OpenRegion::check_private)?;
            let refuse = |fault: Fault, name: &str, gone: u64| {
                let what = format!("{name}: not decommitted, after {gone} bytes that are");
                fault.into_error(what, "ask what is committed, and try again")
            };
            let _bound = self.device().bind().map_err(|fault| refuse(fault, "nothing", 0))?;
            let mut gone: u64 = 0;
            let outcome = locked.try_each(|region, part| {
                region.decommit(part, &mut returns).map_err(|fault| refuse(fault, &request::name(part), gone))?;
                gone = gone.saturating_add(part.bytes);
                Ok(())
            });
            outcome.map_err(|stopped| stopped.error)
        });
        let given_back = self.settle(returns);
        let mapped_bytes = CommitRange::total_bytes(ranges);
        let owned_bytes = match self.source().handle_release() {
            HandleRelease::BeforeUnmapping => mapped_bytes,
            HandleRelease::AfterUnmapping => given_back,
        };
        outcome.map(|()| Change { mapped_bytes, owned_bytes })
    }

    /// Committed bytes of a region.
    pub(crate) fn committed_bytes(&self, id: RegionId) -> Result<u64, BackingError> {
        let region = self.table().find(id).ok_or_else(|| BackingError::unknown_id(id))?;
        let mut returns = Returns::default();
        let mut open = region.open().ok_or_else(|| BackingError::unknown_id(id))?;
        let answer = open.committed_bytes(&mut returns);
        drop(open);
        self.settle(returns);
        answer
    }
}

/// The failure of a call that leaves memory owned which was made for it.
fn in_debt(error: &BackingError, debt: Fault) -> BackingError {
    let what = format!("{}; what was made for it could not be given back", error.message());
    let advice = "it is tried again before the region is used, and when it is released";
    debt.into_error_of(broken_off(error.kind(), debt.kind()), what, advice)
}
