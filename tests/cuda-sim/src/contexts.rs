//! Primary contexts by device, and which context is current on a thread.
//!
//! A context is known by its address. That of one which was released is never used again, which distinguishes it from
//! its successor; after a reset the next retain makes another context at the same address, with another `cuCtxGetId`.
//! CUDA Driver API: Primary Context Management, Context Management.

use crate::codes::{Answer, Code};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A `CUcontext`: never 0.
pub(crate) type ContextId = u64;

thread_local! {
    /// The contexts of this thread; the last one is current.
    static STACK: RefCell<Vec<ContextId>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    /// Its last retain was released: using it is somebody's mistake.
    Released,
    /// `cuDevicePrimaryCtxReset` ended it under its users.
    Reset,
}

#[derive(Debug)]
struct Context {
    device: i32,
    /// `cuCtxGetId`: of this life alone.
    unique: u64,
    life: Life,
    /// The code that every later call in it answers.
    poison: Option<Code>,
}

/// Why a context can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Poisoned(Code),
    Released,
    Reset,
    Unknown,
}

/// All contexts that there ever were.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    all: BTreeMap<ContextId, Context>,
    /// Retains of the live context of each device.
    retains: BTreeMap<i32, (ContextId, u64)>,
    addresses: u64,
    lives: u64,
}

impl Contexts {
    /// Makes the device's primary context, or counts one more user of it. Where it was reset it is made anew, at its address.
    pub(crate) fn retain(&mut self, device: i32) -> ContextId {
        let id = match self.retains.get_mut(&device) {
            Some((id, retains)) => {
                *retains += 1;
                *id
            }
            None => {
                self.addresses += 1;
                // As far apart as addresses would be; no CPU ever follows them.
                let id = 0x5EA5_0000 + self.addresses * 64;
                self.retains.insert(device, (id, 1));
                id
            }
        };
        if self.all.get(&id).is_none_or(|context| context.life == Life::Reset) {
            self.lives += 1;
            self.all.insert(id, Context { device, unique: self.lives, life: Life::Alive, poison: None });
        }
        id
    }

    /// What distinguishes one life of a context from all others: `cuCtxGetId`.
    pub(crate) fn unique(&self, id: ContextId) -> Answer<u64> {
        let context = self.all.get(&id).ok_or(Code::INVALID_CONTEXT)?;
        if context.life == Life::Alive { Ok(context.unique) } else { Err(Code::CONTEXT_IS_DESTROYED) }
    }

    /// One user less: whether that ended it. `CUDA_ERROR_INVALID_CONTEXT` where nobody retains it:
    /// `cuDevicePrimaryCtxRelease`.
    pub(crate) fn release(&mut self, device: i32) -> Answer<bool> {
        let (id, retains) = self.retains.get_mut(&device).ok_or(Code::INVALID_CONTEXT)?;
        *retains -= 1;
        if *retains > 0 {
            return Ok(false);
        }
        if let Some(context) = self.all.get_mut(id) {
            context.life = Life::Released;
        }
        self.retains.remove(&device);
        Ok(true)
    }

    /// Ends it under its users: `cuDevicePrimaryCtxReset`.
    pub(crate) fn reset(&mut self, device: i32) {
        if let Some(context) = self.live_of(device) {
            context.life = Life::Reset;
        }
    }

    /// Has every later call in the device's context answer `code`.
    pub(crate) fn poison(&mut self, device: i32, code: Code) -> Answer<()> {
        let context = self.live_of(device).ok_or(Code::INVALID_CONTEXT)?;
        context.poison = context.poison.or(Some(code));
        Ok(())
    }

    fn live_of(&mut self, device: i32) -> Option<&mut Context> {
        let (id, _) = self.retains.get(&device)?;
        self.all.get_mut(id)
    }

    pub(crate) fn retains_of(&self, device: i32) -> u64 {
        self.retains.get(&device).map_or(0, |(_, retains)| *retains)
    }

    pub(crate) fn retains(&self) -> u64 {
        self.retains.values().map(|(_, retains)| *retains).sum()
    }

    /// The device of a context that can be used.
    pub(crate) fn usable(&self, id: ContextId) -> Result<i32, Unusable> {
        let context = self.all.get(&id).ok_or(Unusable::Unknown)?;
        match (context.life, context.poison) {
            (Life::Released, _) => Err(Unusable::Released),
            (Life::Reset, _) => Err(Unusable::Reset),
            (Life::Alive, Some(code)) => Err(Unusable::Poisoned(code)),
            (Life::Alive, None) => Ok(context.device),
        }
    }
}

/// The context that is current on this thread.
pub(crate) fn current() -> Option<ContextId> {
    STACK.with_borrow(|stack| stack.last().copied())
}

/// Puts it in the place of the current one, or takes the current one away: `cuCtxSetCurrent`.
pub(crate) fn set_current(id: Option<ContextId>) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.extend(id);
    });
}

/// Makes it current and keeps what was: `cuCtxPushCurrent`.
pub(crate) fn push_current(id: ContextId) {
    STACK.with_borrow_mut(|stack| stack.push(id));
}

/// Ends what is current: `cuCtxPopCurrent`.
pub(crate) fn pop_current() -> Answer<ContextId> {
    STACK.with_borrow_mut(|stack| stack.pop()).ok_or(Code::INVALID_CONTEXT)
}
