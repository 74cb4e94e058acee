//! Which frames are owned and behind nothing, and who left bytes in them: pure bookkeeping, no system call.
//!
//! Which run serves matters for two reasons: what a holder left itself needs no zeroing when it comes back, and a
//! region whose frames follow each other is one mapping for the kernel. So a run is *claimed* once its front was taken
//! by a region that may grow: its rest is kept for that region for as long as others can be served elsewhere, and where
//! they can't, they begin in the middle of it.

use crate::run::Run;
use leasehold_plugin_api::HolderId;
use std::collections::{BTreeMap, BTreeSet};

/// Parked frames, and what there is to know of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) run: Run,
    /// Whose bytes they hold.
    pub(crate) holder: HolderId,
    /// When they were parked: a number that counts up.
    pub(crate) age: u64,
}

/// How a run is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The smallest that suffices: the taker never wants more.
    Best,
    /// The one with the most room behind it: the taker will grow.
    Roomy,
}

/// Whether a region grows into a run. What is free sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Free,
    Claimed,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    frames: u64,
    holder: HolderId,
    age: u64,
    claim: Claim,
}

/// All parked frames. Neighbours of one holder are one run, as old as its oldest part.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    by_first: BTreeMap<u64, Entry>,
    /// Every run once more, as (holder, claim, frames, first): what this holder left.
    by_holder: BTreeSet<(HolderId, Claim, u64, u64)>,
    /// Every run once more, as (claim, frames, first).
    by_size: BTreeSet<(Claim, u64, u64)>,
    /// Every run once more, as (age, first).
    by_age: BTreeSet<(u64, u64)>,
    frames: u64,
}

impl Parked {
    /// How many frames are parked.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Parks frames that are not parked yet; an empty run parks nothing.
    pub(crate) fn insert(&mut self, parcel: Parcel) {
        if parcel.run.is_empty() {
            return;
        }
        let Parcel { mut run, holder, age } = parcel;
        let mut entry = Entry { frames: run.frames, holder, age, claim: Claim::Free };
        if let Some((&first, &left)) = self.by_first.range(..run.first).next_back()
            && left.holder == holder
            && first.saturating_add(left.frames) == run.first
        {
            self.remove(first);
            run.first = first;
            entry.frames = entry.frames.saturating_add(left.frames);
            entry.age = entry.age.min(left.age);
            entry.claim = left.claim;
        }
        let end = run.first.saturating_add(entry.frames);
        if let Some(&right) = self.by_first.get(&end)
            && right.holder == holder
        {
            self.remove(end);
            entry.frames = entry.frames.saturating_add(right.frames);
            entry.age = entry.age.min(right.age);
        }
        self.add(run.first, entry);
    }

    /// Takes at most `most` frames from frame `first` on, where a run begins there.
    pub(crate) fn take_at(&mut self, first: u64, most: u64) -> Option<Parcel> {
        self.by_first.contains_key(&first).then(|| self.take_front(first, most, Claim::Claimed))?
    }

    /// Takes at most `most` frames of one run: of what `holder` left, or with `None` of what anybody left.
    pub(crate) fn take(&mut self, holder: Option<HolderId>, most: u64, fit: Fit) -> Option<Parcel> {
        match fit {
            Fit::Best => {
                let first = self.best(holder, most)?;
                self.take_front(first, most, Claim::Free)
            }
            Fit::Roomy => match self.largest(holder, Claim::Free) {
                Some(first) => self.take_front(first, most, Claim::Claimed),
                None => {
                    let first = self.largest(holder, Claim::Claimed)?;
                    self.take_middle(first, most)
                }
            },
        }
    }

    /// Takes at most `most` frames of the smallest run, one that no region claims before one that is claimed.
    pub(crate) fn take_smallest(&mut self, most: u64) -> Option<Parcel> {
        let (.., first) = *self.by_size.first()?;
        self.take_front(first, most, Claim::Free)
    }

    /// Takes at most `most` frames of the run that was parked first.
    pub(crate) fn take_oldest(&mut self, most: u64) -> Option<Parcel> {
        let (_, first) = *self.by_age.first()?;
        self.take_front(first, most, Claim::Free)
    }

    /// The smallest run of at least `frames`, one that nobody claims before one that is claimed; else the largest.
    fn best(&self, holder: Option<HolderId>, frames: u64) -> Option<u64> {
        let fitting = |claim| match holder {
            Some(holder) => {
                let range = (holder, claim, frames, 0)..=(holder, claim, u64::MAX, u64::MAX);
                self.by_holder.range(range).next().map(|(.., first)| *first)
            }
            None => {
                let range = (claim, frames, 0)..=(claim, u64::MAX, u64::MAX);
                self.by_size.range(range).next().map(|(.., first)| *first)
            }
        };
        let any = || self.largest(holder, Claim::Free).or_else(|| self.largest(holder, Claim::Claimed));
        fitting(Claim::Free).or_else(|| fitting(Claim::Claimed)).or_else(any)
    }

