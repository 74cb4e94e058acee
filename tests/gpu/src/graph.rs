//! A graph that fills one range again and again, captured from a stream and launched on it.
#![expect(unsafe_code, reason = "captures and launches a graph, which no backing needs to")]

use crate::sys::{Flavour, Graphs, Opaque, Streams};
use crate::table::Trouble;
use std::path::Path;
use std::ptr;

/// Fills in the graph: enough of them that an operation begins and ends while they run.
const FILLS: usize = 2000;
/// What the graph writes from its first fill on.
pub(crate) const MARK: u8 = 0x5a;
/// What it writes with its last fill.
pub(crate) const LAST: u8 = 0x6b;

/// A stream and a graph on it that writes to one address.
pub(crate) struct Captured {
    streams: Streams,
    graphs: Graphs,
    /// Invariant 1: live, and this value's to end.
    stream: Opaque,
    /// Invariant 2: null, or live and this value's to end.
    graph: Opaque,
    /// Invariant 3: null, or live and this value's to end. It is launched on the stream and nowhere else, while the range
    /// that it writes to is committed: whoever makes this value drops it before that range goes.
    replay: Opaque,
}

impl Captured {
    /// A stream of the current context, and no graph yet. The driver is the one at a path, or the system's.
    pub(crate) fn new(driver: Option<&Path>, flavour: Flavour) -> Result<Self, Trouble> {
        let (streams, graphs) = (Streams::find(driver)?, Graphs::find(driver)?);
        let stream = streams.create(flavour)?;
        Ok(Self { streams, graphs, stream, graph: ptr::null_mut(), replay: ptr::null_mut() })
    }

    /// Captures the fills of a range. `meanwhile` runs before the last of them is captured.
    pub(crate) fn capture(
        &mut self,
        base: u64,
        bytes: u64,
        meanwhile: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let bytes = usize::try_from(bytes)?;
        let fill = |mark| {
            // SAFETY: the stream is live (1), and the range committed device memory of ours, whenever the graph runs (3).
            unsafe { self.streams.fill(base, mark, bytes, self.stream) }
        };
        // SAFETY: the stream is live (1).
        unsafe { self.graphs.begin_capture(self.stream) }?;
        let filled = (1..FILLS).try_for_each(|_| fill(MARK)).and_then(|()| meanwhile()).and_then(|()| fill(LAST));
        // SAFETY: the stream is live (1).
        let ended = unsafe { self.graphs.end_capture(self.stream) };
        self.graph = *ended.as_ref().unwrap_or(&ptr::null_mut());
        // What failed first says more than that the capture did not survive it.
        filled.and(ended)?;
        // SAFETY: the graph was just captured (2).
        self.replay = unsafe { self.graphs.instantiate(self.graph) }?;
        Ok(())
    }

    pub(crate) fn launch(&self) -> Result<(), Trouble> {
        // SAFETY: both are live (1, 3), since this is called once `capture` has succeeded; the range is committed (3).
        unsafe { self.graphs.launch(self.replay, self.stream) }
    }

    /// Whether what was launched is still running.
    pub(crate) fn is_running(&self) -> Result<bool, Trouble> {
        // SAFETY: the stream is live (1).
        unsafe { self.graphs.is_running(self.stream) }
    }

    pub(crate) fn wait(&self) -> Result<(), Trouble> {
        // SAFETY: the stream is live (1).
        unsafe { self.streams.wait(self.stream) }
    }
}

impl Drop for Captured {
    /// Waits first, since the memory that the graph writes to goes next. A failure here was reported by an earlier call.
    fn drop(&mut self) {
        let _ = self.wait();
        if !self.replay.is_null() {
            // SAFETY: ours to end (3), and it does not run.
            let _ = unsafe { self.graphs.destroy_replay(self.replay) };
        }
        if !self.graph.is_null() {
            // SAFETY: ours to end (2).
            let _ = unsafe { self.graphs.destroy_graph(self.graph) };
        }
        // SAFETY: ours to end (1).
        let _ = unsafe { self.streams.destroy(self.stream) };
    }
}
