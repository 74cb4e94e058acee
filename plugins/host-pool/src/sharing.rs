//! One call over parts of prefixes at places in many regions: all of it, or none.
//!
//! In: the mappings of the call. Out: what became visible, or is no longer. It charges nothing, so the regions stay
//! locked from the first check to the last mapping; shares in prefixes are given up after that.

use crate::commitment::broken_off;
use crate::pool::Pool;
use crate::prefix::LivePrefix;
use crate::prefix_memory::PrefixMemory;
use crate::region::{LiveRegion, OpenRegion};
use crate::supply::Returns;
use leasehold_plugin_api::toolkit::{CallParts, LockedParts, Stopped, Table};
use leasehold_plugin_api::{BackingError, Change, PrefixId, PrefixMapping, RegionId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Shares in the prefixes of one call.
type Shares = BTreeMap<PrefixId, Arc<PrefixMemory>>;

/// The places of one call, with every region of the call locked.
type Places<'p, 'r> = LockedParts<'p, OpenRegion<'r>, PrefixMapping>;

/// Finds a prefix that is live here.
pub(crate) fn find(prefixes: &Table<PrefixId, LivePrefix>, id: PrefixId) -> Result<Arc<LivePrefix>, BackingError> {
    prefixes.find(id).filter(|prefix| prefix.is_live()).ok_or_else(|| BackingError::unknown_id(id))
}

/// Maps every part at its place, or none; where undoing fails, the answer leaves doubt.
pub(crate) fn map(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    prefixes: &Table<PrefixId, LivePrefix>,
    mappings: &[PrefixMapping],
) -> Result<Change, BackingError> {
    let mut returns = Returns::default();
    let outcome = map_shared(pool, regions, prefixes, mappings, &mut returns);
    pool.settle(returns);
    outcome.map(|()| Change { mapped_bytes: PrefixMapping::total_bytes(mappings), owned_bytes: 0 })
}

fn map_shared(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    prefixes: &Table<PrefixId, LivePrefix>,
    mappings: &[PrefixMapping],
    returns: &mut Returns,
) -> Result<(), BackingError> {
    // Whatever else is wrong: a prefix that isn't ours is refused first.
    let sources = mappings.iter().map(|mapping| find(prefixes, mapping.source.prefix()));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut shares = Shares::new();
    for (mapping, prefix) in mappings.iter().zip(sources) {
        check_source(mapping, &prefix, pool.settings.granule)?;
        let id = mapping.source.prefix();
        let share = prefix.sealed_memory(id);
        returns.memories.extend(share.as_ref().ok().cloned());
        shares.insert(id, share?);
    }
    CallParts::new(mappings)?.with_locked(regions, |locked| {
        locked.check(|region, mapping| region.check_free(&mapping.target()))?;
        map_or_undo(locked, &shares, pool, returns)
    })
}

fn check_source(mapping: &PrefixMapping, prefix: &LivePrefix, granule: u64) -> Result<(), BackingError> {
    let source = &mapping.source;
    let refused = |why: String| {
        let (id, bytes, offset) = (source.prefix(), source.bytes, source.offset);
        BackingError::invalid(format!("{id}, {bytes} bytes at offset {offset}: {why}"))
    };
    if source.bytes == 0 || !source.bytes.is_multiple_of(granule) || !source.offset.is_multiple_of(granule) {
        return Err(refused(format!("not whole granules; wanted positive multiples of {granule} bytes")));
    }
    match source.end() {
        Some(end) if end <= prefix.bytes() => Ok(()),
        _ => Err(refused(format!("past the end; the prefix has {} bytes", prefix.bytes()))),
    }
}

fn map_or_undo(
    locked: &mut Places<'_, '_>,
    shares: &Shares,
    pool: &Pool,
    returns: &mut Returns,
) -> Result<(), BackingError> {
    let outcome = locked.try_each(|region, mapping| {
        let id = mapping.source.prefix();
        let share = shares.get(&id).ok_or_else(|| BackingError::unknown_id(id))?;
        region.map_part(mapping, share, pool, returns)
    });
    // What can't be unmapped stays in the books, and goes with its region.
    outcome.map_err(|stopped| undo(locked, stopped, |region, mapping| region.unmap_part(mapping, returns)))
}

/// Takes every mapping away, or none; where undoing fails, the answer leaves doubt.
pub(crate) fn unmap(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    mappings: &[PrefixMapping],
) -> Result<Change, BackingError> {
    let mut returns = Returns::default();
    let outcome = CallParts::new(mappings)?.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_mapped)?;
        unmap_or_undo(locked, pool, &mut returns)
    });
    let owned_bytes = pool.settle(returns);
    outcome.map(|()| Change { mapped_bytes: PrefixMapping::total_bytes(mappings), owned_bytes })
}

fn unmap_or_undo(locked: &mut Places<'_, '_>, pool: &Pool, returns: &mut Returns) -> Result<(), BackingError> {
    let mut gone = Returns::default();
    let outcome = locked.try_each(|region, mapping| region.unmap_part(mapping, &mut gone));
    let mut shares = gone.memories.iter();
    let outcome = outcome.map_err(|stopped| {
        undo(locked, stopped, |region, mapping| {
            let share = shares.next().ok_or_else(|| BackingError::unknown_id(mapping.source.prefix()))?;
            region.map_part(mapping, share, pool, returns)
        })
    });
    returns.memories.append(&mut gone.memories);
    outcome
}

/// Undoes the parts of a call that went well before one was refused: each that can be, whatever becomes of the others.
/// Answers the refusal, or one that leaves doubt.
fn undo(
    locked: &mut Places<'_, '_>,
    Stopped { done, error: refusal }: Stopped<BackingError>,
    mut act: impl FnMut(&mut OpenRegion<'_>, &PrefixMapping) -> Result<(), BackingError>,
) -> BackingError {
    let mut first = None;
    locked.each_of_first(done, |region, mapping| first = first.take().or(act(region, mapping).err()));
    match first {
        Some(again) => broken_off(&refusal, again),
        None => refusal,
    }
}
