//! A region under its lock: the rules of a call, and the calls of the driver that change what is mapped.

use super::{Region, Returns, State, ended};
use crate::broken::{Broken, RETRY, broken_off};
use crate::contents::{Part, PrefixMemory};
use crate::source::{HandleRelease, Need, Piece};
use leasehold_cuda_driver::{Access, Fault, PhysicalHandle};
use leasehold_plugin_api::toolkit::request::{self, name};
use leasehold_plugin_api::{BackingError, CommitRange, ErrorKind, PrefixMapping};
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
    /// How many granules stay mapped, and why they do; `None` where nothing is left.
    left: Option<(u64, Fault)>,
}

impl From<Unmapped> for Broken {
    fn from(Unmapped { fault, left }: Unmapped) -> Self {
        Self { fault, undo: left.map(|(_, undo)| undo) }
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
            Unmapped { fault, left: left.map(|undo| (mapped, undo)) }
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
    fn unmap_first(&mut self, target: &CommitRange, granules: u64) -> Result<(), Fault> {
        self.state.finish_work()?;
        let space = self.state.space.as_ref().ok_or_else(|| ended("cuMemUnmap"))?;
        space.unmap(target.offset, granules.saturating_mul(self.region.granule))
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
            Err(Unmapped { left: Some((granules, _)), .. }) => {
                let stuck = pieces.drain(..usize::try_from(*granules).unwrap_or(0));
                contents.insert_residue(first, stuck.map(|piece| piece.handle));
            }
            Err(_) => {}
        }
        Ok(outcome?)
    }

    /// Takes back what this very call committed. Where the driver refuses, it is residue.
    pub(crate) fn undo_commit(&mut self, part: &CommitRange, returns: &mut Returns) -> Result<(), Fault> {
        let range = self.granules_of(part);
        let outcome = self.state.unmap_run(self.region, &range, HandleRelease::AfterUnmapping, returns);
        if outcome.is_err() {
            let handles = self.state.contents.remove(&range, self.region.wanted.holder);
            self.state.contents.insert_residue(range.start, handles.into_iter().map(|(handle, _)| handle));
        }
        outcome
    }

    /// Unmaps a committed range, or changes nothing.
    pub(crate) fn decommit(&mut self, part: &CommitRange, returns: &mut Returns) -> Result<(), Fault> {
        let range = self.granules_of(part);
        self.state.unmap_run(self.region, &range, self.region.handle_release, returns)
    }

    /// Maps a part of a prefix read-only into a free range.
    pub(crate) fn map_part(
        &mut self,
        mapping: &PrefixMapping,
        memory: &Arc<PrefixMemory<PhysicalHandle>>,
        returns: &mut Returns,
    ) -> Result<(), Broken> {
        self.clear_left(returns).map_err(Broken::undone)?;
        let (target, source) = (mapping.target(), source_of(mapping, self.region.granule));
        let handles = memory.handles.iter().skip(usize::try_from(source.start).unwrap_or(usize::MAX));
        let outcome = self.map_run(&target, handles, Access::ReadOnly, Finish::AsItIs);
        let range = self.granules_of(&target);
        let part = |source| Part { memory: Arc::clone(memory), source };
        let contents = &mut self.state.contents;
        match &outcome {
            Ok(()) => contents.insert_part(range.start, part(source)),
            Err(Unmapped { left: Some((granules, _)), .. }) => {
                // It stays in the books as far as it is mapped.
                contents.insert_part(range.start, part(source.start..source.start.saturating_add(*granules)));
                contents.leave_prefixes(&range);
            }
            Err(_) => {}
        }
        Ok(outcome?)
    }

    /// Unmaps a part of a prefix that is mapped, or changes nothing.
    pub(crate) fn unmap_part(&mut self, mapping: &PrefixMapping, returns: &mut Returns) -> Result<(), Fault> {
        let range = self.granules_of(&mapping.target());
        self.state.unmap_run(self.region, &range, self.region.handle_release, returns)
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
