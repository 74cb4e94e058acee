//! How many runs of parked frames may serve as they are: pure arithmetic.
//!
//! Each run of frames that follow each other is one mapping of the kernel. A region that takes scattered parked frames
//! gains a piece with every growth, so the bound holds for the region, over all its calls: a run serves as it is where
//! it continues the region, or where that leaves the region within [`MOST_PIECES`]. The rest of a need is served by
//! frames that lie side by side; see `obtaining.rs`.

use crate::frames::Need;
use crate::run::Run;
use leasehold_plugin_api::RegionId;

/// The most pieces that parked frames leave a region in. Fresh frames add one more, which grows as its headroom does. A
/// second parked run was measured to cost more than it saves: it is short by then, and soon followed by fresh frames.
const MOST_PIECES: usize = 1;

/// The same for a plain allocation or a prefix, which gets its frames once.
const MOST_PIECES_AT_ONCE: usize = 4;

/// Counts the pieces of each region over the needs of one call, which come in the order of their regions.
#[derive(Debug, Default)]
pub(crate) struct PieceBound {
    region: Option<RegionId>,
    /// Pieces that earlier needs of the same region add.
    added: usize,
}

impl PieceBound {
    /// How many more runs may serve a need for which `runs` are taken already.
    pub(crate) fn left(&mut self, need: &Need, runs: impl IntoIterator<Item = Run>) -> usize {
        let region = need.growth.map(|(region, _)| region);
        if region.is_none() || region != self.region {
            *self = Self { region, added: 0 };
        }
        self.added = self.added.saturating_add(new_pieces(need.after, runs));
        let most = if region.is_some() { MOST_PIECES } else { MOST_PIECES_AT_ONCE };
        most.saturating_sub(need.pieces.saturating_add(self.added))
    }

    /// Notes that so many runs were taken of those left.
    pub(crate) fn add(&mut self, runs: usize) {
        self.added = self.added.saturating_add(runs);
    }
}

/// In how many pieces the runs are that follow frame `after`; what continues a piece is none of its own.
fn new_pieces(mut after: Option<u64>, runs: impl IntoIterator<Item = Run>) -> usize {
    let begins_piece = |run: &Run| after.replace(run.end()) != Some(run.first);
    runs.into_iter().filter(begins_piece).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_plugin_api::{HolderId, MemoryRole};

    fn need(region: u64, pieces: usize, after: Option<u64>) -> Need {
        let growth = Some((RegionId::new(region), 99));
        Need { frames: 9, holder: HolderId::NOBODY, role: MemoryRole::KvCache, after, pieces, growth }
    }

    #[test]
    fn runs_that_continue_a_piece_are_no_pieces() {
        let runs = [Run::new(10, 2), Run::new(12, 1), Run::new(20, 1)];
        assert_eq!(new_pieces(Some(10), runs), 1);
        assert_eq!(new_pieces(None, runs), 2);
        assert_eq!(new_pieces(Some(10), []), 0);
    }

    #[test]
    fn pieces_a_region_has_count_against_its_bound() {
        for pieces in 0..9 {
            let left = PieceBound::default().left(&need(1, pieces, Some(4)), [Run::new(4, 1)]);
            assert_eq!(left, MOST_PIECES.saturating_sub(pieces));
        }
    }

    #[test]
    fn needs_of_one_region_share_one_bound() {
        let mut bound = PieceBound::default();
        assert_eq!(bound.left(&need(1, 0, None), []), MOST_PIECES);
        bound.add(MOST_PIECES);
        assert_eq!(bound.left(&need(1, 0, None), []), 0);
        assert_eq!(bound.left(&need(2, 0, None), []), MOST_PIECES);
    }
}
