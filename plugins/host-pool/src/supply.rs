//! Frames on their way to a region or prefix: obtained before anything is mapped, returned exactly on drop.
//!
//! In: what `Pool::obtain` found. Out: pieces to map, and on [`Supply::keep`] nothing more: they are the taker's.
//! Dropped before that, parked frames are parked again as they were, holes are holes again, and what was charged is
//! refunded; so a supply is dropped with no lock held.

use crate::frames::Need;
use crate::parked::Parcel;
use crate::pool::Pool;
use crate::prefix_memory::PrefixMemory;
use crate::run::{Run, frames_of};
use leasehold_plugin_api::HolderId;
use std::sync::Arc;

/// Consecutive frames of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) run: Run,
    /// Who left bytes there and when they were parked; `None` for holes.
    pub(crate) former: Option<(HolderId, u64)>,
}

impl Piece {
    pub(crate) fn parked(parcel: Parcel) -> Self {
        Self { run: parcel.run, former: Some((parcel.holder, parcel.age)) }
    }

    pub(crate) fn fresh(run: Run) -> Self {
        Self { run, former: None }
    }
}

/// The frames of one call, part by part.
#[derive(Debug)]
pub(crate) struct Supply<'a> {
    pool: &'a Pool,
    pub(crate) parts: Vec<Vec<Piece>>,
    /// Parked frames in small pieces, part by part, until they are exchanged for holes.
    pub(super) fragments: Vec<Vec<Piece>>,
    /// How many of the holes among the parts are owned already, since fragments were given back for them.
    pub(super) exchanged_frames: u64,
    /// What was charged for the other holes among them.
    pub(crate) charged_bytes: u64,
}

impl<'a> Supply<'a> {
    /// Nothing yet, for so many parts.
    pub(super) fn new(pool: &'a Pool, parts: usize) -> Self {
        let none = || vec![Vec::new(); parts];
        Self { pool, parts: none(), fragments: none(), exchanged_frames: 0, charged_bytes: 0 }
    }

    /// Adds parked frames to a part.
    pub(super) fn add(&mut self, part: usize, pieces: Vec<Piece>, fragments: Vec<Piece>) {
        for (all, added) in [(&mut self.parts, pieces), (&mut self.fragments, fragments)] {
            if let Some(all) = all.get_mut(part) {
                all.extend(added);
            }
        }
    }

    /// The runs that a part has.
    pub(super) fn runs(&self, part: usize) -> impl Iterator<Item = Run> {
        self.parts.get(part).into_iter().flatten().map(|piece| piece.run)
    }

    /// How many frames it has.
    pub(super) fn frames(&self) -> u64 {
        frames_of(self.parts.iter().chain(&self.fragments).flatten().map(|piece| &piece.run))
    }

    /// How many frames a part lacks of its need.
    pub(super) fn lacking(&self, part: usize, need: &Need) -> u64 {
        let has = |all: &[Vec<Piece>]| all.get(part).map_or(0, |pieces| frames_in(pieces));
        need.frames.saturating_sub(has(&self.parts).saturating_add(has(&self.fragments)))
    }

    /// The frames are the taker's; answers the bytes that are newly owned.
    pub(crate) fn keep(mut self) -> u64 {
        self.parts.clear();
        self.exchanged_frames = 0;
        std::mem::take(&mut self.charged_bytes)
    }
}

impl Drop for Supply<'_> {
    fn drop(&mut self) {
        let pieces = self.parts.iter().chain(&self.fragments).flatten().copied();
        self.pool.take_back(pieces, self.charged_bytes, self.exchanged_frames);
    }
}

/// How many frames the pieces are.
pub(crate) fn frames_in(pieces: &[Piece]) -> u64 {
    frames_of(pieces.iter().map(|piece| &piece.run))
}

/// What a call took out of regions under their locks, for `Pool::settle` once no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    /// Frames that are behind nothing any more, and who left bytes in them.
    pub(crate) frames: Vec<(Run, HolderId)>,
    /// Shares in prefixes.
    pub(crate) memories: Vec<Arc<PrefixMemory>>,
    /// Charged bytes that were given back although their mapping could not be removed.
    pub(crate) emptied_bytes: u64,
    /// Frames that were given back earlier, and whose mapping is gone now.
    pub(crate) residue: Vec<Run>,
}

impl Returns {
    /// Private frames that are behind nothing any more.
    pub(crate) fn add_frames(&mut self, runs: Vec<(u64, Run)>, holder: HolderId) {
        self.frames.extend(runs.into_iter().map(|(_, run)| (run, holder)));
    }

    /// Residue whose mapping is gone.
    pub(crate) fn add_residue(&mut self, runs: Vec<(u64, Run)>) {
        self.residue.extend(runs.into_iter().map(|(_, run)| run));
    }

    /// Frames that stay behind a mapping which could not be removed: their memory is given back, now or when the mapping
    /// goes, and nobody gets them. The supply itself refunds what it charged for holes among them.
    pub(crate) fn abandon(&mut self, pieces: Vec<Piece>, pool: &Pool) {
        let parked = pieces.iter().filter(|piece| piece.former.is_some()).map(|piece| piece.run);
        let (emptied, unemptied): (Vec<Run>, Vec<Run>) = parked.partition(|run| pool.empty(*run).is_ok());
        self.emptied_bytes = self.emptied_bytes.saturating_add(pool.bytes(frames_of(&emptied)));
        unemptied.into_iter().for_each(|run| pool.note_unemptied(run));
    }
}
