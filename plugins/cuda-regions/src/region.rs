//! One region: its reservation, what is mapped in it, and its end.

mod open;
mod unmapping;

pub(crate) use open::OpenRegion;
pub(crate) use unmapping::Stuck;

use crate::broken::Broken;
use crate::contents::{Contents, PrefixMemory};
use crate::options::DeviceSetting;
use crate::source::{HandleRelease, Need, Piece, Returned};
use leasehold_cuda_driver::{Access, Fault, Grant, PhysicalHandle, Reservation};
use leasehold_plugin_api::toolkit::Lockable;
use leasehold_plugin_api::{Address, BackingError, ErrorKind, HolderId, MemoryRole, ReleaseOutcome};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What somebody wants of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) holder: HolderId,
    pub(crate) role: MemoryRole,
}

/// One region of device memory, or one plain allocation.
#[derive(Debug)]
pub(crate) struct Region {
    base: Address,
    wanted: Wanted,
    granule: u64,
    /// Who gets access.
    ordinals: Arc<[u32]>,
    handle_release: HandleRelease,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once the addresses are given back.
    space: Option<Reservation>,
    contents: Contents<PhysicalHandle>,
    under_way: UnderWay,
    writing: Writing,
    life: Life,
}

/// Whether what is committed may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Open,
    /// Ending it failed half-way: some of it may be read-only.
    InDoubt,
    Ended,
}

/// What a copy does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Read,
    Write,
}

/// Why a copy was not made, or not as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Uncopied {
    /// Some of the bytes are not there.
    NotCommitted,
    /// Some of them are sealed.
    Sealed,
    Failed(Fault),
}

/// What was begun on the device and nobody has waited for yet: it must end before anything is unmapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UnderWay {
    zeroing: bool,
    copies: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    /// Only a further release is answered.
    Quarantined,
}

/// What a call took out of regions, for its source once no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    pub(crate) handles: Vec<Returned>,
    pub(crate) memories: Vec<Arc<PrefixMemory<PhysicalHandle>>>,
}

impl Returns {
    pub(crate) fn append(&mut self, mut other: Self) {
        self.handles.append(&mut other.handles);
        self.memories.append(&mut other.memories);
    }
}

