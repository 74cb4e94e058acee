//! A region under its lock: the rules of a call, and the calls of the driver that change what is mapped.

use super::{Region, Returns, State};
use crate::broken::{Broken, RETRY, broken_off};
use crate::contents::{Part, PrefixMemory};
use crate::source::{Parting, Piece};
use leasehold_cuda_driver::{Access, Fault, Grant, PhysicalHandle};
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

impl OpenRegion<'_> {
    /// Committed bytes, or why nobody can tell: residue is taken away first.
    pub(crate) fn committed_bytes(&mut self, parting: Parting, returns: &mut Returns) -> Result<u64, BackingError> {
        self.clear_residue(parting, returns).map_err(|fault| {
            let kind = broken_off(ErrorKind::BrokenOff, fault.kind());
            fault.into_error_of(kind, "what a failed call left is still held", RETRY)
        })?;
        Ok(self.state.contents.private_units().saturating_mul(self.region.unit))
    }

    /// Takes away what earlier calls could not undo.
    fn clear_residue(&mut self, parting: Parting, returns: &mut Returns) -> Result<(), Fault> {
        self.state.clear_debts()?;
        let runs = self.state.contents.runs_left();
        runs.into_iter().try_for_each(|run| self.state.unmap_run(self.region, &run, parting, returns))
    }

    /// The units of a range that is whole units within the region.
    pub(crate) fn units_of(&self, part: &CommitRange) -> Result<Range<u64>, BackingError> {
        let bytes = request::range_within(part, self.region.unit, self.region.bytes)?;
        let unit = |bytes: u64| bytes.checked_div(self.region.unit).unwrap_or(0);
        Ok(unit(bytes.start)..unit(bytes.end))
    }

    /// Refuses a range that is malformed, or in which something is mapped.
    pub(crate) fn check_free(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.contents.is_free(&self.units_of(part)?) {
            return Ok(());
        }
        let why = "holds memory already; commit or map each unit once";
        Err(BackingError::new(ErrorKind::AlreadyCommitted, format!("{}: {why}", name(part))))
    }

    /// Refuses a range that is malformed, or in which something is not committed.
    pub(crate) fn check_private(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.contents.is_private(&self.units_of(part)?) {
            return Ok(());
        }
        let why = "holds units that are not committed; decommit only what was committed";
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(part))))
    }

    /// Maps pieces into a free range, gives access, and zeroes what another holder may have left. On failure the pieces
    /// that nothing maps are left in `pieces`.
    pub(crate) fn commit(
        &mut self,
        part: &CommitRange,
        pieces: &mut Vec<Piece>,
        ordinals: &[u32],
        (parting, returns): (Parting, &mut Returns),
    ) -> Result<(), Broken> {
        // Malformed ranges were refused before.
        let Ok(range) = self.units_of(part) else { return Ok(()) };
        self.clear_residue(parting, returns).map_err(Broken::undone)?;
        let Some(space) = &self.state.space else { return Ok(()) };
        let unit = self.region.unit;
        let mut mapped: u64 = 0;
        let outcome = (|| {
            for (index, piece) in range.clone().zip(pieces.iter()) {
                space.map(index.saturating_mul(unit), &piece.handle)?;
                mapped = mapped.saturating_add(1);
            }
            space.set_access(part.offset, part.bytes, &grants(ordinals, Access::ReadWrite))?;
            let is_strange = |piece: &Piece| !piece.former.is_some_and(|former| self.region.holder.may_see(former));
            if pieces.iter().any(is_strange) { space.span(part.offset, part.bytes)?.fill(0) } else { Ok(()) }
        })();
        let Err(fault) = outcome else {
            self.state.contents.insert_private(range.start, pieces.drain(..).map(|piece| piece.handle));
            return Ok(());
        };
        let undo = if mapped == 0 { Ok(()) } else { space.unmap(part.offset, mapped.saturating_mul(unit)) };
        let Err(undo) = undo else { return Err(Broken::undone(fault)) };
        let stuck = pieces.drain(..usize::try_from(mapped).unwrap_or(0)).map(|piece| Some(piece.handle));
        self.state.contents.insert_residue(range.start, stuck);
        Err(Broken { fault, undo: Some(undo) })
    }

    /// Takes back what this very call committed. Where the driver refuses, it is residue.
    pub(crate) fn undo_commit(&mut self, part: &CommitRange, returns: &mut Returns) -> Result<(), Fault> {
        let Ok(range) = self.units_of(part) else { return Ok(()) };
        let outcome = self.state.unmap_run(self.region, &range, Parting::AfterUnmapping, returns);
        if outcome.is_err() {
            let handles = self.state.contents.remove(&range, self.region.holder);
            self.state.contents.insert_residue(range.start, handles.into_iter().map(|unit| Some(unit.handle)));
        }
        outcome
    }

    /// Unmaps a committed range, or changes nothing.
    pub(crate) fn decommit(
        &mut self,
        part: &CommitRange,
        parting: Parting,
        returns: &mut Returns,
    ) -> Result<(), Fault> {
        let Ok(range) = self.units_of(part) else { return Ok(()) };
        self.state.unmap_run(self.region, &range, parting, returns)
    }

    /// Maps a part of a prefix read-only into a free range.
    pub(crate) fn map_part(
        &mut self,
        mapping: &PrefixMapping,
        memory: &Arc<PrefixMemory>,
        ordinals: &[u32],
        returns: &mut Returns,
    ) -> Result<(), Broken> {
        let target = mapping.target();
        let Ok(range) = self.units_of(&target) else { return Ok(()) };
        self.clear_residue(Parting::AfterUnmapping, returns).map_err(Broken::undone)?;
        let Some(space) = &self.state.space else { return Ok(()) };
        let unit = self.region.unit;
        let source = source_of(mapping, unit);
        let first = usize::try_from(source.start).unwrap_or(usize::MAX);
        let mut mapped: u64 = 0;
        let outcome = (|| {
            for (index, handle) in range.clone().zip(memory.handles.iter().skip(first)) {
                space.map(index.saturating_mul(unit), handle)?;
                mapped = mapped.saturating_add(1);
            }
            space.set_access(target.offset, target.bytes, &grants(ordinals, Access::ReadOnly))
        })();
        let Err(fault) = outcome else {
            self.state.contents.insert_part(range.start, Part { memory: Arc::clone(memory), source });
            return Ok(());
        };
        let undo = if mapped == 0 { Ok(()) } else { space.unmap(target.offset, mapped.saturating_mul(unit)) };
        let Err(undo) = undo else { return Err(Broken::undone(fault)) };
        // It stays in the books as far as it is mapped.
        let end = source.start.saturating_add(mapped);
        self.state.contents.insert_part(range.start, Part { memory: Arc::clone(memory), source: source.start..end });
        self.state.contents.leave_prefixes(&range);
        Err(Broken { fault, undo: Some(undo) })
    }

    /// Refuses a mapping that isn't there just so.
    pub(crate) fn check_mapped(&self, mapping: &PrefixMapping) -> Result<(), BackingError> {
        let target = mapping.target();
        let range = self.units_of(&target)?;
        let wanted = source_of(mapping, self.region.unit);
        let is_there = |part: &Part| part.memory.id == mapping.source.prefix() && part.source == wanted;
        if self.state.contents.part(range.start).is_some_and(is_there) {
            return Ok(());
        }
        let why = format!("{} is not mapped there so; name each mapping as it was made", mapping.source.prefix());
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(&target))))
    }

    /// Unmaps a part of a prefix that is mapped, or changes nothing.
    pub(crate) fn unmap_part(&mut self, mapping: &PrefixMapping, returns: &mut Returns) -> Result<(), Fault> {
        let Ok(range) = self.units_of(&mapping.target()) else { return Ok(()) };
        self.state.unmap_run(self.region, &range, Parting::AfterUnmapping, returns)
    }

    /// What is mapped still of a prefix is in nobody's use from now on, since the call about it broke off.
    pub(crate) fn leave_part(&mut self, mapping: &PrefixMapping) {
        if let Ok(range) = self.units_of(&mapping.target()) {
            self.state.contents.leave_prefixes(&range);
        }
    }

    /// Takes the handles out that are committed in the whole region: they are shared from now on.
    pub(crate) fn share_handles(&mut self) -> Vec<PhysicalHandle> {
        let all = 0..u64::MAX;
        self.state.contents.handles_in(&all).filter_map(Option::take).collect()
    }
}

/// Who gets which access to what is mapped.
pub(crate) fn grants(ordinals: &[u32], access: Access) -> Vec<Grant> {
    ordinals.iter().map(|ordinal| Grant { ordinal: *ordinal, access }).collect()
}

/// The units of the prefix that a mapping shows.
fn source_of(mapping: &PrefixMapping, unit: u64) -> Range<u64> {
    let units = |bytes: u64| bytes.checked_div(unit).unwrap_or(0);
    let start = units(mapping.source.offset);
    start..start.saturating_add(units(mapping.source.bytes))
}
