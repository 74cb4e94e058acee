//! One owned reference to physical memory: made by cuMemCreate, given back by [`PhysicalHandle::close`] or on drop.
#![expect(unsafe_code, reason = "owns the handle that it releases")]

use crate::device::Device;
use crate::error::Fault;
use crate::properties::Properties;
use crate::troubles;

/// Physical memory, by one reference to it.
///
/// Giving the reference back while the memory is mapped is right: the memory lives until the last mapping and the last
/// reference are gone, in either order.
#[derive(Debug)]
pub struct PhysicalHandle {
    device: Device,
    /// Invariant 1: until `ended`, it is live with one reference that is this value's.
    handle: u64,
    bytes: u64,
    ended: bool,
}

impl PhysicalHandle {
    pub(crate) fn create(device: &Device, properties: Properties, bytes: u64) -> Result<Self, Fault> {
        let prop = properties.raw();
        let handle = device.run(|calls| calls.create(bytes, &prop))?;
        Ok(Self { device: device.clone(), handle, bytes, ended: false })
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The handle, alive as long as this value is.
    pub(crate) fn raw(&self) -> u64 {
        self.handle
    }

    /// Gives the reference back.
    ///
    /// # Errors
    ///
    /// The value itself, with what the driver answers. After a fault of a kind that leaves doubt nobody can tell
    /// whether it was given back.
    pub fn close(mut self) -> Result<(), (Self, Fault)> {
        match self.release() {
            Ok(()) => {
                self.ended = true;
                Ok(())
            }
            Err(fault) => Err((self, fault)),
        }
    }

    fn release(&self) -> Result<(), Fault> {
        // SAFETY: live, and the reference is this value's (1), by the checks in `close` and drop.
        self.device.give_back(|calls| unsafe { calls.release(self.handle) })
    }
}

impl Drop for PhysicalHandle {
    /// Whoever has someone to tell calls [`PhysicalHandle::close`].
    fn drop(&mut self) {
        if !self.ended && self.release().is_err() {
            troubles::count_drop_failed();
        }
    }
}
