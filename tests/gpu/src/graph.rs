//! Growth while a captured graph replays on the same address: what a base that never moves is for.
#![expect(unsafe_code, reason = "captures and launches a graph, which no backing needs to")]

use crate::hosts::Settings;
use crate::table::{Table, spread};
use leasehold::BufferSpec;
use libloading::Library;
use std::error::Error;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::time::{Duration, Instant};

type Opaque = *mut c_void;

/// Replays between two steps of growth.
const STEPS: u64 = 64;
/// What the graph writes.
const MARK: u8 = 0x5a;

/// The functions of the driver that capture and replay, each by its documented signature.
struct Graphs {
    library: Library,
}

impl Graphs {
    fn find(settings: &Settings) -> Result<Self, Box<dyn Error>> {
        let path = settings.driver.clone().unwrap_or_else(|| "libcuda.so.1".into());
        // SAFETY: it is the driver, which is loaded already.
        let library = unsafe { Library::new(path) }?;
        Ok(Self { library })
    }

    /// A function of the driver.
    ///
    /// # Safety
    ///
    /// `F` is its documented signature.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Box<dyn Error>> {
        // SAFETY: the caller promises the signature.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        Ok(*found.map_err(|error| format!("the driver lacks {name}: {error}"))?)
    }
}

fn check(name: &str, code: c_int) -> Result<(), Box<dyn Error>> {
    if code == 0 { Ok(()) } else { Err(format!("{name} failed: {code}").into()) }
}

/// A stream and a graph on it that writes to one address.
struct Captured<'g> {
    graphs: &'g Graphs,
    stream: Opaque,
    replay: Opaque,
}

impl<'g> Captured<'g> {
    fn capture(graphs: &'g Graphs, base: u64, bytes: u64) -> Result<Self, Box<dyn Error>> {
        let (mut stream, mut graph, mut replay) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the signature is the documented one.
        let create =
            unsafe { graphs.function::<unsafe extern "C" fn(*mut Opaque, c_uint) -> c_int>("cuStreamCreate") }?;
        // SAFETY: the signature is the documented one.
        let begin =
            unsafe { graphs.function::<unsafe extern "C" fn(Opaque, c_uint) -> c_int>("cuStreamBeginCapture_v2") }?;
        // SAFETY: the signature is the documented one.
        let fill =
            unsafe { graphs.function::<unsafe extern "C" fn(u64, u8, usize, Opaque) -> c_int>("cuMemsetD8Async") }?;
        // SAFETY: the signature is the documented one.
        let end =
            unsafe { graphs.function::<unsafe extern "C" fn(Opaque, *mut Opaque) -> c_int>("cuStreamEndCapture") }?;
        // SAFETY: the signature is the documented one.
        let instantiate = unsafe {
            graphs.function::<unsafe extern "C" fn(*mut Opaque, Opaque, u64) -> c_int>("cuGraphInstantiateWithFlags")
        }?;
        const NON_BLOCKING: c_uint = 1;
        const RELAXED: c_uint = 2;
        // SAFETY: a context is current, and the out-parameter is ours.
        check("cuStreamCreate", unsafe { create(&raw mut stream, NON_BLOCKING) })?;
        // SAFETY: the stream is ours.
        check("cuStreamBeginCapture", unsafe { begin(stream, RELAXED) })?;
        let bytes = usize::try_from(bytes)?;
        // SAFETY: the range is committed device memory of ours; the fill is only captured.
        check("cuMemsetD8Async", unsafe { fill(base, MARK, bytes, stream) })?;
        // SAFETY: the stream is ours and captures.
        check("cuStreamEndCapture", unsafe { end(stream, &raw mut graph) })?;
        // SAFETY: the graph was just captured.
        check("cuGraphInstantiate", unsafe { instantiate(&raw mut replay, graph, 0) })?;
        Ok(Self { graphs, stream, replay })
    }

    fn launch(&self) -> Result<(), Box<dyn Error>> {
        // SAFETY: the signature is the documented one.
        let launch = unsafe { self.graphs.function::<unsafe extern "C" fn(Opaque, Opaque) -> c_int>("cuGraphLaunch") }?;
        // SAFETY: graph and stream are ours, and the captured range is still committed.
        check("cuGraphLaunch", unsafe { launch(self.replay, self.stream) })
    }

    fn wait(&self) -> Result<(), Box<dyn Error>> {
        // SAFETY: the signature is the documented one.
        let wait = unsafe { self.graphs.function::<unsafe extern "C" fn(Opaque) -> c_int>("cuStreamSynchronize") }?;
        // SAFETY: the stream is ours.
        check("cuStreamSynchronize", unsafe { wait(self.stream) })
    }
}

/// Whether the graph wrote where it was captured for, as far as there is a graph.
pub(crate) fn measure(settings: &Settings, table: &mut Table) -> bool {
    let what = "growth while a captured graph replays on the same address";
    match grow_under_replay(settings) {
        Ok((steps, true)) => {
            table.add(what, format!("the graph wrote to the same place; a step: {}", spread(steps)));
            true
        }
        Ok((_, false)) => {
            table.add(what, "the graph wrote **somewhere else**");
            false
        }
        Err(error) => {
            table.add(what, format!("not measured: {error}"));
            true
        }
    }
}

fn grow_under_replay(settings: &Settings) -> Result<(Vec<Duration>, bool), Box<dyn Error>> {
    let graphs = Graphs::find(settings)?;
    let (host, backing) = settings.host("cuda-vmm");
    let _bound = settings.device.bind()?;
    let granule = settings.granule;
    let mut buffer = host.buffer_set(&backing, 1, &BufferSpec::new((STEPS + 1) * granule))?;
    buffer.grow_to(granule)?;
    let base = buffer.base(0).ok_or("it has no plane")?;
    let captured = Captured::capture(&graphs, base.get(), granule)?;
    let mut steps = Vec::new();
    let mut holds = true;
    for step in 2..=STEPS + 1 {
        buffer.fill(0, 0, granule, 0)?;
        captured.launch()?;
        let begin = Instant::now();
        buffer.grow_to(step * granule)?;
        steps.push(begin.elapsed());
        captured.launch()?;
        captured.wait()?;
        let (mut first, mut newest) = ([0; 8], [1; 8]);
        buffer.read(0, granule - 8, &mut first)?;
        buffer.read(0, (step - 1) * granule, &mut newest)?;
        holds &= buffer.base(0) == Some(base) && first == [MARK; 8] && newest == [0; 8];
    }
    Ok((steps, holds))
}