impl Region {
    /// Takes address space; nothing is mapped.
    pub(crate) fn reserve(
        setting: &DeviceSetting,
        handle_release: HandleRelease,
        wanted: Wanted,
    ) -> Result<Self, BackingError> {
        let Wanted { bytes, align, .. } = wanted;
        let space = setting.device.reserve(bytes, align).map_err(|fault| {
            let what = match fault.kind() {
                ErrorKind::AddressSpaceExhausted => format!("no address space for {bytes} bytes aligned to {align}"),
                // The first one makes the context, which takes memory of the device.
                _ => format!("{bytes} bytes not reserved"),
            };
            fault.into_error(what, fault.advice()).with_requested(bytes)
        })?;
        let (base, granule, ordinals) = (space.base(), setting.granule, Arc::clone(&setting.ordinals));
        let state = State {
            space: Some(space),
            contents: Contents::default(),
            under_way: UnderWay::default(),
            writing: Writing::Open,
            life: Life::Open,
        };
        Ok(Self { base, wanted, granule, ordinals, handle_release, state: Mutex::new(state) })
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Address {
        self.base
    }

    /// What that many granules of it need.
    pub(crate) fn need(&self, granules: u64) -> Need {
        Need { granules, holder: self.wanted.holder, role: self.wanted.role }
    }

    /// Who gets which access to what is mapped.
    fn grants(&self, access: Access) -> Vec<Grant> {
        self.ordinals.iter().map(|ordinal| Grant { ordinal: *ordinal, access }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an address range lies within it, and if so where.
    pub(crate) fn offset_of(&self, address: Address, bytes: u64) -> Option<u64> {
        let offset = address.get().checked_sub(self.base.get())?;
        let end = offset.checked_add(bytes)?;
        (end <= self.wanted.bytes).then_some(offset)
    }

    /// Whether the addresses are its own still.
    pub(crate) fn has_space(&self) -> bool {
        self.lock().space.is_some()
    }

    /// Lets nobody write any more, once all work on the device is done, or leaves all of it writable; `None` once the
    /// addresses are given back.
    pub(crate) fn seal(&self) -> Option<Result<(), Broken>> {
        let mut state = self.lock();
        let outcome = state.space.as_ref().map(|space| self.end_writing(space))?;
        match &outcome {
            Ok(()) => state.writing = Writing::Ended,
            Err(broken) if broken.undo.is_some() => state.writing = Writing::InDoubt,
            Err(_) => {}
        }
        Some(outcome)
    }

    fn end_writing(&self, space: &Reservation) -> Result<(), Broken> {
        let _bound = space.device().bind().map_err(Broken::undone)?;
        space.device().wait_for_all().map_err(Broken::undone)?;
        let set = |access| space.set_access(0, space.bytes(), &self.grants(access));
        let ended = set(Access::ReadOnly).and_then(|()| self.check_read_only(space));
        // Nothing says that a call which fails changed no part of the range.
        ended.map_err(|fault| Broken { fault, undo: set(Access::ReadWrite).err() })
    }

    /// Refuses a device on which what was set to reading may be written: no attribute shows that beforehand.
    fn check_read_only(&self, space: &Reservation) -> Result<(), Fault> {
        for ordinal in &*self.ordinals {
            if space.access(0, *ordinal)? != Some(Access::ReadOnly) {
                return Err(Fault::not_supported("cuMemSetAccess"));
            }
        }
        Ok(())
    }

    /// Whether what is committed may be written.
    pub(crate) fn writing(&self) -> Writing {
        self.lock().writing
    }

    /// Copies or fills some of its bytes, from an offset on, which are there, and to be written if it writes. `None` once its
    /// release has begun.
    pub(crate) fn copy(
        &self,
        (offset, bytes): (u64, u64),
        wish: Wish,
        act: impl FnOnce(&Reservation) -> Result<(), Fault>,
    ) -> Option<Result<(), Uncopied>> {
        let mut state = self.lock();
        let space = state.space.as_ref().filter(|_| state.life == Life::Open)?;
        let granule = self.granule.max(1);
        let range = offset.div_euclid(granule)..offset.saturating_add(bytes).div_ceil(granule);
        if !state.contents.is_there(&range) {
            return Some(Err(Uncopied::NotCommitted));
        }
        if wish == Wish::Write && !(state.writing == Writing::Open && state.contents.is_private(&range)) {
            return Some(Err(Uncopied::Sealed));
        }
        let outcome = act(space);
        state.under_way.copies |= outcome.is_err();
        Some(outcome.map_err(Uncopied::Failed))
    }

    /// Keeps what was made for it, that nothing maps, and that could not be given back.
    pub(crate) fn keep(&self, debts: Vec<Piece>) {
        self.lock().contents.debts().extend(debts.into_iter().map(|piece| piece.handle));
    }

    /// Unmaps everything and gives the addresses back; `None` when that is done already.
    pub(crate) fn close(&self, returns: &mut Returns) -> Option<ReleaseOutcome> {
        let mut state = self.lock();
        state.space.as_ref()?;
        if let Err(fault) = state.unmap_all(self, returns) {
            state.life = Life::Quarantined;
            let remaining_bytes = state.contents.owned_granules().saturating_mul(self.granule);
            return Some(ReleaseOutcome::Quarantined { remaining_bytes, error: still_held(fault) });
        }
        match state.space.take().map(Reservation::close) {
            None | Some(Ok(())) => Some(ReleaseOutcome::Complete),
            Some(Err((space, fault))) => {
                state.space = Some(space);
                state.life = Life::Quarantined;
                Some(ReleaseOutcome::Quarantined { remaining_bytes: 0, error: still_held(fault) })
            }
        }
    }
}

impl Lockable for Region {
    type Open<'a> = OpenRegion<'a>;

    fn open(&self) -> Option<OpenRegion<'_>> {
        let state = self.lock();
        (state.life == Life::Open && state.space.is_some()).then_some(OpenRegion { region: self, state })
    }
}

/// Unreachable: an open region has its addresses.
fn ended(call: &'static str) -> Fault {
    Fault::invalid_value(call)
}

fn still_held(fault: Fault) -> BackingError {
    fault.into_error("something of it is still held", "release it again")
}

impl State {
    fn unmap_all(&mut self, region: &Region, returns: &mut Returns) -> Result<(), Fault> {
        self.clear_debts()?;
        self.contents
            .runs()
            .into_iter()
            .try_for_each(|run| self.unmap_run(region, &run, region.handle_release, returns))
            .map_err(|stuck| stuck.fault)
    }

    fn clear_debts(&mut self) -> Result<(), Fault> {
        let debts = self.contents.debts();
        while let Some(debt) = debts.pop() {
            if let Err((debt, fault)) = debt.close() {
                debts.push(debt);
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Waits for what was begun in it. What was begun in a context that has ended runs no more.
    fn finish_work(&mut self) -> Result<(), Fault> {
        let Some(device) = self.space.as_ref().map(Reservation::device).filter(|device| !device.has_ended()) else {
            self.under_way = UnderWay::default();
            return Ok(());
        };
        if self.under_way.zeroing {
            device.wait_for_zeroing()?;
        }
        if self.under_way.copies {
            device.wait_for_copies()?;
        }
        self.under_way = UnderWay::default();
        Ok(())
    }

    /// Unmaps a run of granules, all of them mapped, and takes out what was there. Where the driver refuses, what is gone is
    /// taken out, and the rest is as it was.
    fn unmap_run(
        &mut self,
        region: &Region,
        run: &Range<u64>,
        handle_release: HandleRelease,
        returns: &mut Returns,
    ) -> Result<(), Stuck> {
        self.finish_work().map_err(|fault| Stuck::whole(fault, run))?;
        let Some(space) = &self.space else { return Err(Stuck::whole(ended("cuMemUnmap"), run)) };
        if handle_release == HandleRelease::BeforeUnmapping {
            for held in self.contents.handles_in(run) {
                let Some(handle) = held.take() else { continue };
                if let Err((handle, fault)) = handle.close() {
                    *held = Some(handle);
                    return Err(Stuck::whole(fault, run));
                }
            }
        }
        let outcome = unmapping::unmap(space, region.granule, run);
        let gone = outcome.as_ref().map_or_else(|stuck| &*stuck.gone, |()| std::slice::from_ref(run));
        for run in gone {
            returns.memories.extend(self.contents.remove_parts(run));
            let removed = self.contents.remove(run, region.wanted.holder).into_iter();
            returns.handles.extend(removed.map(|(handle, holder)| Returned { handle, holder }));
        }
        outcome
    }
}
