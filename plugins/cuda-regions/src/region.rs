//! One region: its reservation, what is mapped in it, and its end.

mod open;

pub(crate) use open::{OpenRegion, grants};

use crate::contents::{Contents, PrefixMemory};
use crate::source::{Parting, Piece, Returned};
use leasehold_cuda_driver::{Device, Fault, Reservation};
use leasehold_plugin_api::{Address, BackingError, HolderId, MemoryRole, ReleaseOutcome};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One region of device memory, or one plain allocation.
#[derive(Debug)]
pub struct Region {
    base: Address,
    bytes: u64,
    unit: u64,
    holder: HolderId,
    role: MemoryRole,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once the addresses are given back.
    space: Option<Reservation>,
    contents: Contents,
    life: Life,
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
    pub(crate) memories: Vec<Arc<PrefixMemory>>,
}

impl Region {
    /// Takes address space; nothing is mapped.
    pub(crate) fn reserve(
        device: &Device,
        (bytes, align): (u64, u64),
        unit: u64,
        holder: HolderId,
        role: MemoryRole,
    ) -> Result<Self, BackingError> {
        let space = device.reserve(bytes, align).map_err(|fault| {
            let what = format!("no address space for {bytes} bytes aligned to {align}");
            fault.into_error(what, "reserve less, or release regions first").with_requested(bytes)
        })?;
        let base = space.base();
        let state = State { space: Some(space), contents: Contents::default(), life: Life::Open };
        Ok(Self { base, bytes, unit, holder, role, state: Mutex::new(state) })
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.holder
    }

    pub(crate) fn role(&self) -> MemoryRole {
        self.role
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it; `None` once its release has begun.
    pub(crate) fn open(&self) -> Option<OpenRegion<'_>> {
        let state = self.lock();
        (state.life == Life::Open && state.space.is_some()).then_some(OpenRegion { region: self, state })
    }

    /// Whether an address range lies within it, and if so where.
    pub(crate) fn offset_of(&self, address: Address, bytes: u64) -> Option<u64> {
        let offset = address.get().checked_sub(self.base.get())?;
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some(offset)
    }

    /// Whether an address range lies within it and the addresses are its own still: once they are given back another region
    /// may have them, while this one is on its way out of the books.
    pub(crate) fn has(&self, address: Address, bytes: u64) -> bool {
        self.offset_of(address, bytes).is_some() && self.lock().space.is_some()
    }

    /// Runs something on the addresses, committed or not: the driver refuses what is not mapped.
    pub(crate) fn with_space<T>(&self, act: impl FnOnce(&Reservation) -> Result<T, Fault>) -> Option<Result<T, Fault>> {
        self.lock().space.as_ref().map(act)
    }

    /// Keeps what was made for it, that nothing maps, and that could not be given back.
    pub(crate) fn keep(&self, debts: Vec<Piece>) {
        self.lock().contents.debts().extend(debts.into_iter().map(|piece| piece.handle));
    }

    /// Unmaps everything and gives the addresses back; `None` when that is done already.
    pub(crate) fn close(&self, parting: Parting, returns: &mut Returns) -> Option<ReleaseOutcome> {
        let mut state = self.lock();
        state.space.as_ref()?;
        if let Err(fault) = state.unmap_all(self, parting, returns) {
            state.life = Life::Quarantined;
            let remaining_bytes = state.contents.owned_units().saturating_mul(self.unit);
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

fn still_held(fault: Fault) -> BackingError {
    fault.into_error("something of it is still held", "release it again")
}

impl State {
    fn unmap_all(&mut self, region: &Region, parting: Parting, returns: &mut Returns) -> Result<(), Fault> {
        self.clear_debts()?;
        self.contents.runs().into_iter().try_for_each(|run| self.unmap_run(region, &run, parting, returns))
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

    /// Unmaps a run of units in one call, and takes out what was there. A failure changes nothing that anybody sees.
    fn unmap_run(
        &mut self,
        region: &Region,
        run: &Range<u64>,
        parting: Parting,
        returns: &mut Returns,
    ) -> Result<(), Fault> {
        let Some(space) = &self.space else { return Ok(()) };
        if parting == Parting::BeforeUnmapping {
            for held in self.contents.handles_in(run) {
                let Some(handle) = held.take() else { continue };
                if let Err((handle, fault)) = handle.close() {
                    *held = Some(handle);
                    return Err(fault);
                }
            }
        }
        let units = run.end.saturating_sub(run.start);
        space.unmap(run.start.saturating_mul(region.unit), units.saturating_mul(region.unit))?;
        returns.memories.extend(self.contents.remove_parts(run));
        returns.handles.extend(self.contents.remove(run, region.holder));
        Ok(())
    }
}
