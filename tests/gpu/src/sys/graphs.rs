//! The driver's functions that capture and replay graphs.
#![expect(unsafe_code, reason = "looks functions of the driver up and calls them")]

use super::{Opaque, check, functions};
use crate::table::Trouble;
use std::ffi::{c_uint, c_ulonglong};
use std::ptr;

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_uint = 600;
/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: no thread of the process may make a call that a capture forbids.
const GLOBAL: c_uint = 0;

functions! {
    /// The functions that capture and replay graphs, and tell whether one is over.
    Graphs;
    begin_capture: "cuStreamBeginCapture_v2", (Opaque, c_uint);
    end_capture: "cuStreamEndCapture", (Opaque, *mut Opaque);
    instantiate: "cuGraphInstantiateWithFlags", (*mut Opaque, Opaque, c_ulonglong);
    launch: "cuGraphLaunch", (Opaque, Opaque);
    query: "cuStreamQuery", (Opaque);
    replay_destroy: "cuGraphExecDestroy", (Opaque);
    graph_destroy: "cuGraphDestroy", (Opaque);
}

/// Where a call succeeds, what it has written is the caller's. Any thread may call.
impl Graphs {
    /// Has a stream capture what is put on it from now on.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn begin_capture(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the stream.
        check("cuStreamBeginCapture", unsafe { (self.begin_capture)(stream, GLOBAL) })
    }

    /// Ends a capture, and answers the graph that came of it.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn end_capture(&self, stream: Opaque) -> Result<Opaque, Trouble> {
        let mut graph = ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives; the caller promises the stream.
        check("cuStreamEndCapture", unsafe { (self.end_capture)(stream, &raw mut graph) })?;
        Ok(graph)
    }

    /// Makes of a graph one that can be launched.
    ///
    /// # Safety
    ///
    /// The graph is live.
    pub(crate) unsafe fn instantiate(&self, graph: Opaque) -> Result<Opaque, Trouble> {
        let mut replay = ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives; the caller promises the graph.
        check("cuGraphInstantiateWithFlags", unsafe { (self.instantiate)(&raw mut replay, graph, 0) })?;
        Ok(replay)
    }

    /// Launches a graph on a stream.
    ///
    /// # Safety
    ///
    /// Both are live, and what was captured may run now: see [`Streams::fill`](super::Streams::fill).
    pub(crate) unsafe fn launch(&self, replay: Opaque, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises graph and stream.
        check("cuGraphLaunch", unsafe { (self.launch)(replay, stream) })
    }

    /// Whether something on a stream is not over yet.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn is_running(&self, stream: Opaque) -> Result<bool, Trouble> {
        // SAFETY: the function (1, 2); the caller promises the stream.
        match unsafe { (self.query)(stream) } {
            NOT_READY => Ok(true),
            code => check("cuStreamQuery", code).map(|()| false),
        }
    }

    /// Ends a graph that could be launched.
    ///
    /// # Safety
    ///
    /// It is live and the caller's to end, and it does not run.
    pub(crate) unsafe fn destroy_replay(&self, replay: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the graph is the caller's to end.
        check("cuGraphExecDestroy", unsafe { (self.replay_destroy)(replay) })
    }

    /// Ends a captured graph.
    ///
    /// # Safety
    ///
    /// It is live and the caller's to end.
    pub(crate) unsafe fn destroy_graph(&self, graph: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the graph is the caller's to end.
        check("cuGraphDestroy", unsafe { (self.graph_destroy)(graph) })
    }
}
