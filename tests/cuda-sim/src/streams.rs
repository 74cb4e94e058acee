//! Streams, what is under way on them, and how threads mind graphs that others capture.
//!
//! Work has its effect at once, and stays under way until somebody has waited for it: whoever unmaps what it touches, or
//! touches that from another stream, relies on an order that nothing gives. CUDA Driver API: Stream Management, Stream
//! synchronization behavior; CUDA Programming Guide, Virtual Aliasing Support.

use crate::codes::{Answer, Code};
use crate::memory::{Piece, Wish};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A `CUstream`: 0 is the default stream.
pub(crate) type StreamId = u64;

/// `CU_STREAM_NON_BLOCKING`, the only flag.
const NON_BLOCKING: u32 = 1;

/// The streams that always are: null, `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`.
const DEFAULT_STREAMS: u64 = 3;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`, the last of the three.
const RELAXED: u32 = 2;

thread_local! {
    /// `CUstreamCaptureMode` of this thread: global at first.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
}

/// A range of addresses that work touches.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    /// The parts of the store that it shows.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) wish: Wish,
}

#[derive(Debug)]
struct Work {
    function: &'static str,
    stream: StreamId,
    device: i32,
    touched: Touched,
}

/// All streams, and the work on them.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// With the device of each.
    live: BTreeMap<StreamId, i32>,
    made: u64,
    work: Vec<Work>,
    /// Whether some thread captures a graph, in the global mode.
    pub(crate) is_capturing: bool,
}

impl Streams {
    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    /// `cuStreamCreate`.
    pub(crate) fn create(&mut self, device: i32, flags: u32) -> Answer<StreamId> {
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.made += 1;
        let made = (0x57 << 40) + self.made * 64;
        self.live.insert(made, device);
        Ok(made)
    }

    /// `cuStreamDestroy`: what is under way ends by itself.
    pub(crate) fn destroy(&mut self, stream: StreamId) {
        self.live.remove(&stream);
    }

    /// The device of a stream that was made, `None` where it is a default one; an error where it is none.
    pub(crate) fn device_of(&self, stream: StreamId) -> Answer<Option<i32>> {
        if stream < DEFAULT_STREAMS {
            return Ok(None);
        }
        self.live.get(&stream).map(|device| Some(*device)).ok_or(Code::INVALID_HANDLE)
    }

    /// Begins work; answers the work of another stream that it is not ordered against, if there is any.
    pub(crate) fn begin(
        &mut self,
        function: &'static str,
        stream: StreamId,
        device: i32,
        touched: Touched,
    ) -> Option<&'static str> {
        let clash = self.clash(stream, &touched);
        // What runs on a default stream is done when its call returns: those calls wait.
        if stream >= DEFAULT_STREAMS {
            self.work.push(Work { function, stream, device, touched });
        }
        clash
    }

    fn clash(&self, stream: StreamId, touched: &Touched) -> Option<&'static str> {
        let overlap = |a: &Piece, b: &Piece| a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
        let meets = |work: &&Work| {
            let writes = touched.wish == Wish::Write || work.touched.wish == Wish::Write;
            let shared = || touched.pieces.iter().any(|a| work.touched.pieces.iter().any(|b| overlap(a, b)));
            work.stream != stream && writes && shared()
        };
        self.work.iter().find(meets).map(|work| work.function)
    }

    /// `cuStreamSynchronize`.
    pub(crate) fn wait(&mut self, stream: StreamId) {
        self.work.retain(|work| work.stream != stream);
    }

    /// `cuCtxSynchronize`.
    pub(crate) fn wait_for_device(&mut self, device: i32) {
        self.work.retain(|work| work.device != device);
    }

    /// Its context ended, and everything in it.
    pub(crate) fn end_device(&mut self, device: i32) {
        self.live.retain(|_, owner| *owner != device);
        self.wait_for_device(device);
    }

    /// What is under way at some addresses.
    pub(crate) fn under_way(&self, base: u64, bytes: u64) -> Option<&'static str> {
        let meets = |work: &&Work| {
            work.touched.base < base.saturating_add(bytes) && base < work.touched.base + work.touched.bytes
        };
        self.work.iter().find(meets).map(|work| work.function)
    }

    /// How many works nobody has waited for.
    pub(crate) fn works(&self) -> usize {
        self.work.len()
    }
}

/// `cuThreadExchangeStreamCaptureMode`: answers what it was.
pub(crate) fn exchange_capture_mode(mode: u32) -> Answer<u32> {
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    Ok(CAPTURE_MODE.replace(mode))
}

/// Whether this thread may do what a capture of another thread would not survive.
pub(crate) fn is_relaxed() -> bool {
    CAPTURE_MODE.get() == RELAXED
}
