//! The primary context of one device: retained once for this library in the process, released with its last user, and
//! made current around each call.
#![expect(unsafe_code, reason = "owns a retain of a context, and makes it current")]

use crate::error::Fault;
use crate::sys::{COMPUTE_MODE, Calls, NON_BLOCKING, Opaque, PROHIBITED, RELAXED};
use crate::troubles;
use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The contexts that are retained: one for each device. Its lock is held while one is looked up, retained, which may take
/// long, and given its streams: so no device is retained twice. One whose last user goes just then may end under it.
/// Nobody who holds it waits for anything but the driver.
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

/// A retained primary context with the library's own streams.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) ordinal: u32,
    /// Invariant 3: live streams of this context, which this value alone ends, on drop.
    streams: Streams,
    /// Released after the streams ended.
    retained: Retained,
}

/// Streams that don't wait for the default stream, nor it for them.
#[derive(Clone, Copy, Debug)]
struct Streams {
    zeroing: NonNull<c_void>,
    copying: NonNull<c_void>,
}

/// One retain of a primary context.
#[derive(Debug)]
struct Retained {
    calls: &'static Calls,
    /// The `CUdevice`.
    device: c_int,
    /// Invariant 1: `cuDevicePrimaryCtxRetain` answered it for this value, which releases it once, on drop.
    raw: NonNull<c_void>,
}

// SAFETY: the handles are only handed to the driver, whose context may be current to any number of threads, and be
// released by any, as its streams may be used by any: CUDA Driver API, Context Management. The rest is plain values.
unsafe impl Send for Context {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a device: the one that is retained already, or retained now.
    pub(crate) fn retain(calls: &'static Calls, ordinal: u32) -> Result<Arc<Self>, Fault> {
        let mut known = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|context| context.strong_count() > 0);
        if let Some(context) = known.iter().filter_map(Weak::upgrade).find(|context| context.ordinal == ordinal) {
            return Ok(context);
        }
        let device = calls.device(ordinal)?;
        let retained = Retained { calls, device, raw: retain(calls, device)? };
        let context = Arc::new(Self { ordinal, streams: retained.make_streams()?, retained });
        known.push(Arc::downgrade(&context));
        Ok(context)
    }

    /// The `CUdevice`.
    pub(crate) fn device(&self) -> c_int {
        self.retained.device
    }

    /// Its stream for something. Live for as long as the context is (3).
    pub(crate) fn stream(&self, lane: Lane) -> Opaque {
        match lane {
            Lane::Zeroing => self.streams.zeroing.as_ptr(),
            Lane::Copying => self.streams.copying.as_ptr(),
        }
    }

    /// Waits until what was begun on one of its streams is done.
    pub(crate) fn wait(&self, lane: Lane) -> Result<(), Fault> {
        // Where the caller has it bound already, this asks the driver nothing.
        let _bound = self.bind()?;
        // SAFETY: live, and of this context (3), which is current while it is bound.
        unsafe { self.retained.calls.await_stream(self.stream(lane)) }
    }

    /// As [`Retained::bind`].
    pub(crate) fn bind(&self) -> Result<Bound<'_>, Fault> {
        self.retained.bind()
    }

    fn end_streams(&mut self) -> Result<(), Fault> {
        let _bound = self.retained.bind()?;
        let (calls, Streams { zeroing, copying }) = (self.retained.calls, self.streams);
        // SAFETY: live, and this value's to end (3).
        let ended = unsafe { calls.destroy_stream(zeroing.as_ptr()) };
        // SAFETY: as above.
        ended.and(unsafe { calls.destroy_stream(copying.as_ptr()) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.end_streams().is_err() {
            troubles::count_drop_failed();
        }
    }
}

/// Retains the primary context of a device. One whose compute mode is prohibited was seen to get 999 for that.
fn retain(calls: &Calls, device: c_int) -> Result<NonNull<c_void>, Fault> {
    let is_prohibited = || calls.attribute(COMPUTE_MODE, device) == Ok(PROHIBITED);
    calls.retain_context(device).map_err(|fault| if is_prohibited() { fault.of_prohibited_device() } else { fault })
}

impl Retained {
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

    /// Makes it current on this thread until the answer is dropped, and lets nothing of this thread disturb a graph that
    /// somebody else captures meanwhile. Where that is so already, the driver isn't asked.
    fn bind(&self) -> Result<Bound<'_>, Fault> {
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

impl Drop for Retained {
    /// The context itself lives on where others retain it.
    fn drop(&mut self) {
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
    /// What [`KEPT`] was before, to be put back, where that is another context.
    kept: Option<Opaque>,
    /// What to put back: nothing where the context was current already, null where none was.
    ///
    /// Invariant 2: the driver answered it on this thread as the current context. The pointer keeps the value on its
    /// thread.
    before: Option<Opaque>,
    /// The thread's previous stream-capture mode.
    capture_mode: Option<c_uint>,
    context: PhantomData<&'device Retained>,
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
