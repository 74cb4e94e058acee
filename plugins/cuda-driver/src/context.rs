//! The primary context of one device: retained once for this library in the process, released with its last user, and
//! made current around each call.
#![expect(unsafe_code, reason = "owns a retain of a context, and makes it current")]

use crate::error::Fault;
use crate::sys::{Calls, Opaque};
use crate::troubles;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The contexts that are retained: one for each device. Its lock is held over the retain, which may take long, and over
/// nothing else.
static RETAINED: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

thread_local! {
    /// The context that a [`Bound`] of this thread keeps current; null where none does, or where nobody can tell.
    static KEPT: Cell<Opaque> = const { Cell::new(std::ptr::null_mut()) };
}

/// A retained primary context.
#[derive(Debug)]
pub(crate) struct Context {
    calls: &'static Calls,
    pub(crate) ordinal: u32,
    /// The `CUdevice`.
    pub(crate) device: c_int,
    /// Invariant 1: `cuDevicePrimaryCtxRetain` answered it for this value, which releases it once, on drop.
    raw: NonNull<c_void>,
    /// Invariant 3: events of this context that are live and in nobody's use. The driver did not take them back, so they
    /// serve again.
    spare_events: Mutex<Vec<Opaque>>,
}

// SAFETY: the handles are only handed to the driver, whose context may be current to any number of threads, and be
// released by any, as its events may be: CUDA Driver API, Context Management. The rest is plain values.
unsafe impl Send for Context {}
// SAFETY: as above; nothing in it changes but what a lock guards.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a device: the one that is retained already, or retained now.
    pub(crate) fn retain(calls: &'static Calls, ordinal: u32) -> Result<Arc<Self>, Fault> {
        let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
        retained.retain(|known| known.strong_count() > 0);
        if let Some(known) = retained.iter().filter_map(Weak::upgrade).find(|known| known.ordinal == ordinal) {
            return Ok(known);
        }
        let device = calls.device(ordinal)?;
        let (raw, spare_events) = (calls.retain_context(device)?, Mutex::default());
        let context = Arc::new(Self { calls, ordinal, device, raw, spare_events });
        retained.push(Arc::downgrade(&context));
        Ok(context)
    }

    /// An event that could not be destroyed, to be used again.
    pub(crate) fn take_event(&self) -> Option<Opaque> {
        self.spare_events.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a live event of this context that could not be destroyed.
    pub(crate) fn keep_event(&self, event: Opaque) {
        self.spare_events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn destroy_events(&self) -> Result<(), Fault> {
        let _bound = self.bind()?;
        while let Some(event) = self.take_event() {
            // SAFETY: live, of the context that is current, and in nobody's use (3).
            unsafe { self.calls.destroy_event(event) }?;
        }
        Ok(())
    }

    /// Makes it current on this thread until the answer is dropped. Where that is so already, the driver isn't asked.
    pub(crate) fn bind(&self) -> Result<Bound<'_>, Fault> {
        let (ours, kept) = (self.raw.as_ptr(), KEPT.get());
        let mut bound = Bound { calls: self.calls, kept, before: None, context: PhantomData };
        if kept == ours {
            return Ok(bound);
        }
        let before = self.calls.current()?;
        if before != ours {
            // SAFETY: retained (1).
            unsafe { self.calls.set_current(ours) }?;
            bound.before = Some(before);
        }
        KEPT.set(ours);
        Ok(bound)
    }
}

impl Drop for Context {
    /// The context itself lives on where others retain it.
    fn drop(&mut self) {
        let has_events = !self.spare_events.get_mut().unwrap_or_else(PoisonError::into_inner).is_empty();
        if has_events && self.destroy_events().is_err() {
            troubles::count_drop_failed();
        }
        // SAFETY: retained for this value, and not released before (1).
        if unsafe { self.calls.release_context(self.device) }.is_err() {
            troubles::count_drop_failed();
        }
    }
}

/// A device's context is current on this thread while this value lives; then what was current before is again. Values
/// nest: drop the later one first. Calls of this library in between rely on it, so nobody else may make another context
/// current on this thread meanwhile.
#[derive(Debug)]
#[must_use = "the context is current while this value lives"]
pub struct Bound<'device> {
    calls: &'static Calls,
    /// What was kept current before.
    kept: Opaque,
    /// What to put back: nothing where the context was current already, null where none was.
    ///
    /// Invariant 2: the driver answered it on this thread as the current context. The pointer keeps the value on its
    /// thread.
    before: Option<Opaque>,
    context: PhantomData<&'device Context>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        KEPT.set(self.kept);
        let Some(before) = self.before else { return };
        // SAFETY: null, or the driver's own (2).
        if unsafe { self.calls.set_current(before) }.is_err() {
            troubles::count_context_not_restored();
            // Whoever kept one current is asked about it again.
            KEPT.set(std::ptr::null_mut());
        }
    }
}
