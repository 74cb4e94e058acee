//! One region or plain allocation: a window, the books of what is mapped in it, and its share of the mappings.
//!
//! ```text
//! HostPool ─ Table ─► LiveRegion ─ lock ─► OpenRegion ─┬─ Window     system calls
//!                                                      ├─ Extents    which frames are where
//!                                                      └─ MapShare   mappings of the process
//! ```
//!
//! In: ranges that the host asks for, and frames for them. Out: whether they were mapped; what is no longer mapped goes
//! into [`Returns`], because settling it may call the host and the region is locked. The books change together with the
//! window: what can fail and is refused leaves both as they were. Committing is the business of `commitment.rs`,
//! prefixes are that of `placement.rs`. A region is unmapped by [`LiveRegion::close`]; nothing here panics.

use crate::extents::{Contents, Extents};
use crate::frames::Need;
use crate::pool::Pool;
use crate::run::frames_of;
use crate::supply::Returns;
use crate::window::Window;
use leasehold_host_memory::{AddressSpace, Fault, MapBudget, MapShare};
use leasehold_plugin_api::toolkit::Lockable;
use leasehold_plugin_api::toolkit::request::{self, name};
use leasehold_plugin_api::{Address, BackingError, CommitRange, ErrorKind, HolderId, MemoryRole, ReleaseOutcome};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What to do about addresses that the kernel does not take back.
pub(crate) const HELD: &str = "release again once the process holds fewer mappings, or raise vm.max_map_count";

/// For whom a region is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    pub(crate) holder: HolderId,
    pub(crate) role: MemoryRole,
}

/// One region or plain allocation.
#[derive(Debug)]
pub(crate) struct LiveRegion {
    pub(crate) base: Address,
    bytes: u64,
    granule: u64,
    pub(crate) purpose: Purpose,
    state: Mutex<State>,
}

/// A region under its lock. Its life stays `Open` for as long as this is held.
#[derive(Debug)]
pub(crate) struct OpenRegion<'a> {
    pub(crate) region: &'a LiveRegion,
    pub(crate) state: MutexGuard<'a, State>,
}

#[derive(Debug)]
pub(crate) struct State {
    life: Life,
    pub(crate) extents: Extents,
    pub(crate) share: MapShare,
}

#[derive(Debug)]
enum Life {
    Open(Window),
    /// Some of it is still there: only a further release is answered.
    Quarantined(Window),
    Closed,
}

impl LiveRegion {
    /// Takes address space; nothing is committed.
    pub(crate) fn reserve(
        bytes: u64,
        align: u64,
        purpose: Purpose,
        granule: u64,
        budget: &'static MapBudget,
    ) -> Result<Self, BackingError> {
        let share = budget.take(1)?;
        let window = Window::reserve(bytes, align).map_err(|fault| AddressSpace::refusal(fault, bytes, align))?;
        let base = window.base();
        let state = State { life: Life::Open(window), extents: Extents::over(bytes.div_euclid(granule)), share };
        Ok(Self { base, bytes, granule, purpose, state: Mutex::new(state) })
    }

    /// What its whole size needs, as a plain allocation does.
    pub(crate) fn whole_need(&self) -> Need {
        let Purpose { holder, role } = self.purpose;
        Need { frames: self.granules_in(self.bytes), holder, role, after: None, pieces: 0, growth: None }
    }

    /// Unmaps it; `None` when that is done already.
    ///
    /// At the limit of mappings the kernel refuses to unmap a region that it has merged with a neighbour. What is
    /// mapped in it goes even then, piece by piece; a piece that can't go is emptied, and its frames go to nobody.
    pub(crate) fn close(&self, pool: &Pool, returns: &mut Returns) -> Option<ReleaseOutcome> {
        let mut state = self.lock();
        let (Life::Open(window) | Life::Quarantined(window)) = std::mem::replace(&mut state.life, Life::Closed) else {
            return None;
        };
        let contents = state.extents.remove_all();
        let Err((window, fault)) = window.close() else {
            let Contents { private, residue, prefixes } = contents;
            returns.add_frames(private, self.purpose.holder);
            returns.add_residue(residue);
            returns.memories.extend(prefixes.into_iter().map(|(_, part)| part.memory));
            state.share.resize(0);
            return Some(ReleaseOutcome::Complete);
        };
        let remaining_bytes = self.clear(&window, contents, &mut state.extents, pool, returns);
        let error = fault.into_error(ErrorKind::AddressSpaceExhausted, "addresses are still held", HELD);
        state.life = Life::Quarantined(window);
        Some(ReleaseOutcome::Quarantined { remaining_bytes, error })
    }

