//! What a region does with parts of prefixes: check, map, undo, unmap.
//!
//! A part is mapped through a descriptor that can only read. Its share in the prefix goes with it: the region keeps the
//! physical memory alive until the part is unmapped, whatever became of the prefix's handle.

use crate::commitment::{SCARCE_MAPS, broken_off};
use crate::extents::PrefixPart;
use crate::pool::Pool;
use crate::prefix_memory::PrefixMemory;
use crate::region::OpenRegion;
use crate::supply::Returns;
use crate::window::Treatment;
use leasehold_host_memory::Fault;
use leasehold_plugin_api::toolkit::request::name;
use leasehold_plugin_api::{BackingError, ErrorKind, PrefixMapping};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::Arc;

impl OpenRegion<'_> {
    /// Maps a part of a prefix at a free place, or changes nothing. Where that can't be undone, the answer leaves
    /// doubt.
    pub(crate) fn map_part(
        &mut self,
        mapping: &PrefixMapping,
        memory: &Arc<PrefixMemory>,
        pool: &Pool,
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let range = self.granules_of(&mapping.target())?;
        let residue = self.state.extents.remove_residue(&range);
        let granules = self.source_of(mapping);
        if let Err(refusal) = self.book_part(range.start, PrefixPart { memory: memory.clone(), granules }, returns) {
            residue.into_iter().for_each(|(start, run)| self.state.extents.insert_residue(start, run));
            return Err(refusal);
        }
        let Err(fault) = self.place_part(range.start, pool) else {
            returns.add_residue(residue);
            return Ok(());
        };
        let refusal = fault.into_error(ErrorKind::AddressSpaceExhausted, name(&mapping.target()), SCARCE_MAPS);
        match self.unmap_part(mapping, returns) {
            Ok(()) => {
                returns.add_residue(residue);
                Err(refusal)
            }
            // The part stays in the books, and goes with its region: its place can't be given out, nor the residue.
            Err(again) => Err(broken_off(&refusal, again)),
        }
    }

    /// Enters a part in the books, unless it needs more mappings than there are.
    fn book_part(&mut self, start: u64, part: PrefixPart, returns: &mut Returns) -> Result<(), BackingError> {
        let state = &mut *self.state;
        state.extents.insert_prefix(start, part);
        let granted = state.share.resize_within_limit(state.extents.mappings());
        if granted.is_err() {
            returns.memories.extend(state.extents.remove_prefix(start).map(|part| part.memory));
        }
        granted
    }

    fn place_part(&self, start: u64, pool: &Pool) -> Result<(), Fault> {
        let window = self.window()?;
        let part = self.state.extents.prefix(start).ok_or(Fault::new("a part outside the books", Errno::INVAL))?;
        for (distance, run) in part.memory.part(&part.granules) {
            let offset = self.region.at(start.saturating_add(distance));
            pool.map(window, offset, run, Treatment::ReadOnly)?;
        }
        Ok(())
    }

    /// The granules of the prefix that a mapping shows.
    fn source_of(&self, mapping: &PrefixMapping) -> Range<u64> {
        let first = self.region.granules_in(mapping.source.offset);
        first..first.saturating_add(self.region.granules_in(mapping.source.bytes))
    }

    /// Refuses a mapping that isn't there just so.
    pub(crate) fn check_mapped(&self, mapping: &PrefixMapping) -> Result<(), BackingError> {
        let target = self.granules_of(&mapping.target())?;
        let wanted = self.source_of(mapping);
        let is_there = |part: &PrefixPart| part.memory.id == mapping.source.prefix() && part.granules == wanted;
        if self.region.is_whole(mapping.source.offset) && self.state.extents.prefix(target.start).is_some_and(is_there)
        {
            return Ok(());
        }
        let why = format!("{} is not mapped there so; name each mapping as it was made", mapping.source.prefix());
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(&mapping.target()))))
    }

    /// Takes a mapping away that is there, or changes nothing. Its share in the prefix is the last of the returns.
    pub(crate) fn unmap_part(&mut self, mapping: &PrefixMapping, returns: &mut Returns) -> Result<(), BackingError> {
        let gone = self.window().and_then(|window| window.withdraw(mapping.offset, mapping.source.bytes));
        gone.map_err(|fault| {
            let what = format!("{}: stays mapped", name(&mapping.target()));
            fault.into_error(ErrorKind::AddressSpaceExhausted, what, SCARCE_MAPS)
        })?;
        let part = self.state.extents.remove_prefix(self.region.granules_in(mapping.offset));
        returns.memories.extend(part.map(|part| part.memory));
        self.resize_share();
        Ok(())
    }
}
