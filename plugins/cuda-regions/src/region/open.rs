//! A region under its lock: the rules of a call, and the calls of the driver that change what is mapped.

use super::{Region, Returns, State, Stuck, ended, unmapping};
use crate::broken::{Broken, RETRY, broken_off};
use crate::contents::{Part, PrefixMemory};
use crate::source::{HandleRelease, Need, Piece};
use leasehold_cuda_driver::{Access, Fault, PhysicalHandle};
use leasehold_plugin_api::toolkit::request::{self, name};
use leasehold_plugin_api::{BackingError, CommitRange, ErrorKind, HolderId, PrefixMapping};
use std::iter;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

/// A region under its lock, in which something is reserved.
#[derive(Debug)]
pub(crate) struct OpenRegion<'a> {
    pub(super) region: &'a Region,
    pub(super) state: MutexGuard<'a, State>,
}

/// What happens to memory once it is mapped.
#[derive(Clone, Copy, Debug)]
enum Finish {
    AsItIs,
    /// Zeroing is begun.
    Zero,
}

/// A run that could not be mapped as a whole.
struct Unmapped {
    fault: Fault,
    /// What stays mapped, and why it does; `None` where nothing is left.
    left: Option<Box<Stuck>>,
}

impl From<Unmapped> for Broken {
    fn from(Unmapped { fault, left }: Unmapped) -> Self {
        Self { fault, undo: left.map(|stuck| stuck.fault) }
    }
}

