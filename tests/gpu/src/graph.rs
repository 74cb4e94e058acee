//! Growth while a captured graph replays on the same address: what a base that never moves is for.
#![expect(unsafe_code, reason = "captures and launches a graph, which no backing needs to")]

use crate::hosts::Settings;
use crate::sys::{Flavour, Graphs, Opaque};
use crate::table::{Table, Trouble, spread};
use leasehold::BufferSpec;
use std::ptr;
use std::time::{Duration, Instant};

/// Steps of growth, each while the graph replays.
const STEPS: u64 = 64;
/// Fills in the graph: enough of them that a step of growth begins and ends while they run.
const FILLS: usize = 2000;
/// What the graph writes.
const MARK: u8 = 0x5a;

/// A stream and a graph on it that writes to one address.
struct Captured<'g> {
    graphs: &'g Graphs,
    /// Invariant 1: live, and this value's to end.
    stream: Opaque,
    /// Invariant 2: null, or live and this value's to end.
    graph: Opaque,
    /// Invariant 3: null, or live and this value's to end. It is launched on the stream and nowhere else, while the range
    /// that it writes to is committed: whoever makes this value drops it before that range goes.
    replay: Opaque,
}

impl<'g> Captured<'g> {
    fn new(graphs: &'g Graphs, flavour: Flavour) -> Result<Self, Trouble> {
        let stream = graphs.create_stream(flavour)?;
        Ok(Self { graphs, stream, graph: ptr::null_mut(), replay: ptr::null_mut() })
    }

    /// Captures the fills. `meanwhile` runs while they are being captured.
    fn capture(
        &mut self,
        base: u64,
        bytes: u64,
        meanwhile: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let bytes = usize::try_from(bytes)?;
        // SAFETY: the stream is live (1).
        unsafe { self.graphs.begin_capture(self.stream) }?;
        let filled = (0..FILLS).try_for_each(|_| {
            // SAFETY: the stream is live (1), and the range committed device memory of ours, whenever the graph runs (3).
            unsafe { self.graphs.fill(base, MARK, bytes, self.stream) }
        });
        let done = filled.and_then(|()| meanwhile());
        // SAFETY: the stream is live (1).
        self.graph = unsafe { self.graphs.end_capture(self.stream) }?;
        done?;
        // SAFETY: the graph was just captured (2).
        self.replay = unsafe { self.graphs.instantiate(self.graph) }?;
        Ok(())
    }

    fn launch(&self) -> Result<(), Trouble> {
        // SAFETY: both are live (1, 3), since this is called once `capture` has succeeded; the range is committed (3).
        unsafe { self.graphs.launch(self.replay, self.stream) }
    }

    /// Whether what was launched is still running.
    fn is_running(&self) -> Result<bool, Trouble> {
        // SAFETY: the stream is live (1).
        unsafe { self.graphs.is_running(self.stream) }
    }

    fn wait(&self) -> Result<(), Trouble> {
        // SAFETY: the stream is live (1).
        unsafe { self.graphs.wait(self.stream) }
    }
}

impl Drop for Captured<'_> {
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
        let _ = unsafe { self.graphs.destroy_stream(self.stream) };
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

/// How long each step took, and after how many of them the graph was still running.
fn grow_under_replay(settings: &Settings, flavour: Flavour) -> Result<(Vec<Duration>, u64), Trouble> {
    let graphs = Graphs::find(settings.driver.as_deref())?;
    let (host, backing) = settings.host("cuda-vmm")?;
    let _bound = settings.device.bind()?;
    let granule = settings.sizes.granule;
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
