//! What is mapped where in one region: ranges of granules, each with its frames. Pure bookkeeping, no system call.
//!
//! It also counts the mappings that the kernel holds the region as: one for each piece, where neighbours whose frames
//! follow each other are one piece, and one for each gap. Pieces that touch have no gap between them.

use crate::prefix_memory::PrefixMemory;
use crate::run::Run;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What is mapped in one region, by granule. Every range given to it is non-empty and within the region.
#[derive(Debug)]
pub(crate) struct Extents {
    /// First granule of each extent → the extent. Extents don't overlap.
    by_start: BTreeMap<u64, Extent>,
    /// Granules of the region.
    granules: u64,
    private_granules: u64,
    private_pieces: usize,
    /// Mappings of the extents, and of the gaps before, between and after them.
    mappings: u64,
}

#[derive(Clone, Debug)]
struct Extent {
    granules: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// Frames of this region alone, from that one on.
    Private(u64),
    /// Frames that were given back while their mapping could not be removed: nobody may have them before it is.
    Residue(u64),
    /// A part of a prefix.
    Prefix(PrefixPart),
}

/// A part of a prefix that is mapped as a whole, and unmapped as a whole.
#[derive(Clone, Debug)]
pub(crate) struct PrefixPart {
    pub(crate) memory: Arc<PrefixMemory>,
    /// Its granules within the prefix.
    pub(crate) granules: Range<u64>,
}

/// Everything that was in a region.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) private: Vec<(u64, Run)>,
    pub(crate) residue: Vec<(u64, Run)>,
    pub(crate) prefixes: Vec<(u64, PrefixPart)>,
}

impl Extents {
    /// Nothing yet, in a region of so many granules: one gap.
    pub(crate) fn over(granules: u64) -> Self {
        Self { by_start: BTreeMap::new(), granules, private_granules: 0, private_pieces: 0, mappings: 1 }
    }

    /// Granules with frames of this region alone.
    pub(crate) fn private_granules(&self) -> u64 {
        self.private_granules
    }

    /// Pieces that frames of this region alone are in.
    pub(crate) fn private_pieces(&self) -> usize {
        self.private_pieces
    }

    /// Mappings that the kernel holds the region as; constant cost. It may hold fewer: it joins what happens to follow
    /// each other in two regions or in two prefixes.
    pub(crate) fn mappings(&self) -> u64 {
        self.mappings
    }

    /// Whether nothing in the range is mapped, residue aside.
    pub(crate) fn is_free(&self, range: &Range<u64>) -> bool {
        self.overlapping(range).all(|(_, extent)| matches!(extent.content, Content::Residue(_)))
    }

    /// Whether everything in the range is frames of this region alone.
    pub(crate) fn is_private(&self, range: &Range<u64>) -> bool {
        let mut reached = range.start;
        let is_next = |(start, extent): (u64, &Extent)| {
            let follows = start <= reached && matches!(extent.content, Content::Private(_));
            reached = start.saturating_add(extent.granules);
            follows
        };
        self.overlapping(range).all(is_next) && reached >= range.end
    }

