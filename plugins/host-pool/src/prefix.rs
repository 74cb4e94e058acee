//! One prefix: its handle, and the window that its creator writes it through until it is sealed.
//!
//! It owns the window, and a share in the physical memory; every mapping has another. [`LivePrefix::close`] gives both
//! up.

use crate::commitment::{SCARCE_MAPS, broken_off};
use crate::frames::Need;
use crate::pool::Pool;
use crate::prefix_memory::PrefixMemory;
use crate::region::HELD;
use crate::run::Run;
use crate::supply::{Returns, Supply};
use crate::window::{Treatment, Window};
use leasehold_host_memory::{AddressSpace, Fault, MapBudget, MapShare};
use leasehold_plugin_api::{Address, BackingError, ErrorKind, PrefixId, PrefixRequest, ReleaseOutcome};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Writable,
    Sealed,
}

/// One prefix.
#[derive(Debug)]
pub(crate) struct LivePrefix {
    pub(crate) window: Address,
    bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    life: Life,
    share: MapShare,
}

#[derive(Debug)]
enum Life {
    Live(Window, Arc<PrefixMemory>, Stage),
    /// The addresses alone are still held.
    Quarantined(Window),
    Closed,
}

impl LivePrefix {
    /// Takes frames and a window that they can be written through. Answers the bytes that are newly owned, too.
    pub(crate) fn create(
        pool: &Pool,
        request: &PrefixRequest,
        budget: &'static MapBudget,
    ) -> Result<(Self, u64), BackingError> {
        let PrefixRequest { id, bytes, role, holder } = *request;
        let granule = pool.settings.granule;
        let mut share = budget.take(1)?;
        let window = Window::reserve(bytes, granule).map_err(|fault| AddressSpace::refusal(fault, bytes, granule))?;
        let need = Need { frames: bytes.div_euclid(granule), holder, role, after: None, pieces: 0, growth: None };
        let supply = pool.obtain(&[need])?;
        let pieces: Vec<_> = supply.parts.iter().flatten().copied().collect();
        let runs = joined(pieces.iter().map(|piece| piece.run));
        share.resize_within_limit(u64::try_from(runs.len()).unwrap_or(u64::MAX))?;
        if let Err(fault) = pool.place(&window, 0, &pieces, holder) {
            undo(window, bytes, supply, pool);
            let what = format!("{id} of {bytes} bytes can't be mapped");
            return Err(fault.into_error(ErrorKind::AddressSpaceExhausted, what, SCARCE_MAPS).with_requested(bytes));
        }
        let owned_bytes = supply.keep();
        let memory = Arc::new(PrefixMemory { id, holder, runs });
        let base = window.base();
        let state = Mutex::new(State { life: Life::Live(window, memory, Stage::Writable), share });
        Ok((Self { window: base, bytes, state }, owned_bytes))
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is live: a release that was left half-way counts as done.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.lock().life, Life::Live(..))
    }

    /// A share in its memory, once it is sealed.
    pub(crate) fn sealed_memory(&self, id: PrefixId) -> Result<Arc<PrefixMemory>, BackingError> {
        match &self.lock().life {
            Life::Live(_, memory, Stage::Sealed) => Ok(memory.clone()),
            Life::Live(_, _, Stage::Writable) => {
                let why = "is not sealed: it may still be written; seal it before it is mapped";
                Err(BackingError::new(ErrorKind::WrongState, format!("{id} {why}")))
            }
            Life::Quarantined(_) | Life::Closed => Err(BackingError::unknown_id(id)),
        }
    }

    /// Maps the window read-only, through a descriptor that can only read, or leaves all of it writable. Where neither
    /// can be, the answer leaves doubt; sealing it again may succeed.
    pub(crate) fn seal(&self, id: PrefixId, pool: &Pool) -> Result<(), BackingError> {
        let mut state = self.lock();
        let (window, memory) = match &state.life {
            Life::Live(window, memory, Stage::Writable) => (window, memory),
            Life::Live(_, _, Stage::Sealed) => return Err(sealed_already(id)),
            Life::Quarantined(_) | Life::Closed => return Err(BackingError::unknown_id(id)),
        };
        if let Err(fault) = map_all(pool, window, &memory.runs, Treatment::ReadOnly) {
            let refusal =
                fault.into_error(ErrorKind::AddressSpaceExhausted, format!("{id} is not sealed"), SCARCE_MAPS);
            return Err(match map_all(pool, window, &memory.runs, Treatment::Writable) {
                Ok(()) => refusal,
                Err(again) => broken_off(&refusal, again),
            });
        }
        if let Life::Live(_, _, stage) = &mut state.life {
            *stage = Stage::Sealed;
        }
        Ok(())
    }

    /// Gives the window and the handle's share up; `None` when that is done already.
    pub(crate) fn close(&self, returns: &mut Returns) -> Option<ReleaseOutcome> {
        let mut state = self.lock();
        let (window, shared) = match std::mem::replace(&mut state.life, Life::Closed) {
            Life::Live(window, memory, stage) => (window, Some((memory, stage))),
            Life::Quarantined(window) => (window, None),
            Life::Closed => return None,
        };
        let Err((window, fault)) = window.close() else {
            returns.memories.extend(shared.map(|(memory, _)| memory));
            state.share.resize(0);
            return Some(ReleaseOutcome::Complete);
        };
        let error = fault.into_error(ErrorKind::AddressSpaceExhausted, "addresses are still held", HELD);
        match shared {
            Some((memory, stage)) if window.withdraw(0, self.bytes).is_err() => {
                state.life = Life::Live(window, memory, stage);
                Some(ReleaseOutcome::Failed(error))
            }
            shared => {
                returns.memories.extend(shared.map(|(memory, _)| memory));
                state.life = Life::Quarantined(window);
                Some(ReleaseOutcome::Quarantined { remaining_bytes: 0, error })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a window whose frames are the supply's. It goes before the supply does: frames that are returned are behind
/// nothing.
fn undo(window: Window, bytes: u64, mut supply: Supply<'_>, pool: &Pool) {
    let mut returns = Returns::default();
    if let Err((window, _)) = window.close()
        && window.withdraw(0, bytes).is_err()
    {
        supply.parts.drain(..).for_each(|pieces| returns.abandon(pieces, pool));
    }
    drop(supply);
    pool.settle(returns);
}

fn map_all(pool: &Pool, window: &Window, runs: &[Run], treatment: Treatment) -> Result<(), Fault> {
    let mut offset = 0_u64;
    for run in runs {
        pool.map(window, offset, *run, treatment)?;
        offset = offset.saturating_add(pool.bytes(run.frames));
    }
    Ok(())
}

fn joined(runs: impl Iterator<Item = Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.end() == run.first => last.frames = last.frames.saturating_add(run.frames),
            _ => joined.push(run),
        }
    }
    joined
}

fn sealed_already(id: PrefixId) -> BackingError {
    BackingError::new(ErrorKind::WrongState, format!("{id} is sealed already; seal it once"))
}
