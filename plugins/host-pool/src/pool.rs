//! Where frames come from and go to: holes that are charged before they are taken, and parked frames that are paid for.
//!
//! ```text
//!              obtain                        keep
//!   Frames ──────────────► Supply ─────────────────────► a region, a prefix
//!     ▲  parked, or holes    │ drop: as it was                  │
//!     │  after a charge      ▼                                  ▼
//!     ├───────────────────── ┘                               Returns
//!     └── park, up to the bound ◄── settle ◄────────────────────┘
//!                                      └─► past the bound: Store::punch, then refund
//! ```
//!
//! How frames are obtained is in `obtaining.rs`.
//!
//! It owns the files and the books of frames. The lock on those books is never held while the treasury is called, and
//! the callers hold none of theirs: a charge may come back into this pool. Frames that are in neither book belong to
//! whoever took them. Nothing panics.
#![expect(unsafe_code, reason = "vouches for whose the frames are that it maps")]

use crate::frames::Frames;
use crate::options::{Scrub, Settings};
use crate::parked::Parcel;
use crate::run::{Run, frames_of};
use crate::store::{self, Store};
use crate::supply::{Piece, Returns, frames_in};
use crate::treasury::Treasury;
use crate::window::{Treatment, Window};
use leasehold_host_memory::Fault;
use leasehold_plugin_api::{BackingError, ErrorKind, HolderId, RegionId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    /// Invariant 1: frames that are in it are behind no mapping that the host may use. Those that are not are their
    /// taker's (invariant 1 of [`Frames`]): a region's or an allocation's, mapped into its window alone, or a prefix's,
    /// mapped into its window alone until that is read-only. What comes back through [`Pool::settle`] or a dropped
    /// `Supply` was withdrawn before; what can't be withdrawn stays its region's, as residue. So [`Pool::place`] gets a
    /// supply's pieces for the one window of their taker, and [`Pool::map`] a prefix's runs: for its own window, or
    /// read-only once it is sealed.
    frames: Mutex<Frames>,
    pub(crate) books: Box<dyn Treasury>,
}

impl Pool {
    /// A pool with its first segment, so that a machine without such files is found here.
    pub(crate) fn new(settings: Settings, store: Store, books: Box<dyn Treasury>) -> Result<Self, BackingError> {
        let mut frames = Frames::new(store.frames_per_segment());
        store.open_another().map_err(store::unavailable)?;
        frames.add_segment();
        Ok(Self { settings, store, frames: Mutex::new(frames), books })
    }

    /// Bytes that so many frames have.
    pub(crate) fn bytes(&self, frames: u64) -> u64 {
        frames.saturating_mul(self.settings.granule)
    }

    /// Bytes that are owned and behind nothing.
    pub(crate) fn parked_bytes(&self) -> u64 {
        self.bytes(self.lock().parked_frames())
    }

    /// Parks what a call took out of regions, and gives back what is too much. Answers the bytes that are owned no
    /// longer. The caller holds no lock.
    pub(crate) fn settle(&self, returns: Returns) -> u64 {
        let Returns { frames: private, memories, emptied_bytes, residue } = returns;
        self.refund(emptied_bytes);
        residue.into_iter().for_each(|run| self.recover(run));
        let last = memories.into_iter().filter_map(Arc::into_inner);
        let shared = last.flat_map(|memory| memory.runs.into_iter().map(move |run| (run, memory.holder)));
        let returned: Vec<_> = private.into_iter().chain(shared).collect();
        let excess = self.park(returned);
        emptied_bytes.saturating_add(self.give_back(excess).0)
    }

    fn park(&self, returned: Vec<(Run, HolderId)>) -> Vec<Parcel> {
        let mut frames = self.lock();
        let age = frames.age();
        let excess = returned.into_iter().map(|(run, holder)| {
            let parcel = Parcel { run, holder, age };
            Parcel { run: frames.park_within(self.settings.park_frames, parcel), ..parcel }
        });
        excess.collect()
    }

