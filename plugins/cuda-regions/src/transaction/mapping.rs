//! Prefixes that are mapped and unmapped.

use crate::broken::Broken;
use crate::contents::PrefixMemory;
use crate::region::{OpenRegion, Returns};
use crate::regions::DeviceRegions;
use leasehold_cuda_driver::PhysicalHandle;
use leasehold_plugin_api::toolkit::{CallParts, LockedParts, Stopped};
use leasehold_plugin_api::{BackingError, Change, PrefixMapping};
use std::sync::Arc;

/// The places of one call, with every region of the call locked.
type Places<'p, 'r> = LockedParts<'p, OpenRegion<'r>, PrefixMapping>;

impl DeviceRegions {
    /// Maps every part at its place, read-only, or none.
    pub(crate) fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let parts = CallParts::new(mappings)?;
        let (mut memories, mut returns) = (Vec::new(), Returns::default());
        let outcome = self.map_sources(&parts, &mut memories, &mut returns);
        // Settle our references too, whatever came: they are the last where a prefix was released meanwhile.
        returns.memories.append(&mut memories);
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: PrefixMapping::total_bytes(mappings), owned_bytes: 0 })
    }

    /// Holds the memory of every part in `memories`, then maps.
    fn map_sources(
        &self,
        parts: &CallParts<'_, PrefixMapping>,
        memories: &mut Vec<Arc<PrefixMemory<PhysicalHandle>>>,
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        for part in parts.iter() {
            memories.push(self.sealed_memory(part.source.prefix())?);
        }
        for (part, memory) in parts.iter().zip(&*memories) {
            self.check_source(part, memory)?;
        }
        parts.with_locked(self.table(), |locked| {
            locked.check(|region, part| region.check_free(&part.target()))?;
            self.map_or_undo(locked, memories, returns)
        })
    }

    fn map_or_undo(
        &self,
        locked: &mut Places<'_, '_>,
        memories: &[Arc<PrefixMemory<PhysicalHandle>>],
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let what = format!("{} bytes of prefixes not mapped", locked.total_bytes());
        let _bound = self.device().bind().map_err(|fault| Broken::undone(fault).into_error(&what))?;
        let outcome = locked.try_each_with(memories, |region, part, memory| region.map_part(part, memory, returns));
        let Err(Stopped { done, error: mut broken }) = outcome else { return Ok(()) };
        locked.each_of_first(done, |region, part| {
            if let Err(fault) = region.undo_map(part, returns) {
                broken.undo = broken.undo.or(Some(fault));
            }
        });
        Err(broken.into_error(&what))
    }

    /// Takes mappings away, each as it was made. Where the driver refuses half-way, what was unmapped is mapped again.
    pub(crate) fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        let mut returns = Returns::default();
        let outcome = CallParts::new(mappings)?.with_locked(self.table(), |locked| {
            locked.check(OpenRegion::check_mapped)?;
            self.unmap_or_undo(locked, &mut returns)
        });
        self.settle(returns);
        outcome.map(|()| Change { mapped_bytes: PrefixMapping::total_bytes(mappings), owned_bytes: 0 })
    }

    fn unmap_or_undo(&self, locked: &mut Places<'_, '_>, returns: &mut Returns) -> Result<(), BackingError> {
        let what = format!("{} bytes of prefixes not unmapped", locked.total_bytes());
        let _bound = self.device().bind().map_err(|fault| Broken::undone(fault).into_error(&what))?;
        let mut taken = Returns::default();
        let outcome = locked.try_each(|region, part| {
            // What is mapped again is the parts before the one that fails.
            let mut of_part = Returns::default();
            let outcome = region.unmap_part(part, &mut of_part);
            if outcome.is_ok() {
                taken.append(of_part)
            } else {
                returns.append(of_part)
            }
            outcome
        });
        let Err(Stopped { error: mut broken, .. }) = outcome else {
            returns.append(taken);
            return Ok(());
        };
        locked.each_with(&taken.memories, |region, part, memory| {
            if let Err(undo) = region.map_part(part, memory, returns) {
                broken.undo = broken.undo.or(Some(undo.fault));
            }
        });
        returns.append(taken);
        if broken.undo.is_some() {
            // The call is in doubt, so nobody reads there any more.
            locked.each_of_first(locked.count(), OpenRegion::leave_part);
        }
        Err(broken.into_error(&what))
    }

    /// Refuses a part that is malformed or leaves its prefix.
    fn check_source(&self, mapping: &PrefixMapping, memory: &PrefixMemory<PhysicalHandle>) -> Result<(), BackingError> {
        let granule = self.granule();
        let bytes = granule.saturating_mul(u64::try_from(memory.handles.len()).unwrap_or(u64::MAX));
        let source = mapping.source;
        let is_whole =
            source.offset.is_multiple_of(granule) && source.bytes.is_multiple_of(granule) && source.bytes > 0;
        if is_whole && source.end().is_some_and(|end| end <= bytes) {
            return Ok(());
        }
        let (id, offset, asked) = (source.prefix(), source.offset, source.bytes);
        let why =
            format!("{asked} bytes at offset {offset} are no part of its {bytes}; ask for whole granules of {granule}");
        Err(BackingError::invalid(format!("{id}: {why}")))
    }
}
