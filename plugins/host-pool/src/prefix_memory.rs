//! The physical memory of one prefix: which frames, in which order. Pure; it frees nothing by itself.

use crate::run::Run;
use leasehold_plugin_api::{HolderId, PrefixId};
use std::ops::Range;

/// The frames of one prefix. The handle and every mapping have a share in it; whoever gives the last share up hands it
/// to `Pool::settle`, never to a plain drop, because giving frames back may call the host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PrefixMemory {
    pub(crate) id: PrefixId,
    pub(crate) holder: HolderId,
    pub(crate) runs: Vec<Run>,
}

impl PrefixMemory {
    /// The frames of some of its granules, each run with its distance from the range's beginning.
    pub(crate) fn part(&self, range: &Range<u64>) -> Vec<(u64, Run)> {
        let mut parts = Vec::new();
        let mut begin = 0_u64;
        for run in &self.runs {
            let end = begin.saturating_add(run.frames);
            let (from, to) = (begin.max(range.start), end.min(range.end));
            if from < to {
                let first = run.first.saturating_add(from.saturating_sub(begin));
                parts.push((from.saturating_sub(range.start), Run::new(first, to.saturating_sub(from))));
            }
            begin = end;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_frames_of_its_granules_in_order() {
        let runs = vec![Run::new(100, 4), Run::new(50, 2), Run::new(200, 4)];
        let memory = PrefixMemory { id: PrefixId::new(1), holder: HolderId::new(1), runs };
        assert_eq!(memory.part(&(0..10)), [(0, Run::new(100, 4)), (4, Run::new(50, 2)), (6, Run::new(200, 4))]);
        assert_eq!(memory.part(&(3..7)), [(0, Run::new(103, 1)), (1, Run::new(50, 2)), (3, Run::new(200, 1))]);
        assert_eq!(memory.part(&(5..6)), [(0, Run::new(51, 1))]);
    }
}