    /// Takes away what can be taken from a window that can't be closed, and enters the rest in the books again. Answers
    /// the bytes that are still owned.
    fn clear(
        &self,
        window: &Window,
        contents: Contents,
        extents: &mut Extents,
        pool: &Pool,
        returns: &mut Returns,
    ) -> u64 {
        let Contents { private, residue, prefixes } = contents;
        let is_gone = |start: u64, granules: u64| window.withdraw(self.at(start), self.at(granules)).is_ok();
        let mut remaining = Vec::new();
        for (start, run) in private {
            if is_gone(start, run.frames) {
                returns.frames.push((run, self.purpose.holder));
            } else if pool.empty(run).is_ok() {
                returns.emptied_bytes = returns.emptied_bytes.saturating_add(pool.bytes(run.frames));
                extents.insert_residue(start, run);
            } else {
                remaining.push(run);
                extents.insert_private(start, run);
            }
        }
        for (start, run) in residue {
            if is_gone(start, run.frames) { returns.residue.push(run) } else { extents.insert_residue(start, run) }
        }
        for (start, part) in prefixes {
            let granules = part.granules.end.saturating_sub(part.granules.start);
            if is_gone(start, granules) {
                returns.memories.push(part.memory)
            } else {
                extents.insert_prefix(start, part)
            }
        }
        pool.bytes(frames_of(&remaining))
    }

    /// Bytes from the base to a granule.
    pub(crate) fn at(&self, granule: u64) -> u64 {
        granule.saturating_mul(self.granule)
    }

    /// Whole granules in so many bytes.
    pub(crate) fn granules_in(&self, bytes: u64) -> u64 {
        bytes.div_euclid(self.granule)
    }

    /// Whether so many bytes are whole granules.
    pub(crate) fn is_whole(&self, bytes: u64) -> bool {
        bytes.is_multiple_of(self.granule)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lockable for LiveRegion {
    type Open<'a> = OpenRegion<'a>;

    fn open(&self) -> Option<OpenRegion<'_>> {
        let state = self.lock();
        matches!(state.life, Life::Open(_)).then_some(OpenRegion { region: self, state })
    }
}

impl OpenRegion<'_> {
    /// Committed bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.region.at(self.state.extents.private_granules())
    }

    /// The granules of a range; refuses one that isn't whole granules within the region.
    pub(crate) fn granules_of(&self, part: &CommitRange) -> Result<Range<u64>, BackingError> {
        let granule = self.region.granule;
        let range = request::range_within(part, granule, self.region.bytes)?;
        Ok(range.start.div_euclid(granule)..range.end.div_euclid(granule))
    }

    /// Refuses a range that is malformed, or in which something is mapped.
    pub(crate) fn check_free(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.extents.is_free(&self.granules_of(part)?) {
            return Ok(());
        }
        let why = "holds granules that are committed, or a prefix; commit each granule once";
        Err(BackingError::new(ErrorKind::AlreadyCommitted, format!("{}: {why}", name(part))))
    }

    /// Refuses a range that is malformed, or in which something is not committed.
    pub(crate) fn check_private(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.extents.is_private(&self.granules_of(part)?) {
            return Ok(());
        }
        let why = "holds granules that are not committed, or a prefix; decommit only what was committed";
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(part))))
    }

    /// What committing a range needs.
    pub(crate) fn need(&self, part: &CommitRange) -> Result<Need, BackingError> {
        let range = self.granules_of(part)?;
        let LiveRegion { bytes, granule, purpose: Purpose { holder, role }, .. } = *self.region;
        let room = bytes.div_euclid(granule).saturating_sub(range.start);
        let after = self.state.extents.continuation(range.start);
        let frames = range.end.saturating_sub(range.start);
        let pieces = self.state.extents.private_pieces();
        Ok(Need { frames, holder, role, after, pieces, growth: Some((part.region(), room)) })
    }

    /// The window, which is there for as long as the region is open.
    pub(crate) fn window(&self) -> Result<&Window, Fault> {
        match &self.state.life {
            Life::Open(window) => Ok(window),
            Life::Quarantined(_) | Life::Closed => Err(Fault::new("a region that is closed", Errno::INVAL)),
        }
    }

    /// Sets the share to what is left after something went, whatever the limit says: freeing has to work.
    pub(crate) fn resize_share(&mut self) {
        let state = &mut *self.state;
        state.share.resize(state.extents.mappings());
    }
}
