//! Bytes of a device that somebody owns: read, written, filled and copied through the driver.
//!
//! Whoever owns the range knows what is mapped, and names nothing else: a driver refuses a range that isn't mapped, or
//! not for the device, but its documentation promises that of no copy. All of it runs on streams of this library's own,
//! which nothing orders against the program's: whoever wrote or reads the bytes elsewhere waits for that first. Except
//! for [`Span::zero`], everything is done when the call returns; where it fails, some of it may still be under way, and
//! [`Device::wait_for_copies`](crate::Device::wait_for_copies) tells when that is over. Until then the host's bytes may
//! be in use too where they are page-locked: only pageable ones are done with when the driver's call returns (CUDA
//! Driver API, API synchronization behavior).
#![expect(unsafe_code, reason = "has the driver read and write device memory")]

use crate::context::Lane;
use crate::device::Device;
use crate::error::Fault;
use crate::sys::{Calls, Opaque};
use leasehold_plugin_api::Address;

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
        self.check_length("cuMemcpyHtoDAsync", from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the range is the owner's (1), and as long as the slice; it is waited for.
        self.copying(|calls, stream| unsafe { calls.copy_in(self.base, from, stream) })
    }

    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// What the driver answers; `CUDA_ERROR_INVALID_VALUE` where `to` is of another length.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Fault> {
        self.check_length("cuMemcpyDtoHAsync", to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: the range is the owner's (1), and as long as the slice; it is waited for.
        self.copying(|calls, stream| unsafe { calls.copy_out(to, self.base, stream) })
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
        self.copying(|calls, stream| unsafe { calls.fill(self.base, self.bytes, byte, stream) })
    }

    /// Begins to write zeros all over it. [`Device::wait_for_zeroing`](crate::Device::wait_for_zeroing) waits for that.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn zero(&self) -> Result<(), Fault> {
        if self.bytes == 0 {
            return Ok(());
        }
        let stream = self.device.context()?.stream(Lane::Zeroing);
        // SAFETY: the range is the owner's (1), the stream is of the device's context, which is current.
        self.device.run(|calls| unsafe { calls.fill(self.base, self.bytes, 0, stream) })
    }

    /// Copies a range of the same size into it, which must not overlap it.
    ///
    /// # Errors
    ///
    /// What the driver answers; `CUDA_ERROR_INVALID_VALUE` where the sizes differ or the addresses overlap.
    pub fn copy_from(&self, source: &Span<'_>) -> Result<(), Fault> {
        let disjoint = self.base.get().abs_diff(source.base.get()) >= self.bytes;
        if source.bytes != self.bytes || !disjoint {
            return Err(Fault::invalid_value("cuMemcpyDtoDAsync"));
        }
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are their owners' (1), and of one size.
        self.copying(|calls, stream| unsafe { calls.copy(self.base, source.base, self.bytes, stream) })
    }

    /// Begins something on the stream for copies, and waits for it: where it began, the host's bytes are in use until then.
    fn copying(&self, begin: impl FnOnce(&Calls, Opaque) -> Result<(), Fault>) -> Result<(), Fault> {
        let context = self.device.context()?;
        self.device.run(|calls| {
            let begun = begin(calls, context.stream(Lane::Copying));
            // Also after a failure: nobody can tell whether it began.
            let waited = context.wait(Lane::Copying);
            begun.and(waited)
        })
    }

    fn check_length(&self, call: &'static str, length: usize) -> Result<(), Fault> {
        let same = u64::try_from(length).is_ok_and(|length| length == self.bytes);
        if same { Ok(()) } else { Err(Fault::invalid_value(call)) }
    }
}
