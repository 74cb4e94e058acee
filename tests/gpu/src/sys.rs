//! The driver's functions on streams and graphs: looked up once, each with its documented parameters, and called.
//!
//! In: where the driver's library is. Out: a table of functions, and what each call answers as a `Result`. It owns the
//! library alone: streams and graphs are their caller's, and every call on one says what its caller promises. It never
//! panics. CUDA Driver API, "Stream Management", "Graph Management" and `cuMemsetD8Async`, has the signatures.
#![expect(unsafe_code, reason = "looks functions of the driver up and calls them")]

use crate::table::Trouble;
use leasehold_cuda_driver::Fault;
use libloading::Library;
use std::ffi::{c_uchar, c_uint, c_ulonglong, c_void};
use std::path::Path;
use std::ptr;

/// A stream, a graph, or a graph that can be launched, as the driver hands them out.
pub(crate) type Opaque = *mut c_void;

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_uint = 600;
/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: no thread of the process may make a call that a capture forbids.
const GLOBAL: c_uint = 0;

/// How a stream relates to the default stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flavour {
    /// Each of them waits for the other: `CU_STREAM_DEFAULT`.
    Blocking,
    /// Neither waits for the other: `CU_STREAM_NON_BLOCKING`.
    NonBlocking,
}

/// Declares the table of functions: field, symbol, parameters.
macro_rules! functions {
    ($($field:ident: $symbol:literal, ($($parameter:ty),*);)*) => {
        /// The functions that capture and replay graphs.
        pub(crate) struct Graphs {
            $(
                /// Invariant 1: the driver's function of that symbol, with the parameters that its documentation gives
                /// it. A `CUresult` is a 32-bit number. [`Graphs::find`] looks it up.
                $field: unsafe extern "C" fn($($parameter),*) -> c_uint,
            )*
            /// Invariant 2: the library that the functions are from. It stays loaded for as long as they can be called.
            _library: Library,
        }

        impl Graphs {
            /// Finds every function in the driver's library, which is loaded already: the one at a path, or the system's.
            ///
            /// # Errors
            ///
            /// There is no such library, or it lacks one of the functions.
            pub(crate) fn find(driver: Option<&Path>) -> Result<Self, Trouble> {
                let path = driver.unwrap_or(Path::new("libcuda.so.1"));
                // SAFETY: it is loaded already, so none of its code runs here.
                let library = unsafe { Library::new(path) }.map_err(|error| Trouble::Lacking(error.to_string()))?;
                $(
                    // SAFETY: the function of that symbol has these parameters (1).
                    let found = unsafe { library.get::<unsafe extern "C" fn($($parameter),*) -> c_uint>($symbol.as_bytes()) };
                    let $field = *found.map_err(|error| lacking($symbol, &error))?;
                )*
                Ok(Self { $($field,)* _library: library })
            }
        }
    };
}

functions! {
    stream_create: "cuStreamCreate", (*mut Opaque, c_uint);
    begin_capture: "cuStreamBeginCapture_v2", (Opaque, c_uint);
    fill: "cuMemsetD8Async", (c_ulonglong, c_uchar, usize, Opaque);
    end_capture: "cuStreamEndCapture", (Opaque, *mut Opaque);
    instantiate: "cuGraphInstantiateWithFlags", (*mut Opaque, Opaque, c_ulonglong);
    launch: "cuGraphLaunch", (Opaque, Opaque);
    query: "cuStreamQuery", (Opaque);
    synchronize: "cuStreamSynchronize", (Opaque);
    replay_destroy: "cuGraphExecDestroy", (Opaque);
    graph_destroy: "cuGraphDestroy", (Opaque);
    stream_destroy: "cuStreamDestroy_v2", (Opaque);
}

fn lacking(symbol: &str, error: &libloading::Error) -> Trouble {
    Trouble::Lacking(format!("the driver lacks {symbol}: {error}"))
}

fn check(name: &'static str, code: c_uint) -> Result<(), Trouble> {
    if code == 0 { Ok(()) } else { Err(Fault::new(name, code).into()) }
}

/// Where a call succeeds, what it has written is the caller's. Any thread may call.
impl Graphs {
    /// Makes a stream in the current context.
    pub(crate) fn create_stream(&self, flavour: Flavour) -> Result<Opaque, Trouble> {
        let flags = match flavour {
            Flavour::Blocking => 0,
            Flavour::NonBlocking => 1,
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives. Without a current context it refuses.
        check("cuStreamCreate", unsafe { (self.stream_create)(&raw mut stream, flags) })?;
        Ok(stream)
    }

    /// Has a stream capture what is put on it from now on.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn begin_capture(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the stream.
        check("cuStreamBeginCapture", unsafe { (self.begin_capture)(stream, GLOBAL) })
    }

    /// Puts a fill of device memory on a stream.
    ///
    /// # Safety
    ///
    /// The stream is live. The range is committed device memory that the caller may write, until the fill is over, and
    /// where it is captured, whenever its graph runs.
    pub(crate) unsafe fn fill(&self, base: u64, mark: u8, bytes: usize, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the range and the stream.
        check("cuMemsetD8Async", unsafe { (self.fill)(base, mark, bytes, stream) })
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
    /// Both are live, and what was captured may run now: see [`Graphs::fill`].
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

    /// Waits until everything on a stream is over.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn wait(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the stream.
        check("cuStreamSynchronize", unsafe { (self.synchronize)(stream) })
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

    /// Ends a stream.
    ///
    /// # Safety
    ///
    /// It is live and the caller's to end.
    pub(crate) unsafe fn destroy_stream(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the stream is the caller's to end.
        check("cuStreamDestroy", unsafe { (self.stream_destroy)(stream) })
    }
}
