//! One call over parts of many regions: locks every region of the call, then acts on the parts in their order.
//!
//! ```text
//! items ─► CallParts ─► with_locked ─► LockedParts ─► check, then act; undo the first n where one fails
//!          in order     finds and locks
//! ```
//!
//! In: the items of a call and the table of live regions. Out: whatever the action answers. What is done to a region is
//! the business of the backing.
//!
//! **Freedom from deadlock.** Calls lock their regions in the order of the regions' ids, so no two can wait for each
//! other. Only [`CallParts`] can be locked, and it is in that order however the caller named the parts. An action must
//! lock no other region, and must not call the host, which may call back into the same backing.
//!
//! A call of one part allocates nothing. Nothing panics.

use super::{Table, request};
use crate::{BackingError, CommitRange, PrefixMapping, RegionId};
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::iter;
use std::ops::Deref;

/// What a call says of one region: a range, or something that goes into one.
pub trait Part {
    /// The range of the region that it is about.
    fn range(&self) -> CommitRange;
}

impl Part for CommitRange {
    fn range(&self) -> CommitRange {
        *self
    }
}

impl Part for PrefixMapping {
    fn range(&self) -> CommitRange {
        self.target()
    }
}

/// A region that is locked while a call acts on it.
pub trait Lockable: 'static {
    /// The region under its lock. Dropping it unlocks the region.
    type Open<'a>;

    /// Locks it; `None` once its release has begun. It may wait for another call, and for nothing else.
    fn open(&self) -> Option<Self::Open<'_>>;
}

/// The parts of one call, by region and offset. No two overlap.
#[derive(Debug)]
pub struct CallParts<'a, T: Clone>(Cow<'a, [T]>);

impl<'a, T: Part + Copy> CallParts<'a, T> {
    /// Puts the items of a call in order.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) where two overlap.
    pub fn new(items: &'a [T]) -> Result<Self, BackingError> {
        if items.len() < 2 {
            return Ok(Self(Cow::Borrowed(items)));
        }
        request::in_order(items, T::range).map(|parts| Self(Cow::Owned(parts)))
    }

    /// Locks every region of the call, then acts.
    ///
    /// # Errors
    ///
    /// [`UnknownId`](crate::ErrorKind::UnknownId) where a region is not live or its release has begun; then nothing was
    /// acted on. Else what the action answers.
    pub fn with_locked<R: Lockable, A>(
        &self,
        regions: &Table<RegionId, R>,
        act: impl FnOnce(&mut LockedParts<'_, R::Open<'_>, T>) -> Result<A, BackingError>,
    ) -> Result<A, BackingError> {
        let found = |id| regions.find(id).ok_or_else(|| BackingError::unknown_id(id));
        if let [part] = &**self {
            let id = part.range().region();
            let region = found(id)?;
            return act(&mut LockedParts { one: Some(Group::open(id, &*region, self)?), many: Vec::new() });
        }
        let found = self.by_region().map(|(id, parts)| Ok((id, found(id)?, parts))).collect::<Result<Vec<_>, _>>()?;
        let many = found.iter().map(|(id, region, parts)| Group::open(*id, &**region, parts));
        let many = many.collect::<Result<Vec<_>, _>>()?;
        act(&mut LockedParts { one: None, many })
    }

    /// The parts of each region, in the order of the regions' ids.
    fn by_region(&self) -> impl Iterator<Item = (RegionId, &[T])> {
        let id = |part: &T| part.range().region();
        let groups = self.0.chunk_by(move |left, right| id(left) == id(right));
        groups.filter_map(move |parts| Some((id(parts.first()?), parts)))
    }
}

impl<T: Clone> Deref for CallParts<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The parts of one call with every region of the call locked.
pub struct LockedParts<'a, L, T> {
    /// The one group of a call of one part, which needs no vector.
    one: Option<Group<'a, L, T>>,
    many: Vec<Group<'a, L, T>>,
}

/// A locked region, and the parts of the call that lie in it.
struct Group<'a, L, T> {
    region: L,
    parts: &'a [T],
}

impl<'a, L, T> Group<'a, L, T> {
    fn open<R: Lockable<Open<'a> = L>>(id: RegionId, region: &'a R, parts: &'a [T]) -> Result<Self, BackingError> {
        let region = region.open().ok_or_else(|| BackingError::unknown_id(id))?;
        Ok(Self { region, parts })
    }
}