    /// The frame that follows the last one before granule `at`, where that is this region's own.
    pub(crate) fn continuation(&self, at: u64) -> Option<u64> {
        let (start, extent) = self.by_start.range(..at).next_back()?;
        match extent.content {
            Content::Private(first) if start.saturating_add(extent.granules) == at => {
                Some(first.saturating_add(extent.granules))
            }
            _ => None,
        }
    }

    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, &Extent)> {
        let before = self.by_start.range(..range.start).next_back();
        let before = before.filter(|(start, extent)| start.saturating_add(extent.granules) > range.start);
        let within = self.by_start.range(range.clone());
        before.into_iter().chain(within).map(|(start, extent)| (*start, extent))
    }

    /// Adds frames of this region alone where nothing is.
    pub(crate) fn insert_private(&mut self, start: u64, run: Run) {
        self.private_granules = self.private_granules.saturating_add(run.frames);
        if self.extend(start, run) {
            return;
        }
        let (mut start, mut first, mut granules) = (start, run.first, run.frames);
        if self.continuation(start) == Some(first)
            && let Some((&left, _)) = self.by_start.range(..start).next_back()
            && let Some(extent) = self.take(left)
        {
            (start, first) = (left, first.saturating_sub(extent.granules));
            granules = granules.saturating_add(extent.granules);
        }
        let end = start.saturating_add(granules);
        if let Some(Extent { granules: more, content: Content::Private(next) }) = self.by_start.get(&end)
            && *next == first.saturating_add(granules)
        {
            granules = granules.saturating_add(*more);
            self.take(end);
        }
        self.put(start, Extent { granules, content: Content::Private(first) });
    }

    /// Lengthens the extent before, where the frames continue it and none begins behind them: what a growth does. Returns
    /// whether it did.
    fn extend(&mut self, start: u64, run: Run) -> bool {
        let end = start.saturating_add(run.frames);
        if self.by_start.contains_key(&end) {
            return false;
        }
        let Some((before, extent)) = self.by_start.range_mut(..start).next_back() else { return false };
        let follows = before.saturating_add(extent.granules) == start;
        let continues =
            matches!(extent.content, Content::Private(first) if first.saturating_add(extent.granules) == run.first);
        if !(follows && continues) {
            return false;
        }
        extent.granules = extent.granules.saturating_add(run.frames);
        if end == self.granules {
            self.mappings = self.mappings.saturating_sub(1); // the gap behind it is filled
        }
        true
    }

    /// Takes frames away from a range that is private as a whole.
    pub(crate) fn remove_private(&mut self, range: &Range<u64>) -> Vec<(u64, Run)> {
        let removed = self.remove(range, |content| matches!(content, Content::Private(_)));
        let granules = removed.iter().fold(0_u64, |sum, (_, run)| sum.saturating_add(run.frames));
        self.private_granules = self.private_granules.saturating_sub(granules);
        removed
    }

    /// Takes the residue of a range away.
    pub(crate) fn remove_residue(&mut self, range: &Range<u64>) -> Vec<(u64, Run)> {
        self.remove(range, |content| matches!(content, Content::Residue(_)))
    }

    /// Adds residue where nothing is.
    pub(crate) fn insert_residue(&mut self, start: u64, run: Run) {
        self.put(start, Extent { granules: run.frames, content: Content::Residue(run.first) });
    }

    /// Adds a part of a prefix where nothing is.
    pub(crate) fn insert_prefix(&mut self, start: u64, part: PrefixPart) {
        let granules = part.granules.end.saturating_sub(part.granules.start);
        self.put(start, Extent { granules, content: Content::Prefix(part) });
    }

    /// The part of a prefix that is mapped from granule `start` on.
    pub(crate) fn prefix(&self, start: u64) -> Option<&PrefixPart> {
        match self.by_start.get(&start) {
            Some(Extent { content: Content::Prefix(part), .. }) => Some(part),
            _ => None,
        }
    }

    /// Takes the part of a prefix away that is mapped from granule `start` on.
    pub(crate) fn remove_prefix(&mut self, start: u64) -> Option<PrefixPart> {
        self.prefix(start)?;
        match self.take(start)?.content {
            Content::Prefix(part) => Some(part),
            Content::Private(_) | Content::Residue(_) => None,
        }
    }

    /// Takes everything away.
    pub(crate) fn remove_all(&mut self) -> Contents {
        let mut contents = Contents::default();
        let emptied = std::mem::replace(self, Self::over(self.granules));
        for (start, Extent { granules, content }) in emptied.by_start {
            match content {
                Content::Private(first) => contents.private.push((start, Run::new(first, granules))),
                Content::Residue(first) => contents.residue.push((start, Run::new(first, granules))),
                Content::Prefix(part) => contents.prefixes.push((start, part)),
            }
        }
        contents
    }

    /// Takes what `is_wanted` away from a range, cutting what reaches past it.
    fn remove(&mut self, range: &Range<u64>, is_wanted: impl Fn(&Content) -> bool) -> Vec<(u64, Run)> {
        self.cut(range.start);
        self.cut(range.end);
        let within = self.by_start.range(range.clone()).filter(|(_, extent)| is_wanted(&extent.content));
        let runs: Vec<_> = within.filter_map(|(start, extent)| Some((*start, extent.run()?))).collect();
        for (start, _) in &runs {
            self.take(*start);
        }
        runs
    }

    /// Makes two extents of the one that granule `at` lies within. A part of a prefix is never cut.
    fn cut(&mut self, at: u64) {
        let Some((&start, extent)) = self.by_start.range_mut(..at).next_back() else { return };
        let left = at.saturating_sub(start);
        let right = extent.granules.saturating_sub(left);
        let content = match extent.content {
            Content::Private(first) => Content::Private(first.saturating_add(left)),
            Content::Residue(first) => Content::Residue(first.saturating_add(left)),
            Content::Prefix(_) => return,
        };
        if right > 0 {
            extent.granules = left;
            let rest = Extent { granules: right, content };
            self.mappings = self.mappings.saturating_add(rest.mappings());
            self.private_pieces = self.private_pieces.saturating_add(rest.private_pieces());
            self.by_start.insert(at, rest);
        }
    }

    fn put(&mut self, start: u64, extent: Extent) {
        let gaps = self.gaps_beside(start, extent.granules);
        self.mappings = self.mappings.saturating_add(extent.mappings()).saturating_add(gaps).saturating_sub(1);
        self.private_pieces = self.private_pieces.saturating_add(extent.private_pieces());
        self.by_start.insert(start, extent);
    }

    fn take(&mut self, start: u64) -> Option<Extent> {
        let extent = self.by_start.remove(&start)?;
        let gaps = self.gaps_beside(start, extent.granules);
        self.mappings = self.mappings.saturating_add(1).saturating_sub(extent.mappings()).saturating_sub(gaps);
        self.private_pieces = self.private_pieces.saturating_sub(extent.private_pieces());
        Some(extent)
    }

    /// How many gaps an extent leaves of the one that it lies in: 0 to 2.
    fn gaps_beside(&self, start: u64, granules: u64) -> u64 {
        let end = start.saturating_add(granules);
        let before = self.by_start.range(..start).next_back();
        let before = before.map_or(0, |(start, extent)| start.saturating_add(extent.granules));
        let is_gap_after = end < self.granules && !self.by_start.contains_key(&end);
        u64::from(before < start).saturating_add(u64::from(is_gap_after))
    }
}

