//! One call over parts of many regions: all of it, or none.
//!
//! ```text
//! lock ─ check ─ unlock ─► obtain handles (may call the host) ─► lock ─ check ─ map ─ unlock ─► take back, or restore
//! ```
//!
//! Handles are obtained with no lock held, so everything is checked once more before it is done. The regions of a call are
//! locked in the order of their ids, so that two calls can't wait for each other.

mod commit;
mod mapping;

use crate::region::{OpenRegion, Region};
use crate::source::Need;
use leasehold_plugin_api::toolkit::Table;
use leasehold_plugin_api::{BackingError, RegionId};

const SCARCE: &str = "free memory of the device, or lower the budget of its domain";

/// The parts of one call that lie in one region, by offset.
pub(crate) struct Group<'a, T> {
    pub(crate) region: OpenRegion<'a>,
    pub(crate) parts: &'a [T],
    pub(crate) need: Need,
}

fn check<'a, T>(
    groups: &[Group<'a, T>],
    rule: impl Fn(&OpenRegion<'a>, &T) -> Result<(), BackingError>,
) -> Result<(), BackingError> {
    groups.iter().try_for_each(|group| group.parts.iter().try_for_each(|part| rule(&group.region, part)))
}

/// Locks every region of the call, then acts. The parts are in order.
fn with_groups<T, R>(
    regions: &Table<RegionId, Region>,
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
        let need = Need { units: 0, holder: region.holder(), role: region.role() };
        let region = region.open().ok_or_else(|| unknown(parts))?;
        Ok(Group { region, parts, need })
    });
    let mut groups = groups.collect::<Result<Vec<_>, BackingError>>()?;
    act(&mut groups)
}
