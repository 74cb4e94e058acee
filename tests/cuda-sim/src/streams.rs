//! Streams, what is under way on them, and how threads mind graphs that others capture.
//!
//! Work has its effect at once, and stays under way until somebody has waited for it: whoever unmaps what it touches, or
//! touches that from another stream, relies on an order that nothing gives. CUDA Driver API: Stream Management, Stream
//! synchronization behavior, API synchronization behavior; CUDA Programming Guide, Virtual Aliasing Support.

use crate::codes::{Answer, Code};
use crate::memory::{Piece, Wish};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A `CUstream`.
pub(crate) type StreamId = u64;

/// Null and `CU_STREAM_LEGACY` are the same.
const NULL: StreamId = 0;
const LEGACY: StreamId = 1;
const PER_THREAD: StreamId = 2;

/// `CU_STREAM_NON_BLOCKING`, the only flag.
const NON_BLOCKING: u32 = 1;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`, the last of the three.
const RELAXED: u32 = 2;

thread_local! {
    /// `CUstreamCaptureMode` of this thread: global at first.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
    /// What its own default streams are known by.
    static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

/// What runs in the order that it was begun in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The default stream of a device, which is ordered with every blocking stream of it.
    Legacy(i32),
    /// The one of a thread.
    OfThread(i32, u64),
    /// One that was made.
    Made { device: i32, stream: StreamId, is_blocking: bool },
}

impl Queue {
    pub(crate) fn device(self) -> i32 {
        match self {
            Queue::Legacy(device) | Queue::OfThread(device, _) | Queue::Made { device, .. } => device,
        }
    }

    fn is_ordered_with(self, other: Self) -> bool {
        let waits =
            |one, other| matches!(one, Queue::Legacy(_)) && !matches!(other, Queue::Made { is_blocking: false, .. });
        self == other || (self.device() == other.device() && (waits(self, other) || waits(other, self)))
    }
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
    queue: Queue,
    touched: Touched,
}

/// All streams, and the work on them.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    live: BTreeMap<StreamId, Queue>,
    made: u64,
    /// In the order that it was begun in.
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
        let stream = (0x57 << 40) + self.made * 64;
        self.live.insert(stream, Queue::Made { device, stream, is_blocking: flags & NON_BLOCKING == 0 });
        Ok(stream)
    }

    /// `cuStreamDestroy`: what is under way ends by itself.
    pub(crate) fn destroy(&mut self, stream: StreamId) {
        self.live.remove(&stream);
    }

    /// What a stream is to a thread whose current context is that device's; `None` where it is no live one.
    pub(crate) fn queue(&self, stream: StreamId, device: i32) -> Option<Queue> {
        match stream {
            NULL | LEGACY => Some(Queue::Legacy(device)),
            PER_THREAD => Some(Queue::OfThread(device, THREAD.with(|thread| *thread))),
            made => self.live.get(&made).copied(),
        }
    }

    /// Begins work; answers the work of another stream that it is not ordered against, if there is any.
    pub(crate) fn begin(&mut self, function: &'static str, queue: Queue, touched: Touched) -> Option<&'static str> {
        let clash = self.clash(queue, &touched);
        self.work.push(Work { function, queue, touched });
        clash
    }

    fn clash(&self, queue: Queue, touched: &Touched) -> Option<&'static str> {
        let overlap = |a: &Piece, b: &Piece| a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
        let meets = |work: &Work| {
            let writes = touched.wish == Wish::Write || work.touched.wish == Wish::Write;
            writes && touched.pieces.iter().any(|a| work.touched.pieces.iter().any(|b| overlap(a, b)))
        };
        let before = self.before(|earlier| earlier.is_ordered_with(queue));
        let beside = self.work.iter().zip(before).filter(|(_, is_before)| !is_before);
        beside.map(|(work, _)| work).find(|work| meets(work)).map(|work| work.function)
    }

    /// Which work is over before what follows some of it at once, since it came before that in order.
    fn before(&self, is_followed: impl Fn(Queue) -> bool) -> Vec<bool> {
        let mut followed: Vec<Queue> = Vec::new();
        let mut before: Vec<bool> = Vec::new();
        for queue in self.work.iter().rev().map(|work| work.queue) {
            let is_before = is_followed(queue) || followed.iter().any(|later| queue.is_ordered_with(*later));
            if is_before && !followed.contains(&queue) {
                followed.push(queue);
            }
            before.push(is_before);
        }
        before.reverse();
        before
    }

    /// `cuStreamSynchronize`: what is on it is over, and with that whatever came before it in order.
    pub(crate) fn wait(&mut self, queue: Queue) {
        let mut over = self.before(|earlier| earlier == queue).into_iter();
        self.work.retain(|_| over.next() != Some(true));
    }

    /// `cuCtxSynchronize`.
    pub(crate) fn wait_for_device(&mut self, device: i32) {
        self.work.retain(|work| work.queue.device() != device);
    }

    /// Its context ended, and everything in it.
    pub(crate) fn end_device(&mut self, device: i32) {
        self.live.retain(|_, queue| queue.device() != device);
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
