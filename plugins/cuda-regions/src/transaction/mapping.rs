//! Prefixes that are mapped and unmapped.

use super::{Group, SCARCE, check, with_groups};
use crate::broken::Broken;
use crate::contents::PrefixMemory;
use crate::memory::DeviceMemory;
use crate::region::{OpenRegion, Returns};
use leasehold_plugin_api::toolkit::request;
use leasehold_plugin_api::{BackingError, Change, PrefixId, PrefixMapping};
use std::sync::Arc;

impl DeviceMemory {
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

fn mapped(parts: &[PrefixMapping]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.source.bytes))
}
