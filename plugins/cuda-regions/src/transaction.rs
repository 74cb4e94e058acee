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
use leasehold_plugin_api::toolkit::Table;
use leasehold_plugin_api::{BackingError, RegionId};

/// The parts of one call, by region and offset, with every region locked.
pub(crate) struct LockedParts<'a, T>(Vec<Group<'a, T>>);

/// Those that lie in one region.
struct Group<'a, T> {
    region: OpenRegion<'a>,
    parts: &'a [T],
}

impl<'a, T> LockedParts<'a, T> {
    /// Parts that are all of one region.
    pub(crate) fn of_one(region: OpenRegion<'a>, parts: &'a [T]) -> Self {
        Self(vec![Group { region, parts }])
    }

    fn iter(&self) -> impl Iterator<Item = (&OpenRegion<'a>, &T)> {
        self.0.iter().flat_map(|group| group.parts.iter().map(|part| (&group.region, part)))
    }

    fn regions(&mut self) -> impl Iterator<Item = &mut OpenRegion<'a>> {
        self.0.iter_mut().map(|group| &mut group.region)
    }

    fn check(&self, rule: impl Fn(&OpenRegion<'a>, &T) -> Result<(), BackingError>) -> Result<(), BackingError> {
        self.iter().try_for_each(|(region, part)| rule(region, part))
    }

    /// Acts on the parts in order, each with its item, until the items end or one fails. Answers how many went well, and
    /// how it ended.
    fn zip_each<I, E>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        mut act: impl FnMut(&mut OpenRegion<'a>, &T, I) -> Result<(), E>,
    ) -> (usize, Result<(), E>) {
        let (mut items, mut done) = (items.into_iter(), 0_usize);
        for Group { region, parts } in &mut self.0 {
            for (part, item) in parts.iter().zip(&mut items) {
                if let Err(error) = act(region, part, item) {
                    return (done, Err(error));
                }
                done = done.saturating_add(1);
            }
        }
        (done, Ok(()))
    }
}

/// Locks every region of the call, then acts. The parts are in order.
fn with_locked<T, R>(
    regions: &Table<RegionId, Region>,
    parts: &[T],
    region_of: impl Fn(&T) -> RegionId,
    act: impl FnOnce(&mut LockedParts<'_, T>) -> Result<R, BackingError>,
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
    act(&mut LockedParts(groups.collect::<Result<Vec<_>, BackingError>>()?))
}
