//! What a region does with frames of its own: commit, undo, decommit.
//!
//! In: ranges that were checked, and frames for them. Out: whether they are mapped. Where the kernel refuses to remove
//! a mapping, the frames behind it become residue: they are emptied, and nobody gets them before the mapping is gone.

use crate::pool::Pool;
use crate::region::OpenRegion;
use crate::supply::{Piece, Returns};
use leasehold_host_memory::Fault;
use leasehold_plugin_api::toolkit::request::name;
use leasehold_plugin_api::{BackingError, CommitRange, ErrorKind};
use std::fmt::Display;
use std::ops::Range;

/// Mapping takes no memory: what the kernel lacks then is mappings.
pub(crate) const SCARCE_MAPS: &str = "unmap others first, or raise vm.max_map_count";
const STUCK: &str = "free others first: the process is at vm.max_map_count";

/// The refusal of a call, where `again` kept what it had done from being undone.
pub(crate) fn broken_off(refusal: &BackingError, again: impl Display) -> BackingError {
    let error = BackingError::new(ErrorKind::BrokenOff, format!("{refusal}; and undoing it failed: {again}"));
    match refusal.native_code() {
        Some(code) => error.with_native_code(code),
        None => error,
    }
}

impl OpenRegion<'_> {
    /// Commits a free range with these frames, or changes nothing. Answers its granules.
    pub(crate) fn commit(
        &mut self,
        part: &CommitRange,
        pieces: &mut Vec<Piece>,
        pool: &Pool,
        returns: &mut Returns,
    ) -> Result<Range<u64>, BackingError> {
        let range = self.granules_of(part)?;
        self.commit_granules(&range, pieces, pool, returns)?;
        Ok(range)
    }

    /// Commits free granules of the region with these frames, or changes nothing.
    pub(crate) fn commit_granules(
        &mut self,
        range: &Range<u64>,
        pieces: &mut Vec<Piece>,
        pool: &Pool,
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let residue = self.state.extents.remove_residue(range);
        if let Err(refusal) = self.book(range, pieces) {
            residue.into_iter().for_each(|(start, run)| self.state.extents.insert_residue(start, run));
            return Err(refusal);
        }
        let Err(fault) = self.place(range, pieces, pool) else {
            returns.add_residue(residue);
            return Ok(());
        };
        if self.undo_commit(range, pieces, pool, returns) {
            returns.add_residue(residue);
        }
        let bytes = self.region.at(range.end.saturating_sub(range.start));
        let what = format!("{bytes} bytes can't be mapped");
        Err(fault.into_error(ErrorKind::AddressSpaceExhausted, what, SCARCE_MAPS).with_requested(bytes))
    }

    /// Enters frames in the books, unless they need more mappings than there are.
    fn book(&mut self, range: &Range<u64>, pieces: &[Piece]) -> Result<(), BackingError> {
        let state = &mut *self.state;
        let mut start = range.start;
        for Piece { run, .. } in pieces {
            state.extents.insert_private(start, *run);
            start = start.saturating_add(run.frames);
        }
        let granted = state.share.resize_within_limit(state.extents.mappings());
        if granted.is_err() {
            state.extents.remove_private(range);
        }
        granted
    }

    fn place(&self, range: &Range<u64>, pieces: &[Piece], pool: &Pool) -> Result<(), Fault> {
        pool.place(self.window()?, self.region.at(range.start), pieces, self.region.purpose.holder)
    }

    /// Takes back a range that this very call committed, wholly or in part; the frames stay the supply's. Where the
    /// kernel refuses, they become residue, and the answer is no. Either way nothing of the range counts as committed,
    /// and it can be committed again: so a commit that is undone leaves no doubt.
    pub(crate) fn undo_commit(
        &mut self,
        range: &Range<u64>,
        pieces: &mut Vec<Piece>,
        pool: &Pool,
        returns: &mut Returns,
    ) -> bool {
        let (offset, bytes) = (self.region.at(range.start), self.region.at(range.end.saturating_sub(range.start)));
        let is_gone = self.window().and_then(|window| window.withdraw(offset, bytes)).is_ok();
        let runs = self.state.extents.remove_private(range);
        if !is_gone {
            runs.into_iter().for_each(|(start, run)| self.state.extents.insert_residue(start, run));
            returns.abandon(std::mem::take(pieces), pool);
        }
        self.resize_share();
        is_gone
    }

    /// Decommits a committed range. Where the kernel refuses, the beginning of it stays committed, or all of it.
    ///
    /// At the limit of mappings the kernel refuses to replace the middle of one. Freeing has to work even then, so the
    /// frames are emptied where they are, and stay with their addresses until those are mapped anew or given back.
    pub(crate) fn decommit(
        &mut self,
        part: &CommitRange,
        pool: &Pool,
        returns: &mut Returns,
    ) -> Result<(), BackingError> {
        let range = self.granules_of(part)?;
        let withdrawn = self.window().and_then(|window| window.withdraw(part.offset, part.bytes));
        let runs = self.state.extents.remove_private(&range);
        if withdrawn.is_ok() {
            returns.add_frames(runs, self.region.purpose.holder);
            self.resize_share();
            return Ok(());
        }
        let mut refused = None;
        for (start, run) in runs.into_iter().rev() {
            match refused.map_or_else(|| pool.empty(run), Err) {
                Ok(()) => {
                    returns.emptied_bytes = returns.emptied_bytes.saturating_add(pool.bytes(run.frames));
                    self.state.extents.insert_residue(start, run);
                }
                Err(fault) => {
                    refused = Some(fault);
                    self.state.extents.insert_private(start, run);
                }
            }
        }
        self.resize_share();
        refused.map_or(Ok(()), |fault| Err(fault.into_error(ErrorKind::Internal, name(part), STUCK)))
    }
}
