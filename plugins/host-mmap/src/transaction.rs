//! One call over ranges of many regions: all of it, or none.
//!
//! In: the ranges of the call and the table of regions. Out: what changed, exactly. Every region of the call is locked
//! before the first range is checked, in the order of their ids, so that two calls can't wait for each other; every
//! range is checked before the first system call. A call of one range allocates nothing.

use crate::region::{OpenRegion, Region};
use leasehold_plugin_api::toolkit::{Table, request};
use leasehold_plugin_api::{BackingError, Change, CommitRange, RegionId};
use std::sync::Arc;

/// The ranges of one call that lie in one region, by offset.
#[derive(Debug)]
struct Group<'a> {
    region: OpenRegion<'a>,
    parts: &'a [CommitRange],
}

/// Says what committing the ranges would change.
pub(crate) fn cost(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    with_groups(regions, ranges, |groups| {
        check(groups, |region, part| region.check_free(part))?;
        Ok(change(groups))
    })
}

/// Commits every range, or none.
pub(crate) fn commit(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    with_groups(regions, ranges, |groups| {
        check(groups, |region, part| region.check_free(part))?;
        let mut done = 0;
        let outcome = commit_each(groups, &mut done);
        if outcome.is_err() {
            undo_commit(groups, done);
        }
        outcome.map(|()| change(groups))
    })
}

/// Decommits every range. Should the kernel refuse half-way, what is left of each region is the part before the range
/// that it refused, because the last range of each goes first.
pub(crate) fn decommit(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    with_groups(regions, ranges, |groups| {
        check(groups, |region, part| region.check_committed(part))?;
        for group in groups.iter_mut() {
            for part in group.parts.iter().rev() {
                group.region.decommit(part)?;
            }
        }
        Ok(change(groups))
    })
}

fn commit_each(groups: &mut [Group<'_>], done: &mut usize) -> Result<(), BackingError> {
    for group in groups {
        for part in group.parts {
            group.region.commit(part)?;
            *done = done.saturating_add(1);
        }
    }
    Ok(())
}

/// Takes the first `done` ranges back.
fn undo_commit(groups: &mut [Group<'_>], done: usize) {
    let mut left = done;
    for group in groups {
        for part in group.parts.iter().take(left) {
            group.region.undo_commit(part);
        }
        left = left.saturating_sub(group.parts.len());
    }
}

fn check(
    groups: &[Group<'_>],
    rule: impl Fn(&OpenRegion<'_>, &CommitRange) -> Result<(), BackingError>,
) -> Result<(), BackingError> {
    groups.iter().try_for_each(|group| group.parts.iter().try_for_each(|part| rule(&group.region, part)))
}

/// For memory of the host, what is mapped is what is owned.
fn change(groups: &[Group<'_>]) -> Change {
    let parts = groups.iter().flat_map(|group| group.parts);
    let bytes = parts.fold(0_u64, |sum, part| sum.saturating_add(part.bytes));
    Change { mapped_bytes: bytes, owned_bytes: bytes }
}

/// Locks every region of the call, then acts.
fn with_groups(
    regions: &Table<RegionId, Region>,
    ranges: &[CommitRange],
    act: impl FnOnce(&mut [Group<'_>]) -> Result<Change, BackingError>,
) -> Result<Change, BackingError> {
    if let [part] = ranges {
        let region = find(regions, part.region())?;
        let region = open(&region, part.region())?;
        return act(&mut [Group { region, parts: ranges }]);
    }
    let parts = request::in_order(ranges, |part| *part)?;
    let found = || parts.chunk_by(|left, right| left.region() == right.region());
    let regions = found().map(|parts| find(regions, id_of(parts))).collect::<Result<Vec<_>, _>>()?;
    let groups = found().zip(&regions).map(|(parts, region)| Ok(Group { region: open(region, id_of(parts))?, parts }));
    act(&mut groups.collect::<Result<Vec<_>, _>>()?)
}

fn id_of(parts: &[CommitRange]) -> RegionId {
    parts.first().map_or(RegionId::new(0), CommitRange::region)
}

fn find(regions: &Table<RegionId, Region>, id: RegionId) -> Result<Arc<Region>, BackingError> {
    regions.find(id).ok_or_else(|| BackingError::unknown_id(id))
}

fn open(region: &Region, id: RegionId) -> Result<OpenRegion<'_>, BackingError> {
    region.open().ok_or_else(|| BackingError::unknown_id(id))
}
