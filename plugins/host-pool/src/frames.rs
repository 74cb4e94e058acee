//! Which frame serves whom: pure bookkeeping of holes, of parked frames, and of the headroom that regions grow into.
//!
//! In: needs, and frames that come back. Out: runs of frames that are the taker's from then on. A run never crosses two
//! segments: their numbers don't touch. No system call, no budget; see `pool.rs`. Nothing panics.

use crate::holes::Holes;
use crate::parked::{Fit, Parcel, Parked};
use crate::run::Run;
use leasehold_plugin_api::{HolderId, MemoryRole, RegionId};
use std::collections::{BTreeSet, HashMap};

/// Numbers between the first frames of two segments, more than a segment has: no run crosses from one to the next.
pub(crate) const SEGMENT_STRIDE: u64 = 1 << 32;

/// Regions that have headroom in one segment: where segments are small, one region must not have all of it.
const REGIONS_PER_SEGMENT: u64 = 16;

/// Segments that are opened for the sake of headroom; past that, frames are taken where there are some.
const ROOMY_SEGMENTS: u64 = 8;

/// What one part of a call needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) frames: u64,
    pub(crate) holder: HolderId,
    pub(crate) role: MemoryRole,
    /// The frame that would continue what the region has already.
    pub(crate) after: Option<u64>,
    /// In how many pieces the region's own frames are already.
    pub(crate) pieces: usize,
    /// The region that it is for, and how many granules lie from its beginning to that region's end.
    pub(crate) growth: Option<(RegionId, u64)>,
}

impl Need {
    fn fit(&self) -> Fit {
        if self.growth.is_some_and(|(_, room)| room > self.frames) { Fit::Roomy } else { Fit::Best }
    }
}

/// All frames that are behind nothing.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Invariant 1: each frame is in one of `holes`, `parked` and `headrooms`, or with the one taker that it was handed
    /// to and that has not handed it back.
    holes: Holes,
    parked: Parked,
    /// Holes that a region grows into, so that its frames follow each other.
    headrooms: HashMap<RegionId, Run>,
    /// Frames behind mappings that could not be removed, which could not be emptied either: owned and charged until they
    /// are.
    unemptied: BTreeSet<u64>,
    segments: u64,
    frames_per_segment: u64,
    next_age: u64,
}

impl Frames {
    /// Segments of so many frames, less than [`SEGMENT_STRIDE`]; none of them yet.
    pub(crate) fn new(frames_per_segment: u64) -> Self {
        Self { frames_per_segment, ..Self::default() }
    }

    /// Adds the next segment, all of it a hole.
    pub(crate) fn add_segment(&mut self) {
        self.holes.insert(Run::new(self.segments.saturating_mul(SEGMENT_STRIDE), self.frames_per_segment));
        self.segments = self.segments.saturating_add(1);
    }

    /// Frames with a taker that has gone stay owned.
    pub(crate) fn note_unemptied(&mut self, run: Run) {
        self.unemptied.extend(run.first..run.end());
    }

    /// The frames are emptied now; answers how many of them were not before.
    pub(crate) fn take_unemptied(&mut self, run: Run) -> u64 {
        let owned: Vec<u64> = self.unemptied.range(run.first..run.end()).copied().collect();
        owned.iter().for_each(|frame| _ = self.unemptied.remove(frame));
        u64::try_from(owned.len()).unwrap_or(u64::MAX)
    }

    /// Frames that are parked.
    pub(crate) fn parked_frames(&self) -> u64 {
        self.parked.frames()
    }

    /// Takes parked frames that continue what the region has.
    pub(crate) fn take_continuing(&mut self, need: &Need) -> Vec<Parcel> {
        let (mut taken, mut left, mut after) = (Vec::new(), need.frames, need.after);
        while left > 0
            && let Some(parcel) = after.and_then(|after| self.parked.take_at(after, left))
        {
            left = left.saturating_sub(parcel.run.frames);
            after = Some(parcel.run.end());
            taken.push(parcel);
        }
        taken
    }

    /// Takes at most `frames` parked frames in at most `most_runs` runs: what the holder left itself, then any.
    pub(crate) fn take_parked(&mut self, need: &Need, frames: u64, most_runs: usize) -> Vec<Parcel> {
        let (mut taken, mut left) = (Vec::new(), frames);
        for holder in [Some(need.holder), None] {
            while left > 0
                && taken.len() < most_runs
                && let Some(parcel) = self.parked.take(holder, left, need.fit())
            {
                left = left.saturating_sub(parcel.run.frames);
                taken.push(parcel);
            }
        }
        taken
    }

    /// Takes at most `frames` parked frames to be exchanged for others: the smallest runs, which serve least as they are.
    pub(crate) fn take_fragments(&mut self, frames: u64) -> Vec<Parcel> {
        let (mut taken, mut left) = (Vec::new(), frames);
        while left > 0
            && let Some(parcel) = self.parked.take_smallest(left)
        {
            left = left.saturating_sub(parcel.run.frames);
            taken.push(parcel);
        }
        taken
    }

