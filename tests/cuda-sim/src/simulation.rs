//! The whole simulated driver, and the way into each of its calls.

use crate::books::Calls;
use crate::codes::{Answer, Code};
use crate::contexts::{self, ContextId, Contexts, Unusable};
use crate::memory::{Memory, Wish};
use crate::plans::{Extent, Plans};
use crate::settings::Settings;
use crate::streams::{self, Queue, StreamId, Streams, Touched};

/// What a call needs before it can do anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Works before `cuInit`.
    Nothing,
    /// `CUDA_ERROR_NOT_INITIALIZED` before `cuInit`.
    Initialised,
    /// A context on the calling thread that lives, or `CUDA_ERROR_INVALID_CONTEXT`.
    Context,
    /// The same, unless a setting says that what gives back needs none.
    GivingBack,
}

/// The whole simulated driver.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) settings: Settings,
    /// The process that called `cuInit`: it works in no other.
    initialised_by: Option<u32>,
    pub(crate) contexts: Contexts,
    pub(crate) memory: Memory,
    pub(crate) streams: Streams,
    pub(crate) calls: Calls,
    pub(crate) plans: Plans,
}

impl Simulation {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            initialised_by: None,
            contexts: Contexts::default(),
            memory: Memory::default(),
            streams: Streams::default(),
            calls: Calls::default(),
            plans: Plans::default(),
        }
    }

    /// One call: counts it, fails it where that is planned, looks for what it needs, and acts. `act` gets the device of
    /// the current context, or -1 where none is needed.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        need: Need,
        act: impl FnOnce(&mut Self, i32) -> Answer<T>,
    ) -> Answer<T> {
        self.calls.count(function);
        let strike = self.plans.strike(function);
        if let Some(strike) = strike.filter(|strike| strike.extent == Extent::Nothing) {
            return Err(strike.code);
        }
        if need != Need::Nothing && !self.is_initialised() {
            return Err(Code::NOT_INITIALIZED);
        }
        let is_on_memory = matches!(need, Need::Context | Need::GivingBack);
        let needs_context = is_on_memory && !(need == Need::GivingBack && self.settings.gives_back_without_context);
        if is_on_memory && self.streams.is_capturing && !streams::is_relaxed() {
            self.memory.violation(format!("{function}: unsafe while another thread captures a graph"));
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        let device = if needs_context { self.current_device(function)? } else { -1 };
        self.memory.halves = strike.is_some();
        self.memory.lets_write = self.settings.lets_write;
        let outcome = act(self, device);
        self.memory.halves = false;
        match strike {
            Some(strike) => outcome.and(Err(strike.code)),
            None => outcome,
        }
    }

    /// What a stream is to this thread. A dead stream is undefined; one of another context is refused; the legacy stream
    /// would depend on what is captured, whatever this thread's mode: CUDA Programming Guide, Cross-stream Dependencies
    /// and Events, Prohibited and Unhandled Operations.
    pub(crate) fn queue(&mut self, function: &str, stream: StreamId, device: i32) -> Answer<Queue> {
        let Some(queue) = self.streams.queue(stream, device) else {
            self.memory.violation(format!("{function}: {stream:#x} is no live stream"));
            return Err(Code::INVALID_HANDLE);
        };
        if queue.device() != device {
            return Err(Code::INVALID_HANDLE);
        }
        if self.streams.is_capturing && queue == Queue::Legacy(device) {
            self.memory.violation(format!("{function}: on the legacy stream while another thread captures a graph"));
            return Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        Ok(queue)
    }

    /// Begins work on a stream, after what it does was done. What it touches must not be under way on another one.
    pub(crate) fn begin(
        &mut self,
        function: &'static str,
        queue: Queue,
        (base, bytes, wish): (u64, u64, Wish),
    ) -> Answer<()> {
        let pieces = self.memory.pieces(queue.device(), base, bytes, wish)?;
        let touched = Touched { base, bytes, pieces, wish };
        if let Some(other) = self.streams.begin(function, queue, touched) {
            let text = format!("{function}: {bytes} bytes at {base:#x} while {other} is under way on another stream");
            self.memory.violation(text);
        }
        Ok(())
    }

    /// Ending what work under way touches is undefined.
    pub(crate) fn check_idle(&mut self, function: &str, base: u64, bytes: u64) {
        if let Some(other) = self.streams.under_way(base, bytes) {
            self.memory.violation(format!("{function}: {bytes} bytes at {base:#x} while {other} is under way there"));
        }
    }

    /// The device of the context that is current on this thread.
    fn current_device(&mut self, function: &str) -> Answer<i32> {
        let id = contexts::current().ok_or(Code::INVALID_CONTEXT)?;
        self.usable(function, id)
    }

    /// The device of a context, or the code that a call in it answers.
    pub(crate) fn usable(&mut self, function: &str, id: ContextId) -> Answer<i32> {
        match self.contexts.usable(id) {
            Ok(device) => Ok(device),
            Err(Unusable::Poisoned(code)) => Err(code),
            Err(Unusable::Reset) => Err(Code::CONTEXT_IS_DESTROYED),
            Err(Unusable::Released) => {
                self.memory.violation(format!("{function}: the context {id:#x} was released"));
                Err(Code::CONTEXT_IS_DESTROYED)
            }
            Err(Unusable::Unknown) => {
                self.memory.violation(format!("{function}: {id:#x} is no context"));
                Err(Code::INVALID_CONTEXT)
            }
        }
    }

    /// Whether a context can be made current: one that is poisoned can.
    pub(crate) fn may_be_current(&mut self, function: &str, id: ContextId) -> Answer<()> {
        match self.contexts.usable(id) {
            Ok(_) | Err(Unusable::Poisoned(_)) => Ok(()),
            Err(_) => self.usable(function, id).map(|_| ()),
        }
    }

    /// Refuses an ordinal that no device has.
    pub(crate) fn check_device(&self, device: i32) -> Answer<()> {
        if (0..self.settings.devices).contains(&device) { Ok(()) } else { Err(Code::INVALID_DEVICE) }
    }

    pub(crate) fn is_initialised(&self) -> bool {
        self.initialised_by == Some(std::process::id())
    }

    /// `cuInit`: flags are 0; `CUDA_ERROR_NO_DEVICE` on a machine without one. In a child that was forked afterwards it is
    /// refused, and all other calls are: seen, and not documented.
    pub(crate) fn initialise(&mut self, flags: u32) -> Answer<()> {
        if self.initialised_by.is_some() && !self.is_initialised() {
            return Err(Code::NOT_INITIALIZED);
        }
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.settings.devices == 0 {
            return Err(Code::NO_DEVICE);
        }
        self.initialised_by = Some(std::process::id());
        Ok(())
    }

    /// `cuDevicePrimaryCtxRelease`: with its last user the context ends, and its allocations and streams with it.
    pub(crate) fn release_context(&mut self, device: i32) -> Answer<()> {
        self.check_device(device)?;
        match self.contexts.release(device) {
            Ok(true) => self.end_context(device),
            Ok(false) => {}
            Err(code) => {
                self.memory.violation(format!("cuDevicePrimaryCtxRelease: nobody retains that of device {device}"));
                return Err(code);
            }
        }
        Ok(())
    }

    /// `cuDevicePrimaryCtxReset`: the same, under the hands of its users.
    pub(crate) fn reset_context(&mut self, device: i32) -> Answer<()> {
        self.check_device(device)?;
        self.contexts.reset(device);
        self.end_context(device);
        Ok(())
    }

    fn end_context(&mut self, device: i32) {
        self.memory.end_allocations(device);
        self.streams.end_device(device);
    }

    /// What a kernel's load or store does: where its device may not, the context is poisoned: CUDA Driver API,
    /// `CUresult`, `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(crate) fn touch(&mut self, device: i32, address: u64, wish: Wish) -> Answer<()> {
        // A plain allocation is its own device's, until peer access is enabled, which nothing here does.
        let foreign = self.memory.allocation_owner(address).is_some_and(|owner| owner != device);
        if foreign || self.memory.pieces(device, address, 1, wish).is_err() {
            self.contexts.poison(device, Code::ILLEGAL_ADDRESS)?;
            return Err(Code::ILLEGAL_ADDRESS);
        }
        Ok(())
    }

    /// Starts over, where nothing is live.
    pub(crate) fn reset(&mut self, settings: Settings) -> Answer<()> {
        if !self.memory.is_empty() || self.contexts.retains() > 0 || self.streams.count() > 0 {
            return Err(Code::ILLEGAL_STATE);
        }
        // Contexts stay known, so that one of the time before is still told to be dead.
        let contexts = std::mem::take(&mut self.contexts);
        *self = Self { contexts, ..Self::new(settings) };
        Ok(())
    }
}
