//! Copies in and out of an allocation, wherever its memory is: by the CPU where it can touch it, else by the backing.

use super::Allocation;
use crate::backing::{length, part, part_mut};
use crate::error::{BufferError, Error};
use leasehold_plugin_api::Address;
use std::sync::Arc;

impl Allocation {
    /// Copies the bytes from `offset` on into `into`.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it ends before,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when neither the CPU nor the backing can copy, and what the backing
    /// reports; `into` may then hold anything.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let bytes = length(into);
        let place = self.place(offset, bytes)?;
        self.backing.copy_out(place, into, || Ok(part(self.as_slice()?, offset, bytes)))
    }

    /// Copies `bytes` into it from `offset` on.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.place(offset, length(bytes))?;
        let backing = Arc::clone(&self.backing);
        backing.copy_in(place, bytes, || Ok(part_mut(self.as_mut_slice()?, offset, length(bytes))))
    }

    /// Sets `bytes` bytes from `offset` on to `value`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn fill(&mut self, offset: u64, bytes: u64, value: u8) -> Result<(), Error> {
        let place = self.place(offset, bytes)?;
        let backing = Arc::clone(&self.backing);
        backing.fill_in(place, (bytes, value), || Ok(part_mut(self.as_mut_slice()?, offset, bytes)))
    }

    /// Where some bytes are, unless it ends before.
    fn place(&self, offset: u64, bytes: u64) -> Result<Address, BufferError> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.len);
        end.and_then(|_| self.base().checked_add(offset)).ok_or_else(|| BufferError::PastTheAllocation {
            backing: Arc::clone(self.backing.name()),
            offset,
            bytes,
            len: self.len,
        })
    }
}
