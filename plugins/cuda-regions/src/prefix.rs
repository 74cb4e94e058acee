//! Prefixes: memory that is owned once, written through one window, and then mapped read-only into many regions.

use crate::contents::PrefixMemory;
use crate::region::{Region, Returns, Wanted, Writing};
use crate::regions::{DeviceRegions, Unfilled};
use leasehold_cuda_driver::PhysicalHandle;
use leasehold_plugin_api::toolkit::{Lockable, request};
use leasehold_plugin_api::{BackingError, ErrorKind, Prefix, PrefixId, PrefixRequest, ReleaseOutcome};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What to do where the device maps nothing read-only.
const SHARE_ELSEWHERE: &str = "nothing can be shared on it: have each buffer hold its own, or use another device";

/// A prefix whose handle is held.
#[derive(Debug)]
pub(crate) struct LivePrefix {
    pub(crate) window: Region,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once the handle is given back.
    memory: Option<Arc<PrefixMemory<PhysicalHandle>>>,
}

impl LivePrefix {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Granules of the memory, as long as the handle holds it.
    fn owned_granules(&self) -> u64 {
        let granules = self.lock().memory.as_ref().map_or(0, |memory| memory.handles.len());
        u64::try_from(granules).unwrap_or(u64::MAX)
    }

    /// The handle's hold on the memory, for its source.
    pub(crate) fn take_memory(&self) -> Returns {
        Returns { handles: Vec::new(), memories: self.lock().memory.take().into_iter().collect() }
    }
}

impl DeviceRegions {
    /// Takes physical memory for a prefix, and a window to write it through.
    pub(crate) fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        let PrefixRequest { id, bytes, role, holder } = *request;
        let granule = self.granule();
        request::check_granules(id, bytes, granule)?;
        if self.prefixes.find(id).is_some() {
            return Err(request::live_already(id));
        }
        if self.is_writable_always.load(Ordering::Relaxed) {
            let message = format!("{id}: not made: the device maps no memory read-only; {SHARE_ELSEWHERE}");
            return Err(BackingError::new(ErrorKind::Unsupported, message));
        }
        let window = self.reserve_region(Wanted { bytes, align: granule, holder, role })?;
        let filled = self.fill_region(&window, bytes);
        if let Err(Unfilled::Gone(error)) = filled {
            return Err(error);
        }
        let base = window.base();
        let handles = window.open().map(|mut open| open.share_handles());
        let memory = handles.map(|handles| Arc::new(PrefixMemory { id, holder, handles }));
        let state = Mutex::new(State { memory });
        // What is left of a failure is found by its id, to be released.
        if let Err(prefix) = self.prefixes.insert(id, LivePrefix { window, state }) {
            self.close(&prefix.window);
            self.settle(prefix.take_memory());
            return Err(request::live_already(id));
        }
        filled.map(|owned_bytes| Prefix { id, window: base, bytes, owned_bytes }).map_err(Unfilled::into_error)
    }

    /// Ends all writing once everything that writes has completed: before that, a second mapping of the same memory need not
    /// show what was written. Where it fails half-way, and writing can't be let on either, sealing it again may succeed.
    pub(crate) fn seal(&self, id: PrefixId) -> Result<(), BackingError> {
        let prefix = self.prefixes.find(id).ok_or_else(|| BackingError::unknown_id(id))?;
        // Held throughout: of two who seal it one is refused.
        let _state = prefix.lock();
        if prefix.window.writing() == Writing::Ended {
            return Err(BackingError::new(ErrorKind::WrongState, format!("{id}: is sealed already; seal it once")));
        }
        let sealed = prefix.window.seal();
        let sealed = sealed.ok_or_else(|| BackingError::unknown_id(id))?;
        sealed.map_err(|broken| {
            let is_unsupported = broken.fault.kind() == ErrorKind::Unsupported;
            self.is_writable_always.fetch_or(is_unsupported, Ordering::Relaxed);
            let undone = if is_unsupported { SHARE_ELSEWHERE } else { "it is as it was; try again" };
            broken.into_advised(&format!("{id}: not sealed"), undone, "write to none of it; release it")
        })
    }

    /// Physical bytes that one more mapping would newly own: none.
    pub(crate) fn incremental_owned_bytes(&self, id: PrefixId) -> Result<u64, BackingError> {
        self.prefixes.find(id).map(|_| 0).ok_or_else(|| BackingError::unknown_id(id))
    }

    /// The memory of a sealed prefix.
    pub(crate) fn sealed_memory(&self, id: PrefixId) -> Result<Arc<PrefixMemory<PhysicalHandle>>, BackingError> {
        let prefix = self.prefixes.find(id).ok_or_else(|| BackingError::unknown_id(id))?;
        let state = prefix.lock();
        if prefix.window.writing() != Writing::Ended {
            return Err(BackingError::new(ErrorKind::WrongState, format!("{id}: is not sealed; seal it, then map it")));
        }
        state.memory.clone().ok_or_else(|| BackingError::unknown_id(id))
    }

    /// Gives the handle and its window back, and the memory once nothing maps it any more.
    pub(crate) fn release_prefix(&self, id: PrefixId) -> ReleaseOutcome {
        let Some(prefix) = self.prefixes.find(id) else {
            return ReleaseOutcome::Failed(BackingError::unknown_id(id));
        };
        let outcome = self.close(&prefix.window).unwrap_or(ReleaseOutcome::Complete);
        if let ReleaseOutcome::Quarantined { remaining_bytes, error } = outcome {
            // Its memory goes with its window.
            let remaining_bytes = prefix.owned_granules().saturating_mul(self.granule()).max(remaining_bytes);
            return ReleaseOutcome::Quarantined { remaining_bytes, error };
        }
        if outcome == ReleaseOutcome::Complete {
            self.prefixes.remove(id);
            self.settle(prefix.take_memory());
        }
        outcome
    }
}
