//! One owned plain allocation: made by cuMemAlloc, given back by [`DeviceMemory::close`] or on drop.
#![expect(unsafe_code, reason = "owns the allocation that it frees")]

use crate::device::Device;
use crate::error::Fault;
use crate::span::Span;
use crate::troubles;
use leasehold_plugin_api::Address;

/// One owned plain allocation of device memory.
#[derive(Debug)]
pub struct DeviceMemory {
    device: Device,
    /// Invariant 1: until `ended`, `base` is what `cuMemAlloc` answered for `bytes` and for this value alone.
    base: Address,
    /// See invariant 1.
    bytes: u64,
    ended: bool,
}

impl DeviceMemory {
    pub(crate) fn allocate(device: &Device, bytes: u64) -> Result<Self, Fault> {
        let base = device.run(|calls| calls.allocate(bytes))?;
        Ok(Self { device: device.clone(), base, bytes, ended: false })
    }

    /// Where it begins: at a multiple of 256 bytes, or better.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    /// Its size, as it was asked for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A part of it, to read, write, fill and copy.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a part that doesn't lie within it.
    pub fn span(&self, offset: u64, bytes: u64) -> Result<Span<'_>, Fault> {
        let outside = Fault::invalid_value("cuMemcpy");
        let end = offset.checked_add(bytes).ok_or(outside)?;
        if end > self.bytes {
            return Err(outside);
        }
        let base = self.base.checked_add(offset).ok_or(outside)?;
        // SAFETY: within the allocation (1), which is the device's, and nobody else's while it is borrowed.
        Ok(unsafe { Span::new(&self.device, base, bytes) })
    }

    /// Gives it back. It waits for work on the device.
    ///
    /// # Errors
    ///
    /// The allocation itself, with what the driver answers.
    pub fn close(mut self) -> Result<(), (Self, Fault)> {
        match self.free() {
            Ok(()) => {
                self.ended = true;
                Ok(())
            }
            Err(fault) => Err((self, fault)),
        }
    }

    fn free(&self) -> Result<(), Fault> {
        // SAFETY: the allocation is this value's (1), by the checks in `close` and drop, and no span borrows it.
        self.device.run(|calls| unsafe { calls.free(self.base) })
    }
}

impl Drop for DeviceMemory {
    /// Whoever has someone to tell calls [`DeviceMemory::close`].
    fn drop(&mut self) {
        if !self.ended && self.free().is_err() {
            troubles::count_drop_failed();
        }
    }
}
