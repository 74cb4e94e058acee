//! One call over parts of many regions: all of it, or none.
//!
//! ```text
//! lock ─ check ─ unlock ─► obtain handles (may call the host) ─► lock ─ check ─ map ─ unlock ─► take back, or restore
//! ```
//!
//! Handles are obtained with no lock held, so everything is checked once more before it is done. The regions of a call are
//! locked in the order of their ids, so that two calls can't wait for each other.

use crate::contents::PrefixMemory;
use crate::memory::DeviceMemory;
use crate::region::{Broken, OpenRegion, Region, Returns, broken_off};
use crate::source::{Need, Parting, Piece, Supply};
use leasehold_cuda_driver::Fault;
use leasehold_plugin_api::toolkit::{Table, request};
use leasehold_plugin_api::{BackingError, Change, CommitRange, PrefixId, PrefixMapping, RegionId};
use std::sync::Arc;

const SCARCE: &str = "free memory of the device, or lower the budget of its domain";

/// The parts of one call that lie in one region, by offset.
pub(crate) struct Group<'a, T> {
    pub(crate) region: OpenRegion<'a>,
    pub(crate) parts: &'a [T],
    pub(crate) need: Need,
}

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

    /// Maps every part at its place, read-only, or none. `find` answers the memory of a sealed prefix.
    ///
    /// # Errors
    ///
    /// As [`SharedMapping::map_prefix`](leasehold_plugin_api::SharedMapping::map_prefix).
    pub fn map_prefix(
        &self,
        mappings: &[PrefixMapping],
        find: impl Fn(PrefixId) -> Result<Arc<PrefixMemory>, BackingError>,
    ) -> Result<Change, BackingError> {
        let parts = request::in_order(mappings, PrefixMapping::target)?;
        let memories = parts.iter().map(|part| find(part.source.prefix())).collect::<Result<Vec<_>, _>>()?;
        for (part, memory) in parts.iter().zip(&memories) {
            self.check_source(part, memory)?;
        }
        let mut returns = Returns::default();
        let outcome = with_groups(&self.regions, &parts, PrefixMapping::region, |groups| {
            check(groups, |region, part| region.check_free(&part.target()))?;
            self.map_or_undo(groups, &memories, &mut returns)
        });
        // The caller's own holds: were they the last, the memory would go with them.
        returns.memories.extend(memories);
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: mapped(&parts), owned_bytes: 0 })
    }

    fn map_or_undo(
        &self,
        groups: &mut [Group<'_, PrefixMapping>],
        memories: &[Arc<PrefixMemory>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let _bound = self.device().bind().map_err(|fault| fault.into_error("not mapped", SCARCE))?;
        let mut memories = memories.iter();
        let mut done = 0_usize;
        let mut outcome = Ok(());
        'all: for group in groups.iter_mut() {
            for part in group.parts {
                let Some(memory) = memories.next() else { continue };
                outcome = group.region.map_part(part, memory, self.ordinals(), returns);
                if outcome.is_err() {
                    break 'all;
                }
                done = done.saturating_add(1);
            }
        }
        let Err(mut broken) = outcome else { return Ok(()) };
        for group in groups.iter_mut() {
            for part in group.parts.iter().take(done) {
                if let Err(fault) = group.region.unmap_part(part, returns) {
                    group.region.leave_part(part);
                    broken.undo = broken.undo.or(Some(fault));
                }
            }
            done = done.saturating_sub(group.parts.len());
        }
        Err(broken.into_error("not mapped", "unmap others first"))
    }

    /// Takes mappings away, each as it was made. Where the driver refuses half-way, what was unmapped is mapped again.
    ///
    /// # Errors
    ///
    /// As [`SharedMapping::unmap`](leasehold_plugin_api::SharedMapping::unmap).
    pub fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let parts = request::in_order(mappings, PrefixMapping::target)?;
        let mut returns = Returns::default();
        let outcome = with_groups(&self.regions, &parts, PrefixMapping::region, |groups| {
            check(groups, OpenRegion::check_mapped)?;
            self.unmap_or_undo(groups, &mut returns)
        });
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: mapped(&parts), owned_bytes: 0 })
    }

    fn unmap_or_undo(
        &self,
        groups: &mut [Group<'_, PrefixMapping>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let _bound = self.device().bind().map_err(|fault| fault.into_error("not unmapped", "try again"))?;
        let mut taken: Vec<Arc<PrefixMemory>> = Vec::new();
        let mut outcome = Ok(());
        'all: for group in groups.iter_mut() {
            for part in group.parts {
                let mut gone = Returns::default();
                outcome = group.region.unmap_part(part, &mut gone).map_err(Broken::undone);
                if outcome.is_err() {
                    break 'all;
                }
                taken.append(&mut gone.memories);
            }
        }
        let Err(mut broken) = outcome else {
            returns.memories.append(&mut taken);
            return Ok(());
        };
        let mut again = taken.iter();
        for group in groups.iter_mut() {
            for part in group.parts {
                let Some(memory) = again.next() else { break };
                if let Err(undo) = group.region.map_part(part, memory, self.ordinals(), returns) {
                    broken.undo = broken.undo.or(Some(undo.fault));
                }
            }
        }
        returns.memories.append(&mut taken);
        if broken.undo.is_some() {
            // Nobody reads there any more.
            groups.iter_mut().for_each(|group| group.parts.iter().for_each(|part| group.region.leave_part(part)));
        }
        Err(broken.into_error("not unmapped", "try again"))
    }

    /// Refuses a part that is malformed or leaves its prefix.
    fn check_source(&self, mapping: &PrefixMapping, memory: &PrefixMemory) -> Result<(), BackingError> {
        let unit = self.unit();
        let bytes = unit.saturating_mul(u64::try_from(memory.handles.len()).unwrap_or(u64::MAX));
        let source = mapping.source;
        let is_whole = source.offset.is_multiple_of(unit) && source.bytes.is_multiple_of(unit) && source.bytes > 0;
        if is_whole && source.end().is_some_and(|end| end <= bytes) {
            return Ok(());
        }
        let (id, offset, asked) = (source.prefix(), source.offset, source.bytes);
        let why = format!("{asked} bytes at offset {offset} are no part of its {bytes}; ask for whole units of {unit}");
        Err(BackingError::invalid(format!("{id}: {why}")))
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

fn mapped(parts: &[PrefixMapping]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.source.bytes))
}

