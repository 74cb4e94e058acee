//! Memory that comes and goes: commits and decommits.

use super::{Group, SCARCE, check, with_groups};
use crate::broken::{Broken, broken_off};
use crate::memory::DeviceMemory;
use crate::region::{OpenRegion, Returns};
use crate::source::{Need, Parting, Piece, Supply};
use leasehold_cuda_driver::Fault;
use leasehold_plugin_api::toolkit::request;
use leasehold_plugin_api::{BackingError, Change, CommitRange, RegionId};

impl DeviceMemory {
    /// Says what committing the ranges would change, as things are.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit), for what can be known beforehand.
    pub fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let parts = request::in_order(ranges, |part| *part)?;
        with_groups(&self.regions, &parts, CommitRange::region, |groups| check(groups, OpenRegion::check_free))?;
        let mapped_bytes = bytes_of(&parts);
        let units = mapped_bytes.checked_div(self.unit()).unwrap_or(0);
        Ok(Change { mapped_bytes, owned_bytes: self.source().newly_owned(units) })
    }

    /// Commits every range, or none.
    ///
    /// # Errors
    ///
    /// As [`VirtualBacking::commit`](leasehold_plugin_api::VirtualBacking::commit).
    pub fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let parts = request::in_order(ranges, |part| *part)?;
        let needs = with_groups(&self.regions, &parts, CommitRange::region, |groups| {
            check(groups, OpenRegion::check_free)?;
            let unit = self.unit();
            let of_part =
                |need: Need, part: &CommitRange| Need { units: part.bytes.checked_div(unit).unwrap_or(0), ..need };
            Ok(groups
                .iter()
                .flat_map(|group| group.parts.iter().map(move |part| of_part(group.need, part)))
                .collect::<Vec<_>>())
        })?;
        let (mut supply, mut returns) = (Supply::default(), Returns::default());
        let outcome = self.source().obtain(&needs, &mut supply).and_then(|()| {
            with_groups(&self.regions, &parts, CommitRange::region, |groups| {
                check(groups, OpenRegion::check_free)?;
                self.commit_or_undo(groups, &mut supply.parts, &mut returns)
            })
        });
        let owned_bytes = self.end_commit(outcome, supply, returns, |index, debts| {
            if let Some(region) = parts.get(index).and_then(|part| self.regions.find(part.region())) {
                region.keep(debts);
            }
        })?;
        Ok(Change { mapped_bytes: bytes_of(&parts), owned_bytes })
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
        groups: &mut [Group<'_, CommitRange>],
        supplied: &mut [Vec<Piece>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let _bound = self.device().bind().map_err(|fault| fault.into_error("not committed", SCARCE))?;
        // How each piece was before it was mapped, to restore the supply with.
        let formers: Vec<Vec<_>> =
            supplied.iter().map(|part| part.iter().map(|piece| piece.former).collect()).collect();
        let mut done = 0;
        let outcome = self.commit_each(groups, supplied, returns, &mut done);
        let outcome = outcome.and_then(|()| self.device().wait_for_default_stream().map_err(Broken::undone));
        let Err(mut broken) = outcome else { return Ok(()) };
        let mut parts = supplied.iter_mut().zip(formers).take(done);
        for group in groups {
            for (part, (pieces, formers)) in group.parts.iter().zip(&mut parts) {
                let mut taken = Returns::default();
                if let Err(fault) = group.region.undo_commit(part, &mut taken) {
                    broken.undo = broken.undo.or(Some(fault));
                }
                let handles = taken.handles.into_iter().zip(formers);
                pieces.extend(handles.map(|(returned, former)| Piece { handle: returned.handle, former }));
                returns.memories.append(&mut taken.memories);
            }
        }
        Err(broken.into_error("not committed", SCARCE))
    }

    fn commit_each(
        &self,
        groups: &mut [Group<'_, CommitRange>],
        supplied: &mut [Vec<Piece>],
        returns: &mut Returns,
        done: &mut usize,
    ) -> Result<(), Broken> {
        let (mut supplied, parting) = (supplied.iter_mut(), self.source().parting());
        for group in groups {
            for part in group.parts {
                let Some(pieces) = supplied.next() else { continue };
                group.region.commit(part, pieces, self.ordinals(), (parting, returns))?;
                *done = done.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Decommits every range, each from its end backwards: a contiguous run in one call of the driver.
    ///
    /// # Errors
    ///
    /// As [`VirtualBacking::decommit`](leasehold_plugin_api::VirtualBacking::decommit).
    pub fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let parts = request::in_order(ranges, |part| *part)?;
        let parting = self.source().parting();
        let mut returns = Returns::default();
        let outcome = with_groups(&self.regions, &parts, CommitRange::region, |groups| {
            check(groups, OpenRegion::check_private)?;
            let _bound = self.device().bind().map_err(|fault| fault.into_error("not decommitted", "try again"))?;
            for group in groups.iter_mut() {
                for part in group.parts.iter().rev() {
                    let gone = group.region.decommit(part, parting, &mut returns);
                    gone.map_err(|fault| fault.into_error(request::name(part), "it stays committed; try again"))?;
                }
            }
            Ok(())
        });
        let given_back = self.settle(returns);
        let mapped_bytes = bytes_of(&parts);
        let owned_bytes = match parting {
            Parting::BeforeUnmapping => mapped_bytes,
            Parting::AfterUnmapping => given_back,
        };
        outcome.map(|()| Change { mapped_bytes, owned_bytes })
    }

    /// Committed bytes of a region.
    ///
    /// # Errors
    ///
    /// [`UnknownId`](leasehold_plugin_api::ErrorKind::UnknownId), and
    /// [`BrokenOff`](leasehold_plugin_api::ErrorKind::BrokenOff) while residue can't be taken away.
    pub fn committed_bytes(&self, id: RegionId) -> Result<u64, BackingError> {
        let region = self.regions.find(id).ok_or_else(|| BackingError::unknown_id(id))?;
        let mut returns = Returns::default();
        let mut open = region.open().ok_or_else(|| BackingError::unknown_id(id))?;
        let answer = open.committed_bytes(self.source().parting(), &mut returns);
        drop(open);
        self.settle(returns);
        answer
    }
}

/// A failure after which memory is owned still that was made for the call.
fn in_debt(error: &BackingError, debt: Fault) -> BackingError {
    let what = format!("{}; what was made for it could not be given back", error.message());
    let advice = "it is tried again before the region is used, and when it is released";
    debt.into_error_of(broken_off(error.kind(), debt.kind()), what, advice)
}

fn bytes_of(parts: &[CommitRange]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
}
