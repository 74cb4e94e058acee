//! The planes of a prefix, one behind the other in the window that its creator had.
#![expect(unsafe_code, reason = "lends a prefix's bytes out as slices")]

use crate::backing::{PrefixHandle, bytes, length, part};
use crate::error::{BufferError, Error};
use leasehold_plugin_api::Address;
use std::sync::Arc;

/// The planes of one live prefix.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    pub(super) handle: PrefixHandle,
    pub(super) count: usize,
    /// Invariant 1: `count × plane_bytes` are the bytes of the prefix.
    pub(super) plane_bytes: u64,
}

impl Planes {
    /// Where a plane begins.
    pub(super) fn base(&self, plane: usize) -> Option<Address> {
        let offset = u64::try_from(plane).ok()?.checked_mul(self.plane_bytes)?;
        self.handle.window().checked_add(offset).filter(|_| plane < self.count)
    }

    /// The bytes of a plane.
    pub(super) fn bytes(&self, plane: usize) -> Result<&[u8], BufferError> {
        let base = self.find(plane)?;
        // SAFETY: by invariant 1 the plane lies in the window of a live prefix; whoever may write to it holds these planes
        // alone and exclusively (`bytes_mut`).
        unsafe { bytes::of(self.handle.backing(), base, self.plane_bytes) }
    }

    /// The bytes of a plane, to write.
    ///
    /// # Safety
    ///
    /// The prefix is not sealed, and nobody else holds it.
    pub(super) unsafe fn bytes_mut(&mut self, plane: usize) -> Result<&mut [u8], BufferError> {
        let base = self.find(plane)?;
        // SAFETY: by invariant 1 the plane lies in the window of a live prefix, which is borrowed exclusively; the caller
        // promises the rest.
        unsafe { bytes::of_mut(self.handle.backing(), base, self.plane_bytes) }
    }

    /// Where some bytes of a plane are, unless it ends before.
    pub(super) fn place(&self, plane: usize, offset: u64, bytes: u64) -> Result<Address, BufferError> {
        let base = self.find(plane)?;
        let len = self.plane_bytes;
        let end = offset.checked_add(bytes).filter(|end| *end <= len);
        end.and_then(|_| base.checked_add(offset)).ok_or_else(|| {
            let backing = Arc::clone(self.handle.backing().name());
            BufferError::PastTheEnd { backing, plane, offset, bytes, len }
        })
    }

    /// Copies the bytes of a plane from `offset` on into `into`.
    pub(super) fn read(&self, plane: usize, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let bytes = length(into);
        let place = self.place(plane, offset, bytes)?;
        self.handle.backing().copy_out(place, into, || Ok(part(self.bytes(plane)?, offset, bytes)))
    }

    fn find(&self, plane: usize) -> Result<Address, BufferError> {
        let backing = || Arc::clone(self.handle.backing().name());
        self.base(plane).ok_or_else(|| BufferError::NoSuchPlane { backing: backing(), plane, planes: self.count })
    }
}