impl OpenRegion<'_> {
    /// What that many granules of it need.
    pub(crate) fn need(&self, granules: u64) -> Need {
        self.region.need(granules)
    }

    /// Committed bytes, or why nobody can tell: what is left of failed calls is taken away first.
    pub(crate) fn committed_bytes(&mut self, returns: &mut Returns) -> Result<u64, BackingError> {
        self.clear_left(returns).map_err(|fault| {
            let kind = broken_off(ErrorKind::BrokenOff, fault.kind());
            fault.into_error_of(kind, "what a failed call left is still held", RETRY)
        })?;
        Ok(self.state.contents.private_granules().saturating_mul(self.region.granule))
    }

    /// Takes away what earlier calls could not undo.
    fn clear_left(&mut self, returns: &mut Returns) -> Result<(), Fault> {
        self.state.clear_debts()?;
        let runs = self.state.contents.runs_left();
        runs.into_iter()
            .try_for_each(|run| self.state.unmap_run(self.region, &run, self.region.handle_release, returns))
            .map_err(|stuck| stuck.fault)
    }

    /// The granules of a range that was checked.
    fn granules_of(&self, part: &CommitRange) -> Range<u64> {
        let granule = |bytes: u64| bytes.checked_div(self.region.granule).unwrap_or(0);
        granule(part.offset)..granule(part.offset.saturating_add(part.bytes))
    }

    fn check_within(&self, part: &CommitRange) -> Result<Range<u64>, BackingError> {
        request::range_within(part, self.region.granule, self.region.wanted.bytes)?;
        Ok(self.granules_of(part))
    }

    /// Refuses a range that is malformed, or in which something is mapped.
    pub(crate) fn check_free(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.contents.is_free(&self.check_within(part)?) {
            return Ok(());
        }
        let why = "holds memory already; commit or map each granule once";
        Err(BackingError::new(ErrorKind::AlreadyCommitted, format!("{}: {why}", name(part))))
    }

    /// Refuses a range that is malformed, or in which something is not committed.
    pub(crate) fn check_private(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.contents.is_private(&self.check_within(part)?) {
            return Ok(());
        }
        let why = "holds granules that are not committed; decommit only what was committed";
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(part))))
    }

    /// Refuses a mapping that isn't there just so.
    pub(crate) fn check_mapped(&self, mapping: &PrefixMapping) -> Result<(), BackingError> {
        let target = mapping.target();
        let range = self.check_within(&target)?;
        let wanted = source_of(mapping, self.region.granule);
        let is_there = |part: &Part<_>| part.memory.id == mapping.source.prefix() && part.source == wanted;
        if self.state.contents.part(range.start).is_some_and(is_there) {
            return Ok(());
        }
        let why = format!("{} is not mapped there so; name each mapping as it was made", mapping.source.prefix());
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(&target))))
    }

    /// Maps a run of handles where nothing is mapped, gives access to all of it in one call, and finishes; or undoes that.
    fn map_run<'h>(
        &mut self,
        target: &CommitRange,
        handles: impl Iterator<Item = &'h PhysicalHandle>,
        access: Access,
        finish: Finish,
    ) -> Result<(), Unmapped> {
        let mut mapped: u64 = 0;
        let outcome = self.map_all(target, handles, access, finish, &mut mapped);
        outcome.map_err(|fault| {
            let left = if mapped == 0 { None } else { self.unmap_first(target, mapped).err() };
            Unmapped { fault, left: left.map(Box::new) }
        })
    }

    fn map_all<'h>(
        &mut self,
        target: &CommitRange,
        handles: impl Iterator<Item = &'h PhysicalHandle>,
        access: Access,
        finish: Finish,
        mapped: &mut u64,
    ) -> Result<(), Fault> {
        let range = self.granules_of(target);
        let space = self.state.space.as_ref().ok_or_else(|| ended("cuMemMap"))?;
        for (index, handle) in range.zip(handles) {
            space.map(index.saturating_mul(self.region.granule), handle)?;
            *mapped = mapped.saturating_add(1);
        }
        space.set_access(target.offset, target.bytes, &self.region.grants(access))?;
        match finish {
            Finish::AsItIs => Ok(()),
            Finish::Zero => {
                let zeroing = space.span(target.offset, target.bytes)?.zero();
                self.state.under_way.zeroing = true;
                zeroing
            }
        }
    }

    /// Unmaps the first granules of a run, once nothing is under way there.
    fn unmap_first(&mut self, target: &CommitRange, granules: u64) -> Result<(), Stuck> {
        let start = self.granules_of(target).start;
        let run = start..start.saturating_add(granules);
        self.state.finish_work().map_err(|fault| Stuck::whole(fault, &run))?;
        let Some(space) = &self.state.space else { return Err(Stuck::whole(ended("cuMemUnmap"), &run)) };
        unmapping::unmap(space, self.region.granule, &run)
    }

    /// Whether zeroing was begun that nobody has waited for.
    pub(crate) fn is_zeroing(&self) -> bool {
        self.state.under_way.zeroing
    }

    /// Notes that somebody has waited for the zeroing.
    pub(crate) fn end_zeroing(&mut self) {
        self.state.under_way.zeroing = false;
    }

    /// Maps pieces into a free range, gives access, and begins to zero what another holder may have left. On failure the
    /// pieces that nothing maps are left in `pieces`.
    pub(crate) fn commit(
        &mut self,
        part: &CommitRange,
        pieces: &mut Vec<Piece>,
        returns: &mut Returns,
    ) -> Result<(), Broken> {
        self.clear_left(returns).map_err(Broken::undone)?;
        let holder = self.region.wanted.holder;
        let is_strange = |piece: &Piece| !piece.former.is_some_and(|former| holder.may_see(former));
        let finish = if pieces.iter().any(is_strange) { Finish::Zero } else { Finish::AsItIs };
        let outcome = self.map_run(part, pieces.iter().map(|piece| &piece.handle), Access::ReadWrite, finish);
        let first = self.granules_of(part).start;
        let contents = &mut self.state.contents;
        match &outcome {
            Ok(()) => contents.insert_private(first, pieces.drain(..).map(|piece| piece.handle)),
            Err(Unmapped { left: Some(stuck), .. }) => {
                let is_left = |granule: u64| stuck.left.iter().any(|run| run.contains(&granule));
                for (granule, piece) in (first..).zip(std::mem::take(pieces)) {
                    match is_left(granule) {
                        true => contents.insert_residue(granule, iter::once(piece.handle)),
                        false => pieces.push(piece),
                    }
                }
            }
            Err(_) => {}
        }
        Ok(outcome?)
    }

    /// Takes back what this very call committed, into pieces that are as `formers` says. What the driver keeps is residue.
    pub(crate) fn undo_commit(
        &mut self,
        part: &CommitRange,
        formers: &[Option<HolderId>],
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let (range, mut taken) = (self.granules_of(part), Returns::default());
        let outcome = self.state.unmap_run(self.region, &range, HandleRelease::AfterUnmapping, &mut taken);
        self.state.contents.leave_private(&range);
        let is_gone = |granule: u64| match &outcome {
            Ok(()) => true,
            Err(stuck) => stuck.gone.iter().any(|run| run.contains(&granule)),
        };
        let gone = range.zip(formers).filter(|(granule, _)| is_gone(*granule));
        pieces.extend(
            taken
                .handles
                .into_iter()
                .zip(gone)
                .map(|(returned, (_, former))| Piece { handle: returned.handle, former: *former }),
        );
        outcome.map_err(|stuck| stuck.fault)
    }

    /// Unmaps a committed range. Where the driver refuses half-way, nobody uses what is left of it behind the first granule
    /// that is gone, or may be: what stays committed has no holes.
    pub(crate) fn decommit(&mut self, part: &CommitRange, returns: &mut Returns) -> Result<(), Fault> {
        let range = self.granules_of(part);
        let outcome = self.state.unmap_run(self.region, &range, self.region.handle_release, returns);
        outcome.map_err(|stuck| {
            let gone = stuck.gone.first().map(|gone| gone.start);
            if let Some(first) = gone.into_iter().chain(stuck.unsure.map(|(unsure, _)| unsure)).min() {
                self.state.contents.leave_private(&(first..range.end));
            }
            stuck.fault
        })
    }

    /// Maps a part of a prefix read-only into a free range.
    pub(crate) fn map_part(
        &mut self,
        mapping: &PrefixMapping,
        memory: &Arc<PrefixMemory<PhysicalHandle>>,
        returns: &mut Returns,
    ) -> Result<(), Broken> {
        self.clear_left(returns).map_err(Broken::undone)?;
        let range = self.granules_of(&mapping.target());
        Ok(self.map_granules(mapping, &range, memory)?)
    }

    /// Maps some granules of a mapping's place, where nothing is mapped: a part for themselves.
    fn map_granules(
        &mut self,
        mapping: &PrefixMapping,
        granules: &Range<u64>,
        memory: &Arc<PrefixMemory<PhysicalHandle>>,
    ) -> Result<(), Unmapped> {
        let (place, source) =
            (self.granules_of(&mapping.target()).start, source_of(mapping, self.region.granule).start);
        let source_of = |granule: u64| source.saturating_add(granule.saturating_sub(place));
        let handles = memory.handles.iter().skip(usize::try_from(source_of(granules.start)).unwrap_or(usize::MAX));
        let bytes = |granules: u64| granules.saturating_mul(self.region.granule);
        let length = bytes(granules.end.saturating_sub(granules.start));
        let target = CommitRange::new(mapping.region(), bytes(granules.start), length);
        let outcome = self.map_run(&target, handles, Access::ReadOnly, Finish::AsItIs);
        let contents = &mut self.state.contents;
        let mut insert = |run: &Range<u64>| {
            let source = source_of(run.start)..source_of(run.end);
            contents.insert_part(run.start, Part { memory: Arc::clone(memory), source });
        };
        match &outcome {
            Ok(()) => insert(granules),
            Err(Unmapped { left: Some(stuck), .. }) => {
                // It stays in the books as far as it is mapped.
                stuck.left.iter().for_each(insert);
                contents.leave_prefixes(granules);
            }
            Err(_) => {}
        }
        outcome
    }

    /// Unmaps a part of a prefix that is mapped. Where the driver refuses half-way, what is gone is mapped again.
    pub(crate) fn unmap_part(&mut self, mapping: &PrefixMapping, returns: &mut Returns) -> Result<(), Broken> {
        let (range, mut taken) = (self.granules_of(&mapping.target()), Returns::default());
        let outcome = self.state.unmap_run(self.region, &range, self.region.handle_release, &mut taken);
        let outcome = outcome.map_err(|Stuck { fault, gone, unsure, .. }| {
            if let Some((_, untold)) = unsure {
                return Broken { fault, undo: Some(untold) };
            }
            let Some(memory) = taken.memories.first().cloned() else { return Broken::undone(fault) };
            let again = gone.iter().try_for_each(|run| self.map_granules(mapping, run, &memory));
            match again {
                Ok(()) => {
                    let whole = Part { memory, source: source_of(mapping, self.region.granule) };
                    let parts = self.state.contents.remove_parts(&range);
                    self.state.contents.insert_part(range.start, whole);
                    taken.memories.extend(parts);
                    Broken::undone(fault)
                }
                Err(again) => Broken { fault, undo: Some(again.fault) },
            }
        });
        returns.append(taken);
        outcome
    }

    /// Takes back what this very call mapped of a prefix. What the driver keeps is in nobody's use.
    pub(crate) fn undo_map(&mut self, mapping: &PrefixMapping, returns: &mut Returns) -> Result<(), Fault> {
        let range = self.granules_of(&mapping.target());
        let outcome = self.state.unmap_run(self.region, &range, self.region.handle_release, returns);
        self.state.contents.leave_prefixes(&range);
        outcome.map_err(|stuck| stuck.fault)
    }

    /// Nobody uses what is still mapped of a prefix from now on: the call about it broke off.
    pub(crate) fn leave_part(&mut self, mapping: &PrefixMapping) {
        let range = self.granules_of(&mapping.target());
        self.state.contents.leave_prefixes(&range);
    }

    /// Takes the handles out that are committed in the whole region: they are shared from now on.
    pub(crate) fn share_handles(&mut self) -> Vec<PhysicalHandle> {
        self.state.contents.take_handles()
    }
}

/// The granules of the prefix that a mapping shows.
fn source_of(mapping: &PrefixMapping, granule: u64) -> Range<u64> {
    let granules = |bytes: u64| bytes.checked_div(granule).unwrap_or(0);
    let start = granules(mapping.source.offset);
    start..start.saturating_add(granules(mapping.source.bytes))
}