impl Extent {
    fn run(&self) -> Option<Run> {
        match self.content {
            Content::Private(first) | Content::Residue(first) => Some(Run::new(first, self.granules)),
            Content::Prefix(_) => None,
        }
    }

    fn private_pieces(&self) -> usize {
        usize::from(matches!(self.content, Content::Private(_)))
    }

    fn mappings(&self) -> u64 {
        match &self.content {
            Content::Private(_) | Content::Residue(_) => 1,
            Content::Prefix(part) => u64::try_from(part.memory.part(&part.granules).len()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_plugin_api::{HolderId, PrefixId};
    use proptest::prelude::*;

    fn part(granules: Range<u64>) -> PrefixPart {
        let runs = vec![Run::new(500, 2), Run::new(900, 8)];
        let memory = PrefixMemory { id: PrefixId::new(1), holder: HolderId::new(1), runs };
        PrefixPart { memory: Arc::new(memory), granules }
    }

    #[test]
    fn frames_that_follow_each_other_are_one_piece_and_others_are_not() {
        let mut extents = Extents::over(100);
        extents.insert_private(4, Run::new(104, 4));
        extents.insert_private(0, Run::new(100, 4));
        assert_eq!((extents.private_pieces(), extents.continuation(8)), (1, Some(108)));
        extents.insert_private(8, Run::new(300, 4));
        assert_eq!((extents.private_pieces(), extents.private_granules()), (2, 12));
        assert_eq!(extents.remove_private(&(2..10)), [(2, Run::new(102, 6)), (8, Run::new(300, 2))]);
        assert_eq!((extents.private_pieces(), extents.private_granules()), (2, 4));
        assert!(extents.is_private(&(0..2)) && extents.is_private(&(10..12)) && extents.is_free(&(2..10)));
    }

    #[test]
    fn a_part_of_a_prefix_counts_a_piece_for_each_of_its_runs() {
        let mut extents = Extents::over(100);
        extents.insert_prefix(10, part(0..4));
        extents.insert_prefix(14, part(4..6));
        assert_eq!((extents.mappings(), extents.private_pieces(), extents.private_granules()), (3 + 2, 0, 0));
        assert!(!extents.is_free(&(13..20)) && !extents.is_private(&(10..11)) && extents.is_free(&(0..10)));
        assert!(extents.prefix(10).is_some() && extents.prefix(11).is_none() && extents.continuation(16).is_none());
        assert!(extents.remove_prefix(14).is_some() && extents.remove_prefix(14).is_none());
        assert_eq!(extents.mappings(), 2 + 2);
    }

    #[test]
    fn pieces_that_touch_have_no_gap_between_them() {
        let mut extents = Extents::over(12);
        assert_eq!(extents.mappings(), 1);
        extents.insert_private(4, Run::new(104, 4));
        assert_eq!(extents.mappings(), 1 + 2);
        extents.insert_private(8, Run::new(50, 4));
        assert_eq!(extents.mappings(), 2 + 1);
        extents.insert_private(0, Run::new(10, 4));
        assert_eq!(extents.mappings(), 3);
        extents.remove_private(&(5..6));
        assert_eq!(extents.mappings(), 4 + 1);
        extents.remove_all();
        assert_eq!((extents.mappings(), extents.private_pieces()), (1, 0));
    }

    #[test]
    fn residue_is_free_and_is_found_again() {
        let mut extents = Extents::over(100);
        extents.insert_residue(4, Run::new(7, 4));
        assert!(extents.is_free(&(0..8)) && !extents.is_private(&(4..8)));
        assert_eq!(extents.remove_residue(&(6..8)), [(6, Run::new(9, 2))]);
        assert_eq!((extents.mappings(), extents.private_granules()), (1 + 2, 0));
        assert_eq!(extents.remove_all().residue, [(4, Run::new(7, 2))]);
    }

    const GRANULES: u64 = 24;

    proptest! {
        #[test]
        fn extents_agree_with_a_table(steps in prop::collection::vec((0..GRANULES, 1..6_u64, 0..100_u64), 0..100)) {
            let (mut extents, mut table) = (Extents::over(GRANULES), [None; 24]);
            for (start, count, first) in steps {
                let range = start..start.saturating_add(count).min(GRANULES);
                let slots = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                let run = Run::new(first, range.end.saturating_sub(range.start));
                prop_assert_eq!(extents.is_free(&range), table[slots.clone()].iter().all(Option::is_none));
                prop_assert_eq!(extents.is_private(&range), table[slots.clone()].iter().all(Option::is_some));
                if extents.is_free(&range) {
                    extents.insert_private(start, run);
                    (first..).zip(&mut table[slots]).for_each(|(frame, slot)| *slot = Some(frame));
                } else if extents.is_private(&range) {
                    let removed = extents.remove_private(&range);
                    let frames = removed.iter().flat_map(|(_, run)| run.first..run.end()).map(Some);
                    prop_assert!(frames.eq(table[slots.clone()].iter().copied()));
                    table[slots].fill(None);
                }
                let committed = table.iter().flatten().count();
                prop_assert_eq!(extents.private_granules(), u64::try_from(committed).unwrap());
                prop_assert_eq!(extents.private_pieces(), extents.by_start.len());
                let joins = |left: &Option<u64>, right: &Option<u64>| left.map(|frame| frame.saturating_add(1)) == *right;
                let mappings = table.chunk_by(|left, right| left.is_some() == right.is_some() && (left.is_none() || joins(left, right)));
                prop_assert_eq!(extents.mappings(), u64::try_from(mappings.count()).unwrap());
            }
        }
    }
}
