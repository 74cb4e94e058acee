//! Growth while a captured graph replays on the same address: what a base that never moves is for.
#![expect(unsafe_code, reason = "captures and launches a graph, which no backing needs to")]

use crate::hosts::Settings;
use crate::table::{Table, Trouble, spread};
use leasehold::BufferSpec;
use leasehold_cuda_driver::Fault;
use libloading::Library;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::time::{Duration, Instant};

type Opaque = *mut c_void;

/// Steps of growth, each while the graph replays.
const STEPS: u64 = 64;
/// Fills in the graph: enough of them that a step of growth begins and ends while they run.
const FILLS: usize = 2000;
/// What the graph writes.
const MARK: u8 = 0x5a;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_uint = 600;
/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: minds what every thread does meanwhile.
const GLOBAL: c_uint = 0;

/// How a stream stands to the default stream.
#[derive(Clone, Copy, Debug)]
enum Flavour {
    /// It waits for the default stream, and that for it.
    Blocking,
    NonBlocking,
}

/// The functions of the driver that capture and replay, each by its documented signature.
struct Graphs {
    library: Library,
}

impl Graphs {
    fn find(settings: &Settings) -> Result<Self, Trouble> {
        let path = settings.driver.clone().unwrap_or_else(|| "libcuda.so.1".into());
        // SAFETY: it is the driver, which is loaded already.
        let library = unsafe { Library::new(path) }.map_err(|error| Trouble::Lacking(error.to_string()))?;
        Ok(Self { library })
    }

    /// A function of the driver.
    ///
    /// # Safety
    ///
    /// `F` is its documented signature.
    unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, Trouble> {
        // SAFETY: the caller promises the signature.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        Ok(*found.map_err(|error| Trouble::Lacking(format!("the driver lacks {name}: {error}")))?)
    }

    /// Calls a function that takes one pointer.
    ///
    /// # Safety
    ///
    /// That is its documented signature, and the pointer is what it wants.
    unsafe fn call(&self, name: &'static str, pointer: Opaque) -> Result<(), Trouble> {
        // SAFETY: the caller promises the signature.
        let function = unsafe { self.function::<unsafe extern "C" fn(Opaque) -> c_uint>(name) }?;
        // SAFETY: the caller promises the pointer.
        check(name, unsafe { function(pointer) })
    }
}

fn check(name: &'static str, code: c_uint) -> Result<(), Trouble> {
    if code == 0 { Ok(()) } else { Err(Fault::new(name, code).into()) }
}

/// A stream and a graph on it that writes to one address.
struct Captured<'g> {
    graphs: &'g Graphs,
    stream: Opaque,
    graph: Opaque,
    replay: Opaque,
}

impl<'g> Captured<'g> {
    fn new(graphs: &'g Graphs, flavour: Flavour) -> Result<Self, Trouble> {
        let mut stream = ptr::null_mut();
        // SAFETY: the signature is the documented one.
        let create =
            unsafe { graphs.function::<unsafe extern "C" fn(*mut Opaque, c_uint) -> c_uint>("cuStreamCreate") }?;
        let flags = match flavour {
            Flavour::Blocking => 0,
            Flavour::NonBlocking => 1,
        };
        // SAFETY: a context is current, and the out-parameter is ours.
        check("cuStreamCreate", unsafe { create(&raw mut stream, flags) })?;
        Ok(Self { graphs, stream, graph: ptr::null_mut(), replay: ptr::null_mut() })
    }

    /// Captures the fills. `meanwhile` runs while they are being captured.
    fn capture(
        &mut self,
        base: u64,
        bytes: u64,
        meanwhile: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let graphs = self.graphs;
        // SAFETY: the signature is the documented one.
        let begin =
            unsafe { graphs.function::<unsafe extern "C" fn(Opaque, c_uint) -> c_uint>("cuStreamBeginCapture_v2") }?;
        // SAFETY: the signature is the documented one.
        let fill =
            unsafe { graphs.function::<unsafe extern "C" fn(u64, u8, usize, Opaque) -> c_uint>("cuMemsetD8Async") }?;
        // SAFETY: the signature is the documented one.
        let end =
            unsafe { graphs.function::<unsafe extern "C" fn(Opaque, *mut Opaque) -> c_uint>("cuStreamEndCapture") }?;
        // SAFETY: the signature is the documented one.
        let instantiate = unsafe {
            graphs.function::<unsafe extern "C" fn(*mut Opaque, Opaque, u64) -> c_uint>("cuGraphInstantiateWithFlags")
        }?;
        // SAFETY: the stream is ours.
        check("cuStreamBeginCapture", unsafe { begin(self.stream, GLOBAL) })?;
        let bytes = usize::try_from(bytes)?;
        let filled = (0..FILLS).try_for_each(|_| {
            // SAFETY: the range is committed device memory of ours; the fill is only captured.
            check("cuMemsetD8Async", unsafe { fill(base, MARK, bytes, self.stream) })
        });
        let done = filled.and_then(|()| meanwhile());
        // SAFETY: the stream is ours and captures.
        check("cuStreamEndCapture", unsafe { end(self.stream, &raw mut self.graph) })?;
        done?;
        // SAFETY: the graph was just captured.
        check("cuGraphInstantiateWithFlags", unsafe { instantiate(&raw mut self.replay, self.graph, 0) })
    }

