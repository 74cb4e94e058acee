//! Which bytes of a region are committed: pure arithmetic on ranges, no system call.
//!
//! It also counts the mappings that the kernel may hold the region as: one for each piece and one for each gap. Two
//! neighbours are one mapping only when their pages descend from the same first touch (the kernel compares `anon_vma`),
//! so two pieces that grew apart stay two where they meet. Pieces that were once cut apart join again.

use std::collections::BTreeMap;
use std::ops::Range;

/// The committed bytes of one region. Every range given to it is non-empty and within the region.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Begin of each piece → the piece. Pieces don't overlap; they touch only where their lineage differs.
    pieces: BTreeMap<u64, Piece>,
    /// Committed bytes.
    bytes: u64,
    region_bytes: u64,
    /// Stretches of the region in which nothing is committed.
    gaps: u64,
    next_lineage: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    /// Equal for two pieces whose pages descend from the same first touch.
    lineage: u64,
}

impl Runs {
    /// Nothing yet, in a region of so many bytes: one gap.
    pub(crate) fn over(region_bytes: u64) -> Self {
        Self { pieces: BTreeMap::new(), bytes: 0, region_bytes, gaps: 1, next_lineage: 0 }
    }

    /// Committed bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most mappings that the kernel holds the region as; constant cost.
    pub(crate) fn mappings(&self) -> u64 {
        u64::try_from(self.pieces.len()).unwrap_or(u64::MAX).saturating_add(self.gaps)
    }

    /// Whether nothing in the range is committed.
    pub(crate) fn is_free(&self, range: &Range<u64>) -> bool {
        self.pieces.range(..range.end).next_back().is_none_or(|(_, piece)| piece.end <= range.start)
    }

    /// Whether everything in the range is committed.
    pub(crate) fn is_committed(&self, range: &Range<u64>) -> bool {
        let mut reached = range.start;
        while reached < range.end {
            match self.pieces.range(..=reached).next_back() {
                Some((_, piece)) if piece.end > reached => reached = piece.end,
                _ => return false,
            }
        }
        true
    }

    /// Adds a range of which nothing is committed.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        debug_assert!(self.is_free(&range), "{range:?} is not free in {self:?}");
        self.bytes = self.bytes.saturating_add(length(&range));
        let right = self.pieces.get(&range.end).copied();
        let left = self.pieces.range_mut(..range.start).next_back().map(|(_, piece)| piece);
        let left = left.filter(|left| left.end == range.start);
        let is_gap_before = range.start > 0 && left.is_none();
        let is_gap_after = range.end < self.region_bytes && right.is_none();
        self.gaps = self.gaps.saturating_add(gaps_of(is_gap_before, is_gap_after)).saturating_sub(1);
        match (left, right) {
            (Some(left), Some(right)) if left.lineage == right.lineage => {
                left.end = right.end;
                self.pieces.remove(&range.end);
            }
            (Some(left), _) => left.end = range.end,
            (None, Some(right)) => {
                self.pieces.remove(&range.end);
                self.pieces.insert(range.start, right);
            }
            (None, None) => {
                self.pieces.insert(range.start, Piece { end: range.end, lineage: self.next_lineage });
                self.next_lineage = self.next_lineage.wrapping_add(1);
            }
        }
    }

    /// Takes a range away of which everything is committed.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        debug_assert!(self.is_committed(&range), "{range:?} is not committed in {self:?}");
        self.bytes = self.bytes.saturating_sub(length(&range));
        let mut rest = None;
        let mut is_gap_before = range.start > 0;
        if let Some((_, left)) = self.pieces.range_mut(..range.start).next_back()
            && left.end >= range.start
        {
            is_gap_before = false;
            rest = (left.end > range.end).then_some(*left);
            left.end = range.start;
        }
        while let Some((&start, &piece)) = self.pieces.range(range.clone()).next() {
            self.pieces.remove(&start);
            rest = (piece.end > range.end).then_some(piece);
        }
        let mut is_gap_after = range.end < self.region_bytes;
        if let Some(rest) = rest {
            self.pieces.insert(range.end, rest);
            is_gap_after = false;
        } else if is_gap_after {
            is_gap_after = !self.pieces.contains_key(&range.end);
        }
        self.gaps = self.gaps.saturating_add(1).saturating_sub(gaps_of(is_gap_before, is_gap_after));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::over(self.region_bytes);
    }
}

