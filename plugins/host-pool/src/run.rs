//! Consecutive frames. A frame is one granule of physical memory, and has a number; see `store.rs`.

/// Consecutive frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) first: u64,
    /// How many; positive, except in what [`Run::split`] leaves over.
    pub(crate) frames: u64,
}

impl Run {
    pub(crate) fn new(first: u64, frames: u64) -> Self {
        Self { first, frames }
    }

    /// The number after its last.
    pub(crate) fn end(self) -> u64 {
        self.first.saturating_add(self.frames)
    }

    /// Its first `frames` frames, or all of it; and what is left over.
    pub(crate) fn split(self, frames: u64) -> (Self, Self) {
        let front = frames.min(self.frames);
        let rest = Self::new(self.first.saturating_add(front), self.frames.saturating_sub(front));
        (Self::new(self.first, front), rest)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.frames == 0
    }
}

/// How many frames the runs are.
pub(crate) fn frames_of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> u64 {
    runs.into_iter().fold(0, |sum, run| sum.saturating_add(run.frames))
}