    /// Takes at most `frames` holes: those that continue frame `after`, then of the region's headroom, then of a new
    /// stretch. `None` when another segment is wanted.
    pub(crate) fn take_fresh(&mut self, need: &Need, frames: u64, after: Option<u64>) -> Option<Run> {
        if let Some(run) = after.and_then(|after| self.holes.take_at(after, frames)) {
            return Some(run);
        }
        let Some((region, room)) = need.growth else { return self.take_stretch(frames) };
        if let Some(headroom) = self.headrooms.remove(&region) {
            return Some(self.take_headroom(region, headroom, frames));
        }
        let served = need.frames.saturating_sub(frames);
        let most = self.frames_per_segment.div_ceil(REGIONS_PER_SEGMENT);
        let stretch = self.take_stretch(room.saturating_sub(served).min(most).max(frames))?;
        Some(self.take_headroom(region, stretch, frames))
    }

    /// A stretch of `wanted` frames, or of fewer where a segment has no more or no more segments are worth it.
    fn take_stretch(&mut self, wanted: u64) -> Option<Run> {
        let fitting = self.holes.take_fit(wanted.min(self.frames_per_segment));
        if fitting.is_some() || self.segments < ROOMY_SEGMENTS {
            return fitting;
        }
        self.take_anywhere(wanted)
    }

    /// Takes at most `wanted` frames of the largest headroom, from its end, and at most half of it: the region that it is
    /// for goes on growing into the rest, and has to be given no other stretch.
    fn take_others_headroom(&mut self, wanted: u64) -> Option<Run> {
        let (region, headroom) = self.headrooms.iter().max_by_key(|(_, headroom)| headroom.frames)?;
        let (region, headroom) = (*region, *headroom);
        let most = headroom.frames.div_ceil(2).min(wanted);
        let (rest, taken) = headroom.split(headroom.frames.saturating_sub(most));
        if rest.is_empty() {
            self.headrooms.remove(&region);
        } else {
            self.headrooms.insert(region, rest);
        }
        Some(taken)
    }

    fn take_headroom(&mut self, region: RegionId, headroom: Run, frames: u64) -> Run {
        let (front, rest) = headroom.split(frames);
        if !rest.is_empty() {
            self.headrooms.insert(region, rest);
        }
        front
    }

    /// Takes at most `frames` holes, wherever they are: what others would grow into at last.
    pub(crate) fn take_anywhere(&mut self, frames: u64) -> Option<Run> {
        self.holes.take_largest(frames).or_else(|| self.take_others_headroom(frames))
    }

    /// Takes back frames that are holes of their file, and behind nothing.
    pub(crate) fn insert_hole(&mut self, run: Run) {
        self.holes.insert(run);
    }

    /// The region will not grow any more.
    pub(crate) fn end_headroom(&mut self, region: RegionId) {
        if let Some(headroom) = self.headrooms.remove(&region) {
            self.holes.insert(headroom);
        }
    }

    /// A number for what is parked now.
    pub(crate) fn age(&mut self) -> u64 {
        self.next_age = self.next_age.saturating_add(1);
        self.next_age
    }

    /// Parks frames as long as no more than `bound` are parked; answers those that are too many.
    pub(crate) fn park_within(&mut self, bound: u64, parcel: Parcel) -> Run {
        let (parked, rest) = parcel.run.split(bound.saturating_sub(self.parked.frames()));
        self.parked.insert(Parcel { run: parked, ..parcel });
        rest
    }

    /// Parks frames whatever is parked: they could not be given back.
    pub(crate) fn park(&mut self, parcel: Parcel) {
        self.parked.insert(parcel);
    }