/// How many gaps lie beside a range: of a committed one what is left of its gap, of a freed one what joins it.
fn gaps_of(is_gap_before: bool, is_gap_after: bool) -> u64 {
    u64::from(is_gap_before).saturating_add(u64::from(is_gap_after))
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(ranges: &[(u64, u64)]) -> Runs {
        let mut runs = Runs::over(GRANULES);
        ranges.iter().for_each(|(start, end)| runs.insert(*start..*end));
        runs
    }

    #[test]
    fn a_watermark_is_one_piece_however_often_it_moves() {
        let mut runs = Runs::over(10_000);
        for step in 0..10_000 {
            assert_eq!(runs.mappings(), 1 + u64::from(step > 0));
            runs.insert(step..step + 1);
        }
        assert_eq!(runs.mappings(), 1);
        runs.remove(3..10_000);
        runs.insert(3..7);
        assert_eq!((runs.mappings(), runs.bytes()), (2, 7));
    }

    #[test]
    fn pieces_that_grew_apart_stay_two_where_they_meet() {
        let mut runs = runs(&[(0, 1), (2, 3)]);
        runs.insert(1..2);
        assert_eq!((runs.mappings(), runs.bytes()), (2 + 1, 3));
        assert!(runs.is_committed(&(0..3)));
        runs.remove(0..3);
        assert_eq!((runs.mappings(), runs.bytes()), (1, 0));
    }

    #[test]
    fn a_hole_that_is_filled_again_leaves_no_seam() {
        let mut runs = Runs::over(100);
        runs.insert(0..100);
        for hole in 10..90 {
            runs.remove(hole..hole + 5);
            assert_eq!(runs.mappings(), 2 + 1);
            runs.insert(hole..hole + 5);
            assert_eq!(runs.mappings(), 1);
        }
    }

    #[test]
    fn taking_an_insert_back_restores_the_pieces() {
        for before in [vec![(0, 2), (4, 6)], vec![(0, 2)], vec![(4, 6)], vec![(0, 1)]] {
            let mut changed = runs(&before);
            let mappings = changed.mappings();
            changed.insert(2..4);
            changed.remove(2..4);
            assert_eq!(changed.mappings(), mappings);
            assert!(before.iter().all(|(start, end)| changed.is_committed(&(*start..*end))));
        }
    }

    const GRANULES: u64 = 24;

    fn bits(range: &Range<u64>) -> u32 {
        range.clone().fold(0, |bits, granule| bits | 1 << granule)
    }

    /// Stretches of granules that are all committed, and of granules that are all free.
    fn stretches(bitmap: u32) -> u64 {
        let granules: Vec<_> = (0..GRANULES).map(|granule| bitmap >> granule & 1).collect();
        u64::try_from(granules.chunk_by(|left, right| left == right).count()).unwrap()
    }

    proptest! {
        #[test]
        fn runs_agree_with_a_bitmap(steps in prop::collection::vec((0..GRANULES, 1..=GRANULES), 0..200)) {
            let (mut runs, mut bitmap) = (Runs::over(GRANULES), 0_u32);
            for (start, count) in steps {
                let range = start..start.saturating_add(count).min(GRANULES);
                let wanted = bits(&range);
                prop_assert_eq!(runs.is_free(&range), bitmap & wanted == 0);
                prop_assert_eq!(runs.is_committed(&range), bitmap & wanted == wanted);
                if runs.is_free(&range) {
                    runs.insert(range);
                    bitmap |= wanted;
                } else if runs.is_committed(&range) {
                    runs.remove(range);
                    bitmap &= !wanted;
                }
                prop_assert_eq!(runs.bytes(), u64::from(bitmap.count_ones()));
                let seams = runs.pieces.iter().filter(|(_, piece)| runs.pieces.contains_key(&piece.end)).count();
                prop_assert_eq!(runs.mappings(), stretches(bitmap).saturating_add(u64::try_from(seams).unwrap()));
            }
        }
    }
}