/// How far an action came before a part failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped<E> {
    /// How many parts went well.
    pub done: usize,
    /// Why the next one did not.
    pub error: E,
}

impl<'a, L, T> LockedParts<'a, L, T> {
    /// The parts of a region that is in no table and was locked already.
    #[must_use]
    pub fn of_one(region: L, parts: &'a [T]) -> Self {
        Self { one: Some(Group { region, parts }), many: Vec::new() }
    }

    fn groups(&self) -> impl Iterator<Item = &Group<'a, L, T>> {
        self.one.iter().chain(&self.many)
    }

    fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group<'a, L, T>> {
        self.one.iter_mut().chain(&mut self.many)
    }

    /// How many parts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// The bytes of all the parts together; [`u64::MAX`] where no number is that large.
    #[must_use]
    pub fn total_bytes(&self) -> u64
    where
        T: Part,
    {
        self.iter().fold(0, |sum, (_, part)| sum.saturating_add(part.range().bytes))
    }

    /// The parts in order, each with its region.
    pub fn iter(&self) -> impl Iterator<Item = (&L, &T)> {
        self.groups().flat_map(|group| group.parts.iter().map(|part| (&group.region, part)))
    }

    /// The regions, each once.
    pub fn regions_mut(&mut self) -> impl Iterator<Item = &mut L> {
        self.groups_mut().map(|group| &mut group.region)
    }

    /// Asks a rule about every part, before anything is done.
    ///
    /// # Errors
    ///
    /// What the rule answers for the first part that it refuses.
    pub fn check(&self, rule: impl Fn(&L, &T) -> Result<(), BackingError>) -> Result<(), BackingError> {
        self.groups().try_for_each(|group| group.parts.iter().try_for_each(|part| rule(&group.region, part)))
    }

    /// Acts on the parts in order until one fails.
    ///
    /// # Errors
    ///
    /// How far it came, and why no further.
    pub fn try_each<E>(&mut self, mut act: impl FnMut(&mut L, &T) -> Result<(), E>) -> Result<(), Stopped<E>> {
        self.try_each_with(iter::repeat(()), |region, part, ()| act(region, part))
    }

    /// Acts on the parts in order, each with its item, until one fails or the items end.
    ///
    /// # Errors
    ///
    /// How far it came, and why no further.
    pub fn try_each_with<I, E>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        mut act: impl FnMut(&mut L, &T, I) -> Result<(), E>,
    ) -> Result<(), Stopped<E>> {
        let (mut items, mut done) = (items.into_iter(), 0_usize);
        for Group { region, parts } in self.groups_mut() {
            for (part, item) in parts.iter().zip(&mut items) {
                act(region, part, item).map_err(|error| Stopped { done, error })?;
                done = done.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Acts on the parts of each region from its last to its first, until one fails: what is left of a region is then a
    /// beginning of its parts.
    ///
    /// # Errors
    ///
    /// What the action answers for the part that ended it.
    pub fn try_each_backwards<E>(&mut self, mut act: impl FnMut(&mut L, &T) -> Result<(), E>) -> Result<(), E> {
        self.groups_mut()
            .try_for_each(|Group { region, parts }| parts.iter().rev().try_for_each(|part| act(region, part)))
    }

    /// Acts on the first `count` parts in order: what undoes them can't stop at one.
    pub fn each_of_first(&mut self, count: usize, mut act: impl FnMut(&mut L, &T)) {
        self.each_with(iter::repeat_n((), count), |region, part, ()| act(region, part));
    }

    /// Acts on the parts in order, each with its item, until the items end.
    pub fn each_with<I>(&mut self, items: impl IntoIterator<Item = I>, mut act: impl FnMut(&mut L, &T, I)) {
        let Ok(()) = self.try_each_with(items, |region, part, item| {
            act(region, part, item);
            Ok::<_, Infallible>(())
        });
    }
}

impl<L, T: fmt::Debug> fmt::Debug for LockedParts<'_, L, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter().map(|(_, part)| part)).finish()
    }
}

#[cfg(test)]
mod tests;