    fn largest(&self, holder: Option<HolderId>, claim: Claim) -> Option<u64> {
        match holder {
            Some(holder) => {
                let range = (holder, claim, 0, 0)..=(holder, claim, u64::MAX, u64::MAX);
                self.by_holder.range(range).next_back().map(|(.., first)| *first)
            }
            None => {
                let range = (claim, 0, 0)..=(claim, u64::MAX, u64::MAX);
                self.by_size.range(range).next_back().map(|(.., first)| *first)
            }
        }
    }

    /// Leaves the rest with that claim, or with the one that is on it already.
    fn take_front(&mut self, first: u64, most: u64, claim: Claim) -> Option<Parcel> {
        let entry = self.remove(first)?;
        let (front, rest) = Run::new(first, entry.frames).split(most);
        if !rest.is_empty() {
            self.add(rest.first, Entry { frames: rest.frames, claim: entry.claim.max(claim), ..entry });
        }
        Some(Parcel { run: front, holder: entry.holder, age: entry.age })
    }

    /// Leaves the first half to whoever claims the run.
    fn take_middle(&mut self, first: u64, most: u64) -> Option<Parcel> {
        let entry = self.remove(first)?;
        let half = entry.frames.div_euclid(2).min(entry.frames.saturating_sub(most));
        let (left, right) = Run::new(first, entry.frames).split(half);
        if !left.is_empty() {
            self.add(left.first, Entry { frames: left.frames, ..entry });
        }
        let (taken, rest) = right.split(most);
        if !rest.is_empty() {
            self.add(rest.first, Entry { frames: rest.frames, ..entry });
        }
        Some(Parcel { run: taken, holder: entry.holder, age: entry.age })
    }

    fn add(&mut self, first: u64, entry: Entry) {
        self.by_first.insert(first, entry);
        self.by_holder.insert((entry.holder, entry.claim, entry.frames, first));
        self.by_size.insert((entry.claim, entry.frames, first));
        self.by_age.insert((entry.age, first));
        self.frames = self.frames.saturating_add(entry.frames);
    }

    fn remove(&mut self, first: u64) -> Option<Entry> {
        let entry = self.by_first.remove(&first)?;
        self.by_holder.remove(&(entry.holder, entry.claim, entry.frames, first));
        self.by_size.remove(&(entry.claim, entry.frames, first));
        self.by_age.remove(&(entry.age, first));
        self.frames = self.frames.saturating_sub(entry.frames);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HolderId = HolderId::new(1);
    const OTHER: HolderId = HolderId::new(2);

    fn parked(parcels: &[(u64, u64, HolderId)]) -> Parked {
        let mut parked = Parked::default();
        for (age, (first, frames, holder)) in (0..).zip(parcels) {
            parked.insert(Parcel { run: Run::new(*first, *frames), holder: *holder, age });
        }
        parked
    }

    fn run(parcel: Option<Parcel>) -> Option<(u64, u64)> {
        parcel.map(|parcel| (parcel.run.first, parcel.run.frames))
    }

    #[test]
    fn neighbours_of_one_holder_are_one_run_and_of_two_are_two() {
        let mut parked = parked(&[(10, 10, ONE), (0, 10, ONE), (20, 10, OTHER)]);
        assert_eq!(parked.frames(), 30);
        assert_eq!(run(parked.take(Some(ONE), 99, Fit::Best)), Some((0, 20)));
        assert_eq!(run(parked.take(Some(ONE), 99, Fit::Best)), None);
        assert_eq!(run(parked.take(None, 99, Fit::Best)), Some((20, 10)));
        assert_eq!(parked.frames(), 0);
    }

    #[test]
    fn the_best_fit_is_the_smallest_that_suffices() {
        let mut parked = parked(&[(0, 30, ONE), (100, 8, ONE), (200, 4, ONE)]);
        assert_eq!(run(parked.take(Some(ONE), 5, Fit::Best)), Some((100, 5)));
        assert_eq!(run(parked.take(Some(ONE), 31, Fit::Best)), Some((0, 30)));
    }

    #[test]
    fn regions_that_grow_are_kept_apart_while_that_is_possible() {
        let mut parked = parked(&[(0, 8, ONE), (100, 8, ONE)]);
        let firsts: Vec<_> = (0..4).map(|_| parked.take(Some(ONE), 1, Fit::Roomy).unwrap().run.first).collect();
        assert_eq!(firsts, [100, 0, 104, 4]);
        for first in firsts {
            for next in first + 1..first + 3 {
                assert_eq!(run(parked.take_at(next, 1)), Some((next, 1)));
            }
        }
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut parked = parked(&[(50, 2, ONE), (0, 2, OTHER), (20, 2, ONE)]);
        assert_eq!(run(parked.take_oldest(1)), Some((50, 1)));
        assert_eq!(run(parked.take_oldest(9)), Some((51, 1)));
        assert_eq!(run(parked.take_oldest(9)), Some((0, 2)));
    }
}
