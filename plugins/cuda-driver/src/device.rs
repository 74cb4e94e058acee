//! One device: what it is, and what can be made on it. Copies share its context.

use crate::code;
use crate::context::{self, Bound, Context, Lane};
use crate::device_memory::DeviceMemory;
use crate::error::Fault;
use crate::physical::PhysicalHandle;
use crate::primary::Primary;
use crate::properties::{Granularity, Properties};
use crate::reservation::Reservation;
use crate::sys::{COMPUTE_MODE, Calls, PROHIBITED, VIRTUAL_MEMORY_SUPPORTED};
use std::sync::Arc;

/// One device. Its primary context is retained when something first needs it, and released when this value and everything
/// that was made through it are gone: what a device is can be asked without.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) calls: &'static Calls,
    primary: Arc<Primary>,
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// What nobody uses, other processes included.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

impl Device {
    pub(crate) fn open(calls: &'static Calls, ordinal: u32) -> Result<Self, Fault> {
        Ok(Self { calls, primary: Primary::find(calls, ordinal)? })
    }

    /// Its ordinal, by which the driver counts it.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.primary.ordinal
    }

    /// Makes its context current on this thread until the answer is dropped, so that the calls in between find it so:
    /// one call for each of them is saved, or two where another context was current. Every call does this for itself.
    ///
    /// # Errors
    ///
    /// What the driver reports: where this is the first need of a context, that it can't be made; else above all that it has
    /// ended.
    pub fn bind(&self) -> Result<Bound<'_>, Fault> {
        self.primary.bind()
    }

    /// Whether its context was found to have ended under its users, as a reset of the device ends it: nothing can be done in it
    /// any more, and nothing that was begun in it still runs. Memory and addresses may still be given back.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.primary.made().is_some_and(Context::has_ended)
    }

    /// Its context, which is made where this is the first need of it.
    pub(crate) fn context(&self) -> Result<&Context, Fault> {
        self.primary.context()
    }

    /// One or more calls with its context current.
    pub(crate) fn run<T>(&self, act: impl FnOnce(&Calls) -> Result<T, Fault>) -> Result<T, Fault> {
        let _bound = self.bind()?;
        act(self.calls)
    }

    /// One call that gives back, with its context current, or without one where that can't be: after a reset nothing else
    /// can be done. Where neither works, the error is why the context could not be made current.
    pub(crate) fn give_back(&self, act: impl FnOnce(&Calls) -> Result<(), Fault>) -> Result<(), Fault> {
        match self.bind() {
            Ok(_bound) => act(self.calls),
            Err(fault) => context::without_context(self.calls, act).map_err(|_| fault),
        }
    }

    /// Whether its compute mode lets no process make a context.
    pub(crate) fn is_prohibited(&self) -> Result<bool, Fault> {
        self.calls.attribute(COMPUTE_MODE, self.primary.device).map(|mode| mode == PROHIBITED)
    }

    /// Its name, as the driver gives it.
    ///
    /// # Errors
    ///
    /// What the driver answers; this and the following calls leave nothing behind when they fail.
    pub fn name(&self) -> Result<String, Fault> {
        self.calls.device_name(self.primary.device)
    }

    /// All its memory, in bytes.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn total_bytes(&self) -> Result<u64, Fault> {
        self.calls.total_bytes(self.primary.device)
    }

    /// What is free of its memory at this moment.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn memory(&self) -> Result<MemoryInfo, Fault> {
        self.run(Calls::info).map(|(free, total)| MemoryInfo { free, total })
    }

    /// Whether it has virtual memory management: without it nothing can be reserved or mapped.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn supports_virtual_memory(&self) -> Result<bool, Fault> {
        self.calls.attribute(VIRTUAL_MEMORY_SUPPORTED, self.primary.device).map(|value| value != 0)
    }

    /// Which sizes memory of exactly these properties comes in. Its documented codes list none for the want of a context; a
    /// driver that has one nevertheless is asked again with the context.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn granularity(&self, properties: Properties) -> Result<Granularity, Fault> {
        let prop = properties.raw();
        let ask = |calls: &Calls| -> Result<Granularity, Fault> {
            Ok(Granularity { minimum: calls.granularity(&prop, 0)?, recommended: calls.granularity(&prop, 1)? })
        };
        match ask(self.calls) {
            Err(fault) if fault.code == code::INVALID_CONTEXT => self.run(ask),
            outcome => outcome,
        }
    }

    /// Takes address space: a multiple of the minimum granularity, at a multiple of `align`, a power of two and no less than
    /// that granularity. Both are checked by the caller; 2⁴⁷ and more is refused without asking the driver. Where the driver
    /// does not honour the alignment, `align` bytes more are reserved, and the aligned part of them is used.
    ///
    /// # Errors
    ///
    /// What the driver answers; where address space runs out its kind is
    /// [`AddressSpaceExhausted`](leasehold_plugin_api::ErrorKind::AddressSpaceExhausted).
    pub fn reserve(&self, bytes: u64, align: u64) -> Result<Reservation, Fault> {
        Reservation::reserve(self, bytes, align)
    }

    /// Makes physical memory: a multiple of the minimum granularity of these properties.
    ///
    /// # Errors
    ///
    /// What the driver answers; where memory runs out its kind is
    /// [`OutOfMemory`](leasehold_plugin_api::ErrorKind::OutOfMemory).
    pub fn create(&self, properties: Properties, bytes: u64) -> Result<PhysicalHandle, Fault> {
        PhysicalHandle::create(self, properties, bytes)
    }

    /// Makes a plain allocation (`cuMemAlloc`), which its device and every peer may copy to and from.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn allocate(&self, bytes: u64) -> Result<DeviceMemory, Fault> {
        DeviceMemory::allocate(self, bytes)
    }

    /// Waits until what [`Span::zero`](crate::Span::zero) began on this device is done.
    ///
    /// # Errors
    ///
    /// What the driver answers: sticky codes of earlier work too.
    pub fn wait_for_zeroing(&self) -> Result<(), Fault> {
        self.wait(Lane::Zeroing)
    }

    /// Waits until what this library's fills and copies began on this device is done, those included whose call failed
    /// half-way.
    ///
    /// # Errors
    ///
    /// What the driver answers: sticky codes of earlier work too.
    pub fn wait_for_copies(&self) -> Result<(), Fault> {
        self.wait(Lane::Copying)
    }

    /// Where there is no context nothing was begun.
    fn wait(&self, lane: Lane) -> Result<(), Fault> {
        self.primary.made().map_or(Ok(()), |context| context.wait(lane))
    }

    /// Waits until all work in its context is done, whatever stream it was given to (`cuCtxSynchronize`).
    ///
    /// This is the one to publish a prefix with: an engine's kernels wrote it, on streams that nobody told us of, and a
    /// second mapping of the same memory is coherent only once the operation that wrote has completed: CUDA Programming
    /// Guide, Virtual Aliasing Support. It waits for a step that is under way as well, so seal between steps.
    ///
    /// Its context is the device's primary one, and green contexts made from that count too; what runs in a context by
    /// `cuCtxCreate` is not waited for. While a graph is captured in it the driver answers
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` (900), and invalidates that capture: CUDA Programming Guide, Prohibited and
    /// Unhandled Operations.
    ///
    /// # Errors
    ///
    /// What the driver answers, sticky codes of earlier work too.
    pub fn wait_for_all(&self) -> Result<(), Fault> {
        self.run(Calls::synchronise)
    }
}