fn check<'a, T>(
    groups: &[Group<'a, T>],
    rule: impl Fn(&OpenRegion<'a>, &T) -> Result<(), BackingError>,
) -> Result<(), BackingError> {
    groups.iter().try_for_each(|group| group.parts.iter().try_for_each(|part| rule(&group.region, part)))
}

/// Locks every region of the call, then acts. The parts are in order.
fn with_groups<T, R>(
    regions: &Table<RegionId, Region>,
    parts: &[T],
    region_of: impl Fn(&T) -> RegionId,
    act: impl FnOnce(&mut [Group<'_, T>]) -> Result<R, BackingError>,
) -> Result<R, BackingError> {
    let chunks = || parts.chunk_by(|left, right| region_of(left) == region_of(right));
    let id_of = |parts: &[T]| parts.first().map_or(RegionId::new(0), &region_of);
    let unknown = |parts: &[T]| BackingError::unknown_id(id_of(parts));
    let found = chunks().map(|parts| regions.find(id_of(parts)).ok_or_else(|| unknown(parts)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let groups = chunks().zip(&found).map(|(parts, region)| {
        let need = Need { units: 0, holder: region.holder(), role: region.role() };
        let region = region.open().ok_or_else(|| unknown(parts))?;
        Ok(Group { region, parts, need })
    });
    let mut groups = groups.collect::<Result<Vec<_>, BackingError>>()?;
    act(&mut groups)
}
