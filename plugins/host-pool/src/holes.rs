//! Which frames are behind nothing and hold nothing: pure bookkeeping, no system call.

use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Frames that are holes of their files. Neighbours are one run.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    by_first: BTreeMap<u64, u64>,
    /// Every run once more, as (frames, first).
    by_size: BTreeSet<(u64, u64)>,
}

impl Holes {
    /// Adds frames that are no holes yet; an empty run adds nothing.
    pub(crate) fn insert(&mut self, mut run: Run) {
        if run.is_empty() {
            return;
        }
        if let Some((&first, &frames)) = self.by_first.range(..run.first).next_back()
            && Run::new(first, frames).end() == run.first
        {
            self.remove(Run::new(first, frames));
            run = Run::new(first, frames.saturating_add(run.frames));
        }
        if let Some(&frames) = self.by_first.get(&run.end()) {
            self.remove(Run::new(run.end(), frames));
            run.frames = run.frames.saturating_add(frames);
        }
        self.by_first.insert(run.first, run.frames);
        self.by_size.insert((run.frames, run.first));
    }

    /// Takes at most `most` frames from frame `first` on, where a run begins there.
    pub(crate) fn take_at(&mut self, first: u64, most: u64) -> Option<Run> {
        let frames = *self.by_first.get(&first)?;
        Some(self.take_front(Run::new(first, frames), most))
    }

    /// Takes `frames` frames from the smallest run that has as many.
    pub(crate) fn take_fit(&mut self, frames: u64) -> Option<Run> {
        let (size, first) = *self.by_size.range((frames, 0)..).next()?;
        Some(self.take_front(Run::new(first, size), frames))
    }

    /// Takes at most `most` frames from the largest run.
    pub(crate) fn take_largest(&mut self, most: u64) -> Option<Run> {
        let (size, first) = *self.by_size.last()?;
        Some(self.take_front(Run::new(first, size), most))
    }

    fn take_front(&mut self, run: Run, most: u64) -> Run {
        self.remove(run);
        let (front, rest) = run.split(most);
        if !rest.is_empty() {
            self.by_first.insert(rest.first, rest.frames);
            self.by_size.insert((rest.frames, rest.first));
        }
        front
    }

    fn remove(&mut self, run: Run) {
        self.by_first.remove(&run.first);
        self.by_size.remove(&(run.frames, run.first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_run_in_whichever_order_they_come() {
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]] {
            let mut holes = Holes::default();
            order.iter().for_each(|part| holes.insert(Run::new(part * 10, 10)));
            assert_eq!(holes.take_fit(30), Some(Run::new(0, 30)));
            assert_eq!(holes.take_largest(1), None);
        }
    }

    #[test]
    fn a_fit_comes_from_the_smallest_run_that_has_as_many() {
        let mut holes = Holes::default();
        [Run::new(0, 100), Run::new(200, 8), Run::new(300, 4)].into_iter().for_each(|run| holes.insert(run));
        assert_eq!(holes.take_fit(5), Some(Run::new(200, 5)));
        assert_eq!(holes.take_at(205, 9), Some(Run::new(205, 3)));
        assert_eq!(holes.take_at(205, 1), None);
        assert_eq!(holes.take_fit(101), None);
        assert_eq!(holes.take_largest(101), Some(Run::new(0, 100)));
    }
}
