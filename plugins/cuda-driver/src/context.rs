//! A retained primary context with this library's streams: made current around each call, and distinguished from a
//! later one that the driver makes at the same address after a reset.
//!
//! Other code of the process may reset the device (`cuDevicePrimaryCtxReset`, `cudaDeviceReset`). The context's address comes
//! again with the next retain, and using a stream of the former one crashes. So its id is compared before anything is done in
//! it; once it is another, the context has ended for good: its streams are forgotten, and the retain alone is given back.
#![expect(unsafe_code, reason = "owns a retain of a context, and makes it current")]

use crate::error::Fault;
use crate::sys::{COMPUTE_MODE, Calls, NON_BLOCKING, Opaque, PROHIBITED, RELAXED};
use crate::troubles;
use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of the last retain.
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number of the retain whose context a [`Bound`] of this thread keeps current; 0 where none does, or where that is
    /// unknown.
    static KEPT: Cell<u64> = const { Cell::new(0) };
}

/// Which of the library's own streams something runs on. No order is asked for between them and the program's streams, so
/// that a graph that is captured there is not in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Zeroing of what is about to be handed out: the growth waits for it.
    Zeroing,
    /// Copies in and out, and fills.
    Copying,
}

/// A retained primary context with the library's own streams.
#[derive(Debug)]
pub(crate) struct Context {
    /// Invariant 3: streams of this context, which this value alone ends, on drop. They live for as long as the context
    /// has its id: after [`Retained::bind`] succeeds.
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
    /// Its id when it was retained; `None` where the driver has no ids.
    id: Option<u64>,
    /// Distinguishes this retain from every other of the process: the driver reuses addresses.
    number: u64,
    /// Whether it was found to have ended under its users.
    has_ended: AtomicBool,
}

// SAFETY: the handles are only handed to the driver, whose context may be current to any number of threads, and be
// released by any, as its streams may be used by any: CUDA Driver API, Context Management. The rest is plain values.
unsafe impl Send for Context {}
// SAFETY: as above; nothing in it changes but an atomic.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of a device, which makes the context where there is none.
    pub(crate) fn retain(calls: &'static Calls, device: c_int) -> Result<Self, Fault> {
        let raw = retain(calls, device)?;
        let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mut retained = Retained { calls, device, raw, id: None, number, has_ended: AtomicBool::new(false) };
        retained.id = retained.current_id()?;
        Ok(Self { streams: retained.make_streams()?, retained })
    }

    /// Whether it was found to have ended under its users: then nothing that was begun in it runs any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.retained.has_ended.load(Ordering::Relaxed)
    }

    /// Whether it has ended under its users, as the driver says now.
    pub(crate) fn ends(&self) -> bool {
        self.retained.check().is_err_and(Fault::is_of_ended_context)
    }

    /// Its stream for something. Live while the context is bound (3).
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
    #[inline]
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
    /// Streams of a context that has ended went with it.
    fn drop(&mut self) {
        if self.end_streams().is_err() && !self.has_ended() {
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

    /// The id of what is at its address now.
    fn current_id(&self) -> Result<Option<u64>, Fault> {
        // SAFETY: the driver handed it out (1).
        unsafe { self.calls.context_id(self.raw.as_ptr()) }
    }

    /// Refuses a context that has ended, also where another one is at its address.
    fn check(&self) -> Result<(), Fault> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Err(Fault::of_reset_context());
        }
        match self.current_id() {
            Ok(id) if id == self.id => Ok(()),
            Ok(_) => Err(self.note_ended(Fault::of_reset_context())),
            Err(fault) => Err(self.note_ended(fault)),
        }
    }

    /// Notes that it has ended where a fault says so.
    fn note_ended(&self, fault: Fault) -> Fault {
        self.has_ended.fetch_or(fault.is_of_ended_context(), Ordering::Relaxed);
        fault
    }

    /// Makes it current on this thread until the answer is dropped, and lets nothing of this thread disturb a graph that
    /// somebody else captures meanwhile. Where that is so already, the driver isn't asked.
    #[inline]
    fn bind(&self) -> Result<Bound<'_>, Fault> {
        let undo = if KEPT.get() == self.number { None } else { Some(self.enter()?) };
        Ok(Bound { _undo: undo, context: PhantomData })
    }

    #[inline(never)]
    fn enter(&self) -> Result<Undo, Fault> {
        self.check()?;
        let (ours, kept) = (self.raw.as_ptr(), KEPT.get());
        let before = self.calls.current()?;
        let mut undo = Undo { calls: self.calls, kept, before: None, capture_mode: None };
        if before != ours {
            // SAFETY: retained (1).
            unsafe { self.calls.set_current(ours) }.map_err(|fault| self.note_ended(fault))?;
            undo.before = Some(before);
        }
        if kept == 0 {
            undo.capture_mode = Some(self.calls.exchange_capture_mode(RELAXED)?);
        }
        KEPT.set(self.number);
        Ok(undo)
    }
}

/// Makes a call without a context, in the relaxed capture mode as far as that can be had: for what gives back, where the
/// context can't be made current. Its documented codes list none for the want of one.
pub(crate) fn without_context<T>(calls: &Calls, act: impl FnOnce(&Calls) -> T) -> T {
    let mode = calls.exchange_capture_mode(RELAXED);
    let outcome = act(calls);
    if mode.is_ok_and(|mode| calls.exchange_capture_mode(mode).is_err()) {
        troubles::count_context_not_restored();
    }
    outcome
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
    /// Nothing where it was so before.
    _undo: Option<Undo>,
    context: PhantomData<&'device Retained>,
}

/// How a thread was before a context was made current on it: made so again on drop.
#[derive(Debug)]
struct Undo {
    calls: &'static Calls,
    /// What [`KEPT`] was before.
    kept: u64,
    /// What to put back: nothing where the context was current already, null where none was.
    ///
    /// Invariant 2: the driver answered it on this thread as the current context. The pointer keeps the value on its
    /// thread.
    before: Option<Opaque>,
    /// The thread's previous stream-capture mode.
    capture_mode: Option<c_uint>,
}

impl Drop for Undo {
    fn drop(&mut self) {
        KEPT.set(self.kept);
        if self.capture_mode.is_some_and(|mode| self.calls.exchange_capture_mode(mode).is_err()) {
            troubles::count_context_not_restored();
        }
        let Some(before) = self.before else { return };
        // SAFETY: null, or the driver's own (2).
        if unsafe { self.calls.set_current(before) }.is_err() {
            troubles::count_context_not_restored();
            // Whoever kept one current is asked about it again.
            KEPT.set(0);
        }
    }
}
