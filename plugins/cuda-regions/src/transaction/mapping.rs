//! Prefixes that are mapped and unmapped.

use super::{LockedParts, with_locked};
use crate::broken::Broken;
use crate::contents::PrefixMemory;
use crate::region::{OpenRegion, Returns};
use crate::regions::DeviceRegions;
use leasehold_cuda_driver::PhysicalHandle;
use leasehold_plugin_api::toolkit::request;
use leasehold_plugin_api::{BackingError, Change, PrefixMapping};
use std::sync::Arc;

impl DeviceRegions {
    /// Maps every part at its place, read-only, or none.
    pub(crate) fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let parts = request::in_order(mappings, PrefixMapping::target)?;
        let memories = parts.iter().map(|part| self.sealed_memory(part.source.prefix()));
        let memories = memories.collect::<Result<Vec<_>, _>>()?;
        for (part, memory) in parts.iter().zip(&memories) {
            self.check_source(part, memory)?;
        }
        let mut returns = Returns::default();
        let outcome = with_locked(self.table(), &parts, PrefixMapping::region, |locked| {
            locked.check(|region, part| region.check_free(&part.target()))?;
            self.map_or_undo(locked, &memories, &mut returns)
        });
        // The caller's own holds: were they the last, the memory would go with them.
        returns.memories.extend(memories);
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: mapped(&parts), owned_bytes: 0 })
    }

    fn map_or_undo(
        &self,
        locked: &mut LockedParts<'_, PrefixMapping>,
        memories: &[Arc<PrefixMemory<PhysicalHandle>>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let what = format!("{} bytes of prefixes not mapped", mapped_in(locked));
        let _bound = self.device().bind().map_err(|fault| Broken::undone(fault).into_error(&what))?;
        let (done, outcome) = locked.zip_each(memories, |region, part, memory| region.map_part(part, memory, returns));
        let Err(mut broken) = outcome else { return Ok(()) };
        let _ = locked.zip_each(0..done, |region, part, _| {
            if let Err(fault) = region.unmap_part(part, returns) {
                region.leave_part(part);
                broken.undo = broken.undo.or(Some(fault));
            }
            Ok::<_, Broken>(())
        });
        Err(broken.into_error(&what))
    }

    /// Takes mappings away, each as it was made. Where the driver refuses half-way, what was unmapped is mapped again.
    pub(crate) fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let parts = request::in_order(mappings, PrefixMapping::target)?;
        let mut returns = Returns::default();
        let outcome = with_locked(self.table(), &parts, PrefixMapping::region, |locked| {
            locked.check(OpenRegion::check_mapped)?;
            self.unmap_or_undo(locked, &mut returns)
        });
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: mapped(&parts), owned_bytes: 0 })
    }

    fn unmap_or_undo(
        &self,
        locked: &mut LockedParts<'_, PrefixMapping>,
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let what = format!("{} bytes of prefixes not unmapped", mapped_in(locked));
        let _bound = self.device().bind().map_err(|fault| Broken::undone(fault).into_error(&what))?;
        let mut taken = Returns::default();
        let (_, outcome) =
            locked.zip_each(std::iter::repeat(()), |region, part, ()| region.unmap_part(part, &mut taken));
        let Err(fault) = outcome else {
            returns.memories.append(&mut taken.memories);
            return Ok(());
        };
        let mut broken = Broken::undone(fault);
        let _ = locked.zip_each(&taken.memories, |region, part, memory| {
            if let Err(undo) = region.map_part(part, memory, returns) {
                broken.undo = broken.undo.or(Some(undo.fault));
            }
            Ok::<_, Broken>(())
        });
        returns.memories.append(&mut taken.memories);
        if broken.undo.is_some() {
            // Nobody reads there any more.
            let _ = locked.zip_each(std::iter::repeat(()), |region, part, ()| {
                region.leave_part(part);
                Ok::<_, Broken>(())
            });
        }
        Err(broken.into_error(&what))
    }

    /// Refuses a part that is malformed or leaves its prefix.
    fn check_source(&self, mapping: &PrefixMapping, memory: &PrefixMemory<PhysicalHandle>) -> Result<(), BackingError> {
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

fn mapped_in(locked: &LockedParts<'_, PrefixMapping>) -> u64 {
    locked.iter().fold(0, |sum, (_, part)| sum.saturating_add(part.source.bytes))
}

fn mapped(parts: &[PrefixMapping]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.source.bytes))
}
