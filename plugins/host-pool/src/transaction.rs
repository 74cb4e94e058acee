//! One call over ranges of many regions: all of it, or none.
//!
//! ```text
//! lock ─ check ─ unlock ─► obtain frames (may call the host) ─► lock ─ check ─ map ─ unlock ─► keep, or return
//! ```
//!
//! Frames are obtained with no lock held, since a charge may come back into this pool; so everything is checked once
//! more before it is done. All regions of the call are locked together ([`CallParts`]), and every range is checked
//! before the first system call. What is no longer mapped is settled after the last lock.

use crate::pool::Pool;
use crate::region::{LiveRegion, OpenRegion};
use crate::supply::{Returns, Supply};
use leasehold_plugin_api::toolkit::{CallParts, LockedParts, Stopped, Table, request};
use leasehold_plugin_api::{BackingError, Change, CommitRange, ErrorKind, RegionId};

/// Says what committing the ranges would change, as the pool is now.
pub(crate) fn cost(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    ranges: &[CommitRange],
) -> Result<Change, BackingError> {
    CallParts::new(ranges)?.with_locked(regions, |locked| locked.check(OpenRegion::check_free))?;
    let mapped_bytes = CommitRange::total_bytes(ranges);
    Ok(Change { mapped_bytes, owned_bytes: mapped_bytes.saturating_sub(pool.parked_bytes()) })
}

/// Commits every range, or none.
pub(crate) fn commit(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    ranges: &[CommitRange],
) -> Result<Change, BackingError> {
    let parts = CallParts::new(ranges)?;
    let needs = parts.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_free)?;
        locked.iter().map(|(region, part)| region.need(part)).collect::<Result<Vec<_>, _>>()
    })?;
    let mut supply = pool.obtain(&needs)?;
    let mut returns = Returns::default();
    let outcome = parts.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_free)?;
        commit_or_undo(locked, &mut supply, pool, &mut returns)
    });
    let mapped_bytes = CommitRange::total_bytes(ranges);
    let outcome = outcome.map(|()| Change { mapped_bytes, owned_bytes: supply.keep() });
    pool.settle(returns);
    outcome
}

/// Decommits every range. Should the kernel refuse half-way, what is left of each region is the part before the range
/// that it refused, because the last range of each goes first.
pub(crate) fn decommit(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    ranges: &[CommitRange],
) -> Result<Change, BackingError> {
    let mut returns = Returns::default();
    let outcome = CallParts::new(ranges)?.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_private)?;
        locked.try_each_backwards(|region, part| region.decommit(part, pool, &mut returns))
    });
    let owned_bytes = pool.settle(returns);
    outcome.map(|()| Change { mapped_bytes: CommitRange::total_bytes(ranges), owned_bytes })
}

fn commit_or_undo(
    locked: &mut LockedParts<'_, OpenRegion<'_>, CommitRange>,
    supply: &mut Supply<'_>,
    pool: &Pool,
    returns: &mut Returns,
) -> Result<(), BackingError> {
    let mut supplied = supply.parts.iter_mut();
    let mut committed = Vec::new();
    let outcome = locked.try_each(|region, part| {
        let pieces = supplied.next().ok_or_else(|| unsupplied(part))?;
        committed.push(region.commit(part, pieces, pool, returns)?);
        Ok(())
    });
    outcome.map_err(|Stopped { error, .. }| {
        locked.each_with(committed.iter().zip(&mut supply.parts), |region, _, (range, pieces)| {
            region.undo_commit(range, pieces, pool, returns);
        });
        error
    })
}

fn unsupplied(part: &CommitRange) -> BackingError {
    BackingError::new(
        ErrorKind::Internal,
        format!("{}: no frames were obtained for it; report it", request::name(part)),
    )
}