    fn launch(&self) -> Result<(), Trouble> {
        // SAFETY: the signature is the documented one.
        let launch =
            unsafe { self.graphs.function::<unsafe extern "C" fn(Opaque, Opaque) -> c_uint>("cuGraphLaunch") }?;
        // SAFETY: graph and stream are ours, and the captured range is still committed.
        check("cuGraphLaunch", unsafe { launch(self.replay, self.stream) })
    }

    /// Whether what was launched runs still.
    fn is_running(&self) -> Result<bool, Trouble> {
        // SAFETY: the signature is the documented one.
        let query = unsafe { self.graphs.function::<unsafe extern "C" fn(Opaque) -> c_uint>("cuStreamQuery") }?;
        // SAFETY: the stream is ours.
        match unsafe { query(self.stream) } {
            NOT_READY => Ok(true),
            code => check("cuStreamQuery", code).map(|()| false),
        }
    }

    fn wait(&self) -> Result<(), Trouble> {
        // SAFETY: the stream is ours.
        unsafe { self.graphs.call("cuStreamSynchronize", self.stream) }
    }
}

impl Drop for Captured<'_> {
    /// Before the memory goes that it writes to. What fails here has been told by the call before.
    fn drop(&mut self) {
        let _ = self.wait();
        if !self.replay.is_null() {
            // SAFETY: ours to end, and it does not run.
            let _ = unsafe { self.graphs.call("cuGraphExecDestroy", self.replay) };
        }
        if !self.graph.is_null() {
            // SAFETY: ours to end.
            let _ = unsafe { self.graphs.call("cuGraphDestroy", self.graph) };
        }
        // SAFETY: ours to end.
        let _ = unsafe { self.graphs.call("cuStreamDestroy_v2", self.stream) };
    }
}

/// Whether the graph wrote where it was captured for, as far as there is a graph.
pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    for flavour in [Flavour::NonBlocking, Flavour::Blocking] {
        let figure = grow_under_replay(settings, flavour).map(|(steps, running)| {
            format!(
                "the graph wrote to the same place; it ran on after {running} of {STEPS} steps; a step: {}",
                spread(steps)
            )
        });
        table.add(format!("growth while a captured graph replays on the same address, {flavour:?} stream"), figure);
    }
}

/// How long each step took, and after how many of them the graph was running still.
fn grow_under_replay(settings: &Settings, flavour: Flavour) -> Result<(Vec<Duration>, u64), Trouble> {
    let graphs = Graphs::find(settings)?;
    let (host, backing) = settings.host("cuda-vmm")?;
    let _bound = settings.device.bind()?;
    let granule = settings.granule;
    let mut buffer = host.buffer_set(&backing, 1, &BufferSpec::new((STEPS + 2) * granule))?;
    buffer.grow_to(granule)?;
    let base = buffer.base(0).ok_or_else(|| Trouble::wrong("it has no plane"))?;
    let mut captured = Captured::new(&graphs, flavour)?;
    // Another thread grows the buffer while the graph is captured: neither may notice.
    captured.capture(base.get(), granule, || {
        let grow = || buffer.grow_to(2 * granule);
        let grown = std::thread::scope(|scope| scope.spawn(grow).join());
        Ok(grown.map_err(|_| Trouble::wrong("the growth panicked"))??)
    })?;
    let (mut steps, mut running) = (Vec::new(), 0);
    for step in 3..=STEPS + 2 {
        buffer.fill(0, 0, granule, 0)?;
        captured.launch()?;
        let begin = Instant::now();
        buffer.grow_to(step * granule)?;
        steps.push(begin.elapsed());
        running += u64::from(captured.is_running()?);
        captured.wait()?;
        let (mut first, mut newest) = ([0; 8], [1; 8]);
        buffer.read(0, granule - 8, &mut first)?;
        buffer.read(0, (step - 1) * granule, &mut newest)?;
        if buffer.base(0) != Some(base) || first != [MARK; 8] || newest != [0; 8] {
            return Err(Trouble::wrong(format!(
                "after step {step} the graph's memory shows {first:?}, the newest {newest:?}"
            )));
        }
    }
    Ok((steps, running))
}
