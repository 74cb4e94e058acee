//! Bytes of a device that somebody owns: read, written, filled and copied through the driver.
//!
//! The driver refuses a range that isn't mapped, or not for the device; its context lives on. Fills, and copies within
//! a device, are begun and not waited for; the default stream orders them, and
//! [`Device::wait_for_default_stream`](crate::Device::wait_for_default_stream) waits for them. A copy from the host has
//! taken its bytes when it returns; a copy to the host has written them.
#![expect(unsafe_code, reason = "has the driver read and write device memory, and owns an event")]

use crate::context::Context;
use crate::device::Device;
use crate::error::{Fault, code};
use crate::sys::{Calls, Opaque};
use leasehold_plugin_api::Address;

/// `CU_EVENT_DISABLE_TIMING`: all that is wanted is to wait.
const NO_TIMING: u32 = 2;

/// A range of device memory, borrowed from what owns it.
#[derive(Clone, Copy, Debug)]
pub struct Span<'owner> {
    device: &'owner Device,
    /// Invariant 1: `base .. base + bytes` lies within what is borrowed, so it is device memory and no other.
    base: Address,
    /// See invariant 1.
    bytes: u64,
}

impl<'owner> Span<'owner> {
    /// # Safety
    ///
    /// The range is device memory, or reserved for it, that is the borrowed owner's and nobody else's.
    pub(crate) unsafe fn new(device: &'owner Device, base: Address, bytes: u64) -> Self {
        Self { device, base, bytes }
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes as many bytes as it has.
    ///
    /// # Errors
    ///
    /// What the driver answers; `CUDA_ERROR_INVALID_VALUE` where `from` is of another length.
    pub fn write(&self, from: &[u8]) -> Result<(), Fault> {
        self.check_length("cuMemcpyHtoD", from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the range is the owner's (1), and as long as the slice.
        self.device.run(|calls| unsafe { calls.copy_in(self.base, from) })
    }

    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// What the driver answers; `CUDA_ERROR_INVALID_VALUE` where `to` is of another length.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Fault> {
        self.check_length("cuMemcpyDtoH", to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: the range is the owner's (1), and as long as the slice.
        self.device.run(|calls| unsafe { calls.copy_out(to, self.base) })
    }

    /// Writes one byte all over it.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn fill(&self, byte: u8) -> Result<(), Fault> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range is the owner's (1).
        self.device.run(|calls| unsafe { calls.fill(self.base, self.bytes, byte) })
    }

    /// Copies a range of the same size into it, which must not overlap it.
    ///
    /// # Errors
    ///
    /// What the driver answers; `CUDA_ERROR_INVALID_VALUE` where the sizes differ or the addresses overlap.
    pub fn copy_from(&self, source: &Span<'_>) -> Result<(), Fault> {
        let disjoint = self.base.get().abs_diff(source.base.get()) >= self.bytes;
        if source.bytes != self.bytes || !disjoint {
            return Err(Fault::new("cuMemcpyDtoD", code::INVALID_VALUE));
        }
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are their owners' (1), and of one size.
        self.device.run(|calls| unsafe { calls.copy(self.base, source.base, self.bytes) })
    }

    fn check_length(&self, call: &'static str, length: usize) -> Result<(), Fault> {
        let same = u64::try_from(length).is_ok_and(|length| length == self.bytes);
        if same { Ok(()) } else { Err(Fault::new(call, code::INVALID_VALUE)) }
    }
}

/// An event that is destroyed on drop, or serves again where the driver doesn't take it back.
struct Event<'calls> {
    calls: &'calls Calls,
    context: &'calls Context,
    /// Invariant 2: live, made in the context that is current for as long as this value lives, and nobody else's.
    raw: Opaque,
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: live, and ended only here (2).
        if unsafe { self.calls.destroy_event(self.raw) }.is_err() {
            self.context.keep_event(self.raw);
        }
    }
}

/// Waits for what was given to the default stream of the context so far, which is current.
pub(crate) fn wait_for_default_stream(calls: &Calls, context: &Context) -> Result<(), Fault> {
    let raw = context.take_event().map_or_else(|| calls.create_event(NO_TIMING), Ok)?;
    let event = Event { calls, context, raw };
    // SAFETY: live, and of the context that is current (2).
    unsafe { calls.record_event(event.raw) }?;
    // SAFETY: live (2).
    unsafe { calls.await_event(event.raw) }
}
