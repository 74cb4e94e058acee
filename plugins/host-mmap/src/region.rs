//! One region or plain allocation: a mapping, the books of what is committed in it, and its share of the mappings.
//!
//! ```text
//! HostMmap ─ Table ─► Region ─ lock ─► OpenRegion ─┬─ Mapping    system calls
//!                                                  ├─ Runs       committed bytes
//!                                                  └─ MapShare   mappings of the process
//! ```
//!
//! In: ranges that the host asks for. Out: whether they were granted, and a typed refusal. The books change together
//! with the mapping, under the region's lock: what can fail and is refused leaves both as they were. Calls about other
//! regions don't wait. A region is unmapped by [`Region::close`]; nothing here panics.

use crate::mapping::Mapping;
use crate::options::{Population, Settings};
use crate::runs::Runs;
use leasehold_host_memory::sys::Counting;
use leasehold_host_memory::{AddressSpace, Fault, MapBudget, MapShare};
use leasehold_plugin_api::toolkit::Lockable;
use leasehold_plugin_api::toolkit::request::{self, name};
use leasehold_plugin_api::{Address, BackingError, CommitRange, ErrorKind, ReleaseOutcome};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SCARCE_MEMORY: &str = "free memory, or raise the limit: vm.overcommit_memory, RLIMIT_DATA, vm.max_map_count";
const STUCK: &str = "unlock the range (munlock), or free others first: the process is at vm.max_map_count";

/// One region or plain allocation.
#[derive(Debug)]
pub(crate) struct Region {
    base: Address,
    bytes: u64,
    settings: Settings,
    state: Mutex<State>,
}

/// A region under its lock. Its life stays `Open` for as long as this is held.
#[derive(Debug)]
pub(crate) struct OpenRegion<'a> {
    region: &'a Region,
    state: MutexGuard<'a, State>,
}

#[derive(Debug)]
struct State {
    life: Life,
    runs: Runs,
    share: MapShare,
}

#[derive(Debug)]
enum Life {
    Open(Mapping),
    /// The pages are gone, the addresses are still there: only a further release is answered.
    Quarantined(Mapping),
    Closed,
}

impl Region {
    /// Takes address space; nothing is committed.
    pub(crate) fn reserve(
        bytes: u64,
        align: u64,
        settings: Settings,
        budget: &'static MapBudget,
    ) -> Result<Self, BackingError> {
        Self::new(bytes, align, Counting::Uncounted, settings, budget)
    }

    /// Takes address space and commits all of it. It is one mapping and keeps no runs.
    pub(crate) fn allocate(
        bytes: u64,
        align: u64,
        settings: Settings,
        budget: &'static MapBudget,
    ) -> Result<Self, BackingError> {
        let region = Self::new(bytes, align, Counting::Counted, settings, budget)?;
        if let Life::Open(mapping) = &region.lock().life {
            back(mapping, &(0..bytes), settings.population).map_err(|fault| out_of_memory(fault, bytes))?;
        }
        Ok(region)
    }

    fn new(
        bytes: u64,
        align: u64,
        counting: Counting,
        settings: Settings,
        budget: &'static MapBudget,
    ) -> Result<Self, BackingError> {
        let share = budget.take(1)?;
        let mapping = Mapping::reserve(bytes, align, counting, settings.advice)
            .map_err(|fault| AddressSpace::refusal(fault, bytes, align))?;
        let base = mapping.base();
        let state = State { life: Life::Open(mapping), runs: Runs::over(bytes), share };
        Ok(Self { base, bytes, settings, state: Mutex::new(state) })
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Address {
        self.base
    }

    /// Unmaps it; `None` when that is done already.
    ///
    /// At the limit of mappings the kernel refuses to unmap a region that it has merged with a neighbour. The pages go
    /// even then, so the answer is a quarantine of zero bytes: the host refunds all of it, and a further release gives
    /// the addresses back. Only where the pages can't go either has nothing changed.
    pub(crate) fn close(&self) -> Option<ReleaseOutcome> {
        let mut state = self.lock();
        let (Life::Open(mapping) | Life::Quarantined(mapping)) = std::mem::replace(&mut state.life, Life::Closed)
        else {
            return None;
        };
        let Err((mapping, fault)) = mapping.close() else {
            state.runs.clear();
            state.share.resize(0);
            return Some(ReleaseOutcome::Complete);
        };
        let advice = "release again once the process holds fewer mappings, or raise vm.max_map_count";
        let error = fault.into_error(ErrorKind::AddressSpaceExhausted, "addresses are still held", advice);
        if mapping.discard().is_ok() {
            state.runs.clear();
            state.life = Life::Quarantined(mapping);
            return Some(ReleaseOutcome::Quarantined { remaining_bytes: 0, error });
        }
        state.life = Life::Open(mapping);
        Some(ReleaseOutcome::Failed(error))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lockable for Region {
    type Open<'a> = OpenRegion<'a>;

    fn open(&self) -> Option<OpenRegion<'_>> {
        let state = self.lock();
        matches!(state.life, Life::Open(_)).then_some(OpenRegion { region: self, state })
    }
}

impl OpenRegion<'_> {
    /// Committed bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.state.runs.bytes()
    }

