//! One call over ranges of many regions: all of it, or none.
//!
//! ```text
//! lock ─ check ─ unlock ─► obtain frames (may call the host) ─► lock ─ check ─ map ─ unlock ─► keep, or return
//! ```
//!
//! Frames are obtained with no lock held, since a charge may come back into this pool; so everything is checked once
//! more before it is done. The regions of a call are locked in the order of their ids, so that two calls can't wait for
//! each other; every range is checked before the first system call. What is no longer mapped is settled after the last
//! lock.

use crate::pool::Pool;
use crate::region::{LiveRegion, OpenRegion};
use crate::supply::{Returns, Supply};
use leasehold_plugin_api::toolkit::{Table, request};
use leasehold_plugin_api::{BackingError, Change, CommitRange, ErrorKind, RegionId};
use std::ops::Range;

/// The parts of one call that lie in one region, by offset.
#[derive(Debug)]
pub(crate) struct Group<'a, T> {
    pub(crate) region: OpenRegion<'a>,
    pub(crate) parts: &'a [T],
}

/// Says what committing the ranges would change, as the pool is now.
pub(crate) fn cost(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    ranges: &[CommitRange],
) -> Result<Change, BackingError> {
    let parts = request::in_order(ranges, |part| *part)?;
    with_groups(regions, &parts, CommitRange::region, check_free)?;
    let mapped_bytes = bytes_of(&parts);
    Ok(Change { mapped_bytes, owned_bytes: mapped_bytes.saturating_sub(pool.parked_bytes()) })
}

/// Commits every range, or none.
pub(crate) fn commit(
    pool: &Pool,
    regions: &Table<RegionId, LiveRegion>,
    ranges: &[CommitRange],
) -> Result<Change, BackingError> {
    let parts = request::in_order(ranges, |part| *part)?;
    let needs = with_groups(regions, &parts, CommitRange::region, |groups| {
        check_free(groups)?;
        let needs = groups.iter().flat_map(|group| group.parts.iter().map(|part| group.region.need(part)));
        needs.collect::<Result<Vec<_>, _>>()
    })?;
    let mut supply = pool.obtain(&needs)?;
    let mut returns = Returns::default();
    let outcome = with_groups(regions, &parts, CommitRange::region, |groups| {
        check_free(groups)?;
        commit_or_undo(groups, &mut supply, pool, &mut returns)
    });
    let outcome = outcome.map(|()| Change { mapped_bytes: bytes_of(&parts), owned_bytes: supply.keep() });
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
    let parts = request::in_order(ranges, |part| *part)?;
    let mut returns = Returns::default();
    let outcome = with_groups(regions, &parts, CommitRange::region, |groups| {
        check(groups, OpenRegion::check_private)?;
        for group in groups.iter_mut() {
            for part in group.parts.iter().rev() {
                group.region.decommit(part, pool, &mut returns)?;
            }
        }
        Ok(())
    });
    let owned_bytes = pool.settle(returns);
    outcome.map(|()| Change { mapped_bytes: bytes_of(&parts), owned_bytes })
}

fn commit_or_undo(
    groups: &mut [Group<'_, CommitRange>],
    supply: &mut Supply<'_>,
    pool: &Pool,
    returns: &mut Returns,
) -> Result<(), BackingError> {
    let mut done = Vec::new();
    let outcome = commit_each(groups, supply, pool, returns, &mut done);
    if outcome.is_err() {
        let mut committed = done.iter().zip(&mut supply.parts);
        for group in groups {
            for (_, (range, pieces)) in group.parts.iter().zip(&mut committed) {
                group.region.undo_commit(range, pieces, pool, returns);
            }
        }
    }
    outcome
}

fn commit_each(
    groups: &mut [Group<'_, CommitRange>],
    supply: &mut Supply<'_>,
    pool: &Pool,
    returns: &mut Returns,
    done: &mut Vec<Range<u64>>,
) -> Result<(), BackingError> {
    let mut supplied = supply.parts.iter_mut();
    for group in groups {
        for part in group.parts {
            let pieces = supplied.next().ok_or_else(|| unsupplied(part))?;
            done.push(group.region.commit(part, pieces, pool, returns)?);
        }
    }
    Ok(())
}

fn unsupplied(part: &CommitRange) -> BackingError {
    BackingError::new(
        ErrorKind::Internal,
        format!("{}: no frames were obtained for it; report it", request::name(part)),
    )
}

fn check_free(groups: &mut [Group<'_, CommitRange>]) -> Result<(), BackingError> {
    check(groups, OpenRegion::check_free)
}

/// Checks every part before anything is done.
pub(crate) fn check<'a, T>(
    groups: &[Group<'a, T>],
    rule: impl Fn(&OpenRegion<'a>, &T) -> Result<(), BackingError>,
) -> Result<(), BackingError> {
    groups.iter().try_for_each(|group| group.parts.iter().try_for_each(|part| rule(&group.region, part)))
}

fn bytes_of(parts: &[CommitRange]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
}

/// Locks every region of the call, then acts. The parts are in order.
pub(crate) fn with_groups<T, R>(
    regions: &Table<RegionId, LiveRegion>,
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
        let region = region.open().ok_or_else(|| unknown(parts))?;
        Ok(Group { region, parts })
    });
    let mut groups = groups.collect::<Result<Vec<_>, BackingError>>()?;
    act(&mut groups)
}