    /// Takes at most `most` of the frames that were parked first.
    pub(crate) fn take_oldest(&mut self, most: u64) -> Option<Parcel> {
        self.parked.take_oldest(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOLDER: HolderId = HolderId::new(1);

    fn need(frames: u64, growth: Option<(u64, u64)>) -> Need {
        let growth = growth.map(|(region, room)| (RegionId::new(region), room));
        Need { frames, holder: HOLDER, role: MemoryRole::KvCache, after: None, pieces: 0, growth }
    }

    fn frames(frames_per_segment: u64, segments: u64) -> Frames {
        let mut frames = Frames::new(frames_per_segment);
        (0..segments).for_each(|_| frames.add_segment());
        frames
    }

    #[test]
    fn regions_that_grow_by_turns_have_frames_that_follow_each_other() {
        let mut frames = frames(1 << 20, 1);
        let mut ends = [None; 48];
        for granule in 0..10 {
            for (region, end) in (0..).zip(&mut ends) {
                let need = Need { after: *end, ..need(1, Some((region, 100 - granule))) };
                let run = frames.take_fresh(&need, 1, *end).unwrap();
                assert!(end.is_none_or(|end| end == run.first));
                *end = Some(run.end());
            }
        }
    }

    #[test]
    fn headroom_that_is_given_up_serves_others() {
        let mut frames = frames(100, 1);
        assert_eq!(frames.take_fresh(&need(1, Some((1, 100))), 1, None), Some(Run::new(0, 1)));
        assert_eq!(frames.take_fresh(&need(95, None), 95, None), None);
        frames.end_headroom(RegionId::new(1));
        assert_eq!(frames.take_fresh(&need(95, None), 95, None), Some(Run::new(1, 95)));
    }

    #[test]
    fn more_than_a_segment_comes_in_parts_that_touch_no_other_segment() {
        let mut frames = frames(100, 2);
        let need = need(150, None);
        let first = frames.take_fresh(&need, 150, None).unwrap();
        assert_eq!(first, Run::new(0, 100));
        let second = frames.take_fresh(&need, 50, Some(first.end())).unwrap();
        assert_eq!(second, Run::new(SEGMENT_STRIDE, 50));
    }

    #[test]
    fn no_segments_without_end_are_wanted_for_headroom() {
        let mut frames = frames(4, ROOMY_SEGMENTS);
        for region in 0..4 * ROOMY_SEGMENTS {
            frames.take_fresh(&need(1, Some((region, 1 << 40))), 1, None).unwrap();
            frames.end_headroom(RegionId::new(region));
        }
        assert_eq!(frames.take_fresh(&need(1, Some((99, 1 << 40))), 1, None), None);
    }

    #[test]
    fn many_regions_share_few_segments_and_the_last_frames_serve_anybody() {
        let mut frames = frames(64, ROOMY_SEGMENTS);
        let all = 64 * ROOMY_SEGMENTS;
        let mut taken = std::collections::BTreeSet::new();
        for region in 0..all {
            let run = frames.take_fresh(&need(1, Some((region, 1 << 40))), 1, None).unwrap();
            assert!(taken.insert(run.first), "no frame is anybody's twice");
        }
        assert_eq!(frames.take_fresh(&need(1, Some((all, 1 << 40))), 1, None), None);
    }

    #[test]
    fn large_regions_that_outgrow_the_file_stay_few_pieces() {
        let mut frames = frames(1 << 16, ROOMY_SEGMENTS);
        let mut regions = [(None, 0); 3 * 48];
        for granule in 0..200 {
            for (region, (after, pieces)) in (0..).zip(&mut regions) {
                let need = Need { after: *after, ..need(1, Some((region, (1 << 40) - granule))) };
                let run = frames.take_fresh(&need, 1, *after).unwrap();
                *pieces += i32::from(*after != Some(run.first));
                *after = Some(run.end());
            }
        }
        assert_eq!(regions.map(|(_, pieces)| pieces), [1; 3 * 48]);
    }

    #[test]
    fn what_is_too_much_to_park_is_answered() {
        let mut frames = frames(100, 1);
        let parcel = |first, frames| Parcel { run: Run::new(first, frames), holder: HOLDER, age: 1 };
        assert!(frames.park_within(8, parcel(0, 6)).is_empty());
        assert_eq!(frames.park_within(8, parcel(10, 6)), Run::new(12, 4));
        assert_eq!(frames.park_within(8, parcel(20, 6)), Run::new(20, 6));
        assert_eq!(frames.parked_frames(), 8);
    }

    proptest! {
        #[test]
        fn no_frame_is_ever_with_two_takers(steps in prop::collection::vec((0..4_u64, 1..9_u64, 0..40_u64), 1..80)) {
            let mut frames = frames(64, 1);
            let mut taken: Vec<Run> = Vec::new();
            for (kind, count, room) in steps {
                let growth = (kind > 0).then_some((kind, count.saturating_add(room)));
                let after = taken.last().map(|run| run.end());
                let need = Need { after, ..need(count, growth) };
                if room % 3 == 0 && !taken.is_empty() {
                    let run = taken.swap_remove(usize::try_from(room).unwrap().checked_rem(taken.len()).unwrap());
                    let age = frames.age();
                    let holder = HolderId::new(kind);
                    let excess = frames.park_within(16, Parcel { run, holder, age });
                    frames.insert_hole(excess);
                    continue;
                }
                let continuing = frames.take_continuing(&need);
                let left = continuing.iter().fold(count, |left, parcel| left.saturating_sub(parcel.run.frames));
                let parked = frames.take_parked(&need, left, usize::MAX);
                let mut left = parked.iter().fold(left, |left, parcel| left.saturating_sub(parcel.run.frames));
                taken.extend(continuing.into_iter().chain(parked).map(|parcel| parcel.run));
                while left > 0 {
                    let Some(run) = frames.take_fresh(&need, left, after) else { frames.add_segment(); continue };
                    left = left.saturating_sub(run.frames);
                    taken.push(run);
                }
                let mut all: Vec<_> = taken.iter().flat_map(|run| run.first..run.end()).collect();
                let held = all.len();
                all.sort_unstable();
                all.dedup();
                prop_assert_eq!(all.len(), held);
                prop_assert!(frames.parked_frames() <= 16);
            }
        }
    }
}