    /// Refuses a range that isn't whole granules within the region.
    fn range_of(&self, part: &CommitRange) -> Result<Range<u64>, BackingError> {
        request::range_within(part, self.region.settings.granule, self.region.bytes)
    }

    /// Refuses a range that is malformed, or in which something is committed.
    pub(crate) fn check_free(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.runs.is_free(&self.range_of(part)?) {
            return Ok(());
        }
        let why = "holds committed granules; commit each granule once";
        Err(BackingError::new(ErrorKind::AlreadyCommitted, format!("{}: {why}", name(part))))
    }

    /// Refuses a range that is malformed, or in which something is not committed.
    pub(crate) fn check_committed(&self, part: &CommitRange) -> Result<(), BackingError> {
        if self.state.runs.is_committed(&self.range_of(part)?) {
            return Ok(());
        }
        let why = "holds granules that are not committed; decommit only what was committed";
        Err(BackingError::new(ErrorKind::NotCommitted, format!("{}: {why}", name(part))))
    }

    /// Commits a free range, or changes nothing.
    pub(crate) fn commit(&mut self, part: &CommitRange) -> Result<(), BackingError> {
        let range = self.range_of(part)?;
        self.book(range.clone())?;
        let Life::Open(mapping) = &self.state.life else { return Err(BackingError::unknown_id(part.region())) };
        let Err(fault) = back(mapping, &range, self.region.settings.population) else { return Ok(()) };
        self.undo_commit(part);
        Err(out_of_memory(fault, part.bytes))
    }

    /// Enters a range in the books, unless it needs more mappings than there are.
    fn book(&mut self, range: Range<u64>) -> Result<(), BackingError> {
        let state = &mut *self.state;
        state.runs.insert(range.clone());
        let granted = state.share.resize_within_limit(state.runs.mappings());
        if granted.is_err() {
            state.runs.remove(range);
        }
        granted
    }

    /// Takes back a range that this very call committed, wholly or in part. Nobody has touched it, so even a page that
    /// the kernel keeps reads as zero, and the books may have it as free.
    pub(crate) fn undo_commit(&mut self, part: &CommitRange) {
        if let Life::Open(mapping) = &self.state.life {
            let _ = mapping.withdraw(part.offset, part.bytes);
        }
        self.state.unbook(part.offset..part.offset.saturating_add(part.bytes));
    }

    /// Decommits a committed range, or changes nothing.
    pub(crate) fn decommit(&mut self, part: &CommitRange) -> Result<(), BackingError> {
        let range = self.range_of(part)?;
        if let Life::Open(mapping) = &self.state.life {
            let gone = mapping.withdraw(range.start, part.bytes);
            gone.map_err(|fault| fault.into_error(ErrorKind::Internal, name(part), STUCK))?;
        }
        self.state.unbook(range);
        Ok(())
    }
}

impl State {
    fn unbook(&mut self, range: Range<u64>) {
        self.runs.remove(range);
        self.share.resize(self.runs.mappings());
    }
}

/// Makes a range usable. On failure part of it may be.
fn back(mapping: &Mapping, range: &Range<u64>, population: Population) -> Result<(), Fault> {
    let bytes = range.end.saturating_sub(range.start);
    mapping.open_access(range.start, bytes)?;
    match population {
        Population::OnTouch => Ok(()),
        Population::AtCommit => mapping.populate(range.start, bytes),
    }
}

fn out_of_memory(fault: Fault, bytes: u64) -> BackingError {
    let what = format!("no memory for {bytes} bytes");
    fault.into_error(ErrorKind::OutOfMemory, what, SCARCE_MEMORY).with_requested(bytes)
}
