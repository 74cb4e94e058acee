//! One call over ranges of many regions: all of it, or none.
//!
//! In: the ranges of the call and the table of regions. Out: what changed, exactly. All regions of the call are locked
//! together ([`CallParts`]), and every range is checked before the first system call. A call of one range allocates
//! nothing.

use crate::region::{OpenRegion, Region};
use leasehold_plugin_api::toolkit::{CallParts, Stopped, Table};
use leasehold_plugin_api::{BackingError, Change, CommitRange, RegionId};

/// Says what committing the ranges would change.
pub(crate) fn cost(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    CallParts::new(ranges)?.with_locked(regions, |locked| locked.check(OpenRegion::check_free))?;
    Ok(change(ranges))
}

/// Commits every range, or none.
pub(crate) fn commit(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    CallParts::new(ranges)?.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_free)?;
        locked.try_each(OpenRegion::commit).map_err(|Stopped { done, error }| {
            locked.each_of_first(done, OpenRegion::undo_commit);
            error
        })
    })?;
    Ok(change(ranges))
}

/// Decommits every range. Should the kernel refuse half-way, what is left of each region is the part before the range
/// that it refused, because the last range of each goes first.
pub(crate) fn decommit(regions: &Table<RegionId, Region>, ranges: &[CommitRange]) -> Result<Change, BackingError> {
    CallParts::new(ranges)?.with_locked(regions, |locked| {
        locked.check(OpenRegion::check_committed)?;
        locked.try_each_backwards(OpenRegion::decommit)
    })?;
    Ok(change(ranges))
}

/// For memory of the host, what is mapped is what is owned.
fn change(ranges: &[CommitRange]) -> Change {
    let bytes = CommitRange::total_bytes(ranges);
    Change { mapped_bytes: bytes, owned_bytes: bytes }
}