    /// Gives parked memory up, the oldest first; see [`Backing::trim`](leasehold_plugin_api::Backing::trim).
    pub(crate) fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let mut left = bytes.div_ceil(self.settings.granule);
        let mut oldest = Vec::new();
        let mut frames = self.lock();
        while left > 0
            && let Some(parcel) = frames.take_oldest(left)
        {
            left = left.saturating_sub(parcel.run.frames);
            oldest.push(parcel);
        }
        drop(frames);
        match self.give_back(oldest) {
            (0, Some(fault)) => {
                let advice = "it stays parked and charged; try again";
                Err(fault.into_error(ErrorKind::Internal, "parked memory can't be given back", advice))
            }
            (given, _) => Ok(given),
        }
    }

    /// Makes holes of frames that are in neither book, and refunds them. What the kernel keeps stays charged, and is
    /// parked whatever the bound. Answers the bytes given back, and what the kernel said last.
    pub(crate) fn give_back(&self, parcels: Vec<Parcel>) -> (u64, Option<Fault>) {
        let mut last_fault = None;
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for parcel in parcels.into_iter().filter(|parcel| !parcel.run.is_empty()) {
            match self.store.punch(parcel.run) {
                Ok(()) => gone.push(parcel.run),
                Err(fault) => {
                    last_fault = Some(fault);
                    kept.push(parcel);
                }
            }
        }
        let bytes = self.bytes(frames_of(&gone));
        let mut frames = self.lock();
        gone.into_iter().for_each(|run| frames.insert_hole(run));
        kept.into_iter().for_each(|parcel| frames.park(parcel));
        drop(frames);
        self.refund(bytes);
        if let Some(fault) = last_fault {
            self.report(&format!("memory stays parked past what may be: {fault}"));
        }
        (bytes, last_fault)
    }

    /// Gives memory back that is still behind a mapping. Nobody may have the frames before that is gone.
    pub(crate) fn empty(&self, run: Run) -> Result<(), Fault> {
        self.store.punch(run)
    }

    /// Makes frames whose mapping is gone holes again; what could not be emptied before is refunded now. Where the kernel
    /// refuses, nobody gets them any more.
    fn recover(&self, run: Run) {
        if let Err(fault) = self.store.punch(run) {
            return self.report(&format!("{} frames are lost: {fault}", run.frames));
        }
        let mut frames = self.lock();
        let owned = frames.take_unemptied(run);
        frames.insert_hole(run);
        drop(frames);
        self.refund(self.bytes(owned));
    }

    /// The memory of frames that nobody can take back yet stays owned, until it can be emptied.
    pub(crate) fn note_unemptied(&self, run: Run) {
        self.lock().note_unemptied(run);
    }

    /// Maps pieces one behind the other, each as what is in it and `holder` demand. On failure part of it may be
    /// mapped.
    pub(crate) fn place(&self, window: &Window, offset: u64, pieces: &[Piece], holder: HolderId) -> Result<(), Fault> {
        let mut at = offset;
        let joined = pieces.chunk_by(|left, right| {
            left.run.end() == right.run.first && self.treatment(left, holder) == self.treatment(right, holder)
        });
        for pieces in joined {
            let Some(first) = pieces.first() else { continue };
            let run = Run::new(first.run.first, frames_in(pieces));
            // SAFETY: a supply's frames are its taker's alone, whose one window this is (1).
            unsafe { self.store.map(window, at, run, self.treatment(first, holder)) }?;
            at = at.saturating_add(self.bytes(run.frames));
        }
        Ok(())
    }

    fn treatment(&self, piece: &Piece, holder: HolderId) -> Treatment {
        match (piece.former, self.settings.scrub) {
            (None, _) => Treatment::Fresh,
            (Some((former, _)), Scrub::Holders) if holder.may_see(former) => Treatment::Resident,
            (Some(_), Scrub::Holders | Scrub::Always) => Treatment::Scrubbed,
        }
    }

    /// Maps a run of a prefix as it is.
    pub(crate) fn map(&self, window: &Window, offset: u64, run: Run, treatment: Treatment) -> Result<(), Fault> {
        // SAFETY: into the prefix's own window, or a sealed prefix's read-only (1).
        unsafe { self.store.map(window, offset, run, treatment) }
    }

    /// The region will not grow any more.
    pub(crate) fn end_headroom(&self, region: RegionId) {
        self.lock().end_headroom(region);
    }

    /// Tells the host what no call can answer.
    pub(crate) fn report(&self, what: &str) {
        self.books.report(what);
    }

    pub(crate) fn refund(&self, bytes: u64) {
        if bytes > 0 {
            self.books.refund(bytes);
        }
    }

    #[cfg(test)]
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.store.resident_bytes()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
