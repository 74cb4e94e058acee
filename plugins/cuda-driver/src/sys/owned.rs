//! Calls that need values which are alive, or the caller's own: each says which.
//!
//! In every function invariants 1 and 2 are those of [`Calls`].
#![expect(unsafe_code, reason = "calls the driver's functions")]

use super::table::{Calls, named};
use super::{Opaque, length, outcome, raw};
use crate::error::Fault;
use leasehold_plugin_api::Address;
use std::ffi::c_int;

impl Calls {
    /// # Safety
    ///
    /// The caller has retained this device's context once more than it has released it.
    pub(crate) unsafe fn release_context(&self, device: c_int) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the retain is the caller's to end.
        outcome(named::release_context, unsafe { (self.release_context)(device) })
    }

    /// # Safety
    ///
    /// The context is null, or one that the driver handed out.
    pub(crate) unsafe fn set_current(&self, context: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the context is the driver's own.
        outcome(named::set_current, unsafe { (self.set_current)(context) })
    }

    /// What distinguishes a context from a later one at the same address; `None` where the driver is older than that (12.0).
    ///
    /// # Safety
    ///
    /// The context is one that the driver handed out; it may have ended: `CUDA_ERROR_CONTEXT_IS_DESTROYED` is among the
    /// documented codes.
    pub(crate) unsafe fn context_id(&self, context: Opaque) -> Result<Option<u64>, Fault> {
        let Some(function) = self.context_id else { return Ok(None) };
        let mut id = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives; the context is the driver's own.
        outcome(named::context_id, unsafe { function(context, &raw mut id) })?;
        Ok(Some(id))
    }

    /// # Safety
    ///
    /// The caller owns the reservation of exactly this address and size, and nothing uses its addresses any more.
    pub(crate) unsafe fn free_addresses(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        let bytes = length(named::free_addresses, bytes)?;
        // SAFETY: the function (1, 2); the reservation is the caller's to end.
        outcome(named::free_addresses, unsafe { (self.free_addresses)(base.get(), bytes) })
    }

    /// # Safety
    ///
    /// The handle is live, and the caller has a reference to end.
    pub(crate) unsafe fn release(&self, handle: u64) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the reference is the caller's to end.
        outcome(named::release, unsafe { (self.release)(handle) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range, and the handle is live.
    pub(crate) unsafe fn map(&self, base: Address, bytes: u64, handle: u64) -> Result<(), Fault> {
        let bytes = length(named::map, bytes)?;
        // SAFETY: the function (1, 2), with the only offset and flags that there are; range and handle are the
        // caller's.
        outcome(named::map, unsafe { (self.map)(base.get(), bytes, 0, handle, 0) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range.
    pub(crate) unsafe fn unmap(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        let bytes = length(named::unmap, bytes)?;
        // SAFETY: the function (1, 2); the range is the caller's.
        outcome(named::unmap, unsafe { (self.unmap)(base.get(), bytes) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range.
    pub(crate) unsafe fn set_access(
        &self,
        base: Address,
        bytes: u64,
        descriptions: &[raw::CUmemAccessDesc],
    ) -> Result<(), Fault> {
        let bytes = length(named::set_access, bytes)?;
        let (first, count) = (descriptions.as_ptr(), descriptions.len());
        // SAFETY: the function (1, 2), with a slice that lives; the range is the caller's.
        outcome(named::set_access, unsafe { (self.set_access)(base.get(), bytes, first, count) })
    }

    /// # Safety
    ///
    /// The caller owns the allocation, and nothing uses it any more.
    pub(crate) unsafe fn free(&self, base: Address) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the allocation is the caller's to end.
        outcome(named::free, unsafe { (self.free)(base.get()) })
    }

    /// Begins it on the stream. Where it began, the bytes may still be read after it answers.
    ///
    /// # Safety
    ///
    /// As many bytes as `from` has, from `to` on, are the device's, and the caller's. The stream is live, of the context
    /// that is current, and is waited for before either range is used otherwise or ends.
    pub(crate) unsafe fn copy_in(&self, to: Address, from: &[u8], stream: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with a slice that lives until the stream was waited for; the rest is the caller's.
        outcome(named::copy_in, unsafe { (self.copy_in)(to.get(), from.as_ptr(), from.len(), stream) })
    }

    /// Begins it on the stream.
    ///
    /// # Safety
    ///
    /// As many bytes as `to` has, from `from` on, are the device's, and the caller's. The stream is live, of the context
    /// that is current, and is waited for before either range is used otherwise or ends.
    pub(crate) unsafe fn copy_out(&self, to: &mut [u8], from: Address, stream: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with a slice that lives and is nobody else's until the stream was waited for; the
        // rest is the caller's.
        outcome(named::copy_out, unsafe { (self.copy_out)(to.as_mut_ptr(), from.get(), to.len(), stream) })
    }

    /// Begins it on the stream.
    ///
    /// # Safety
    ///
    /// Both ranges are devices', and the caller's. The stream is live, and of the context that is current.
    pub(crate) unsafe fn copy(&self, to: Address, from: Address, bytes: u64, stream: Opaque) -> Result<(), Fault> {
        let bytes = length(named::copy, bytes)?;
        // SAFETY: the function (1, 2); ranges and stream are the caller's.
        outcome(named::copy, unsafe { (self.copy)(to.get(), from.get(), bytes, stream) })
    }

    /// Begins it on the stream.
    ///
    /// # Safety
    ///
    /// The range is the device's, and the caller's. The stream is live, and of the context that is current.
    pub(crate) unsafe fn fill(&self, to: Address, bytes: u64, byte: u8, stream: Opaque) -> Result<(), Fault> {
        let bytes = length(named::fill, bytes)?;
        // SAFETY: the function (1, 2); range and stream are the caller's.
        outcome(named::fill, unsafe { (self.fill)(to.get(), byte, bytes, stream) })
    }

    /// Waits until what was begun on it is done.
    ///
    /// # Safety
    ///
    /// The stream is live, and of the context that is current.
    pub(crate) unsafe fn await_stream(&self, stream: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the stream is the caller's.
        outcome(named::await_stream, unsafe { (self.await_stream)(stream) })
    }

    /// # Safety
    ///
    /// The stream is live, and the caller's to end.
    pub(crate) unsafe fn destroy_stream(&self, stream: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the stream is the caller's to end.
        outcome(named::destroy_stream, unsafe { (self.destroy_stream)(stream) })
    }
}
