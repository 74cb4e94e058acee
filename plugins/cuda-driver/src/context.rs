//! The primary context of one device: retained once for this library in the process, released with its last user, and
//! made current around each call.
#![expect(unsafe_code, reason = "owns a retain of a context, and makes it current")]

use crate::error::Fault;
use crate::sys::{Calls, NON_BLOCKING, Opaque, RELAXED};
use crate::troubles;
use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
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

/// Which of the library's own streams something runs on. They don't wait for the program's streams, nor those for them:
/// neither a step that runs nor a graph that is captured is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Zeroing of what is about to be handed out: short, and somebody waits for it.
    Zeroing,
    /// Copies in and out, and fills.
    Copying,
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
    /// Invariant 3: non-blocking streams of this context, which this value alone ends, on drop. `None` before they are
    /// made.
    streams: Option<Streams>,
}

#[derive(Clone, Copy, Debug)]
struct Streams {
    zeroing: NonNull<c_void>,
    copying: NonNull<c_void>,
}

// SAFETY: the handles are only handed to the driver, whose context may be current to any number of threads, and be
// released by any, as its streams may be used by any: CUDA Driver API, Context Management. The rest is plain values.
unsafe impl Send for Context {}
// SAFETY: as above; nothing in it changes.
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
        let mut context = Self { calls, ordinal, device, raw: calls.retain_context(device)?, streams: None };
        let streams = context.make_streams()?;
        context.streams = Some(streams);
        let context = Arc::new(context);
        retained.push(Arc::downgrade(&context));
        Ok(context)
    }

    fn make_streams(&self) -> Result<Streams, Fault> {
        let _bound = self.bind()?;
        let zeroing = self.calls.create_stream(NON_BLOCKING)?;
        match self.calls.create_stream(NON_BLOCKING) {
            Ok(copying) => Ok(Streams { zeroing, copying }),
            Err(fault) => {
                // SAFETY: just made, and nobody else's.
                if unsafe { self.calls.destroy_stream(zeroing.as_ptr()) }.is_err() {
                    troubles::count_drop_failed();
                }
                Err(fault)
            }
        }
    }

    fn end_streams(&self, Streams { zeroing, copying }: Streams) -> Result<(), Fault> {
        let _bound = self.bind()?;
        // SAFETY: live, and this value's to end (3).
        let ended = unsafe { self.calls.destroy_stream(zeroing.as_ptr()) };
        // SAFETY: as above.
        ended.and(unsafe { self.calls.destroy_stream(copying.as_ptr()) })
    }

    /// Its stream for something. Live for as long as the context is (3).
    pub(crate) fn stream(&self, lane: Lane) -> Opaque {
        match (self.streams, lane) {
            (Some(streams), Lane::Zeroing) => streams.zeroing.as_ptr(),
            (Some(streams), Lane::Copying) => streams.copying.as_ptr(),
            (None, _) => std::ptr::null_mut(),
        }
    }

    /// Waits until what was begun on one of its streams is done. It is current.
    pub(crate) fn wait(&self, lane: Lane) -> Result<(), Fault> {
        // SAFETY: live, and of this context (3), which is current, says the caller.
        unsafe { self.calls.await_stream(self.stream(lane)) }
    }

    /// Makes it current on this thread until the answer is dropped, and lets nothing of this thread disturb a graph that
    /// somebody else captures meanwhile. Where that is so already, the driver isn't asked.
    pub(crate) fn bind(&self) -> Result<Bound<'_>, Fault> {
        let (ours, kept) = (self.raw.as_ptr(), KEPT.get());
        let mut bound = Bound { calls: self.calls, kept: None, before: None, capture_mode: None, context: PhantomData };
        if kept == ours {
            return Ok(bound);
        }
        bound.kept = Some(kept);
        let before = self.calls.current()?;
        if before != ours {
            // SAFETY: retained (1).
            unsafe { self.calls.set_current(ours) }?;
            bound.before = Some(before);
        }
        if kept.is_null() {
            bound.capture_mode = Some(self.calls.exchange_capture_mode(RELAXED)?);
        }
        KEPT.set(ours);
        Ok(bound)
    }
}

impl Drop for Context {
    /// The context itself lives on where others retain it.
    fn drop(&mut self) {
        if self.streams.is_some_and(|streams| self.end_streams(streams).is_err()) {
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
    /// What was kept current before, where that is another: it is to be told again.
    kept: Option<Opaque>,
    /// What to put back: nothing where the context was current already, null where none was.
    ///
    /// Invariant 2: the driver answered it on this thread as the current context. The pointer keeps the value on its
    /// thread.
    before: Option<Opaque>,
    /// How this thread minded graphs that others capture, to be put back.
    capture_mode: Option<c_uint>,
    context: PhantomData<&'device Context>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept {
            KEPT.set(kept);
        }
        if self.capture_mode.is_some_and(|mode| self.calls.exchange_capture_mode(mode).is_err()) {
            troubles::count_context_not_restored();
        }
        let Some(before) = self.before else { return };
        // SAFETY: null, or the driver's own (2).
        if unsafe { self.calls.set_current(before) }.is_err() {
            troubles::count_context_not_restored();
            // Whoever kept one current is asked about it again.
            KEPT.set(std::ptr::null_mut());
        }
    }
}
