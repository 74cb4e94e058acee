//! Copies in and out of planes, wherever their memory is: by the CPU where it can touch it, else by the backing.

use super::{BufferSet, no_such_plane};
use crate::backing::{length, part, part_mut};
use crate::error::{BufferError, Error, PrefixError};
use leasehold_plugin_api::Address;
use std::sync::Arc;

impl BufferSet {
    /// Copies the bytes of a plane from `offset` on into `into`.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such plane or it ends before,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when neither the CPU nor the backing can copy, and what the backing
    /// reports; `into` may then hold anything.
    pub fn read(&self, plane: usize, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let bytes = length(into);
        let place = self.place(plane, offset, bytes)?;
        self.backing.copy_out(place, into, || Ok(part(self.plane(plane)?, offset, bytes)))
    }

    /// Copies `bytes` into a plane from `offset` on, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`WrongState`](crate::ErrorKind::WrongState) when a prefix is mapped there.
    pub fn write(&mut self, plane: usize, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.private_place(plane, offset, length(bytes))?;
        let backing = Arc::clone(&self.backing);
        backing.copy_in(place, bytes, || self.private_part(plane, offset, length(bytes)))
    }

    /// Sets `bytes` bytes of a plane from `offset` on to `value`, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn fill(&mut self, plane: usize, offset: u64, bytes: u64, value: u8) -> Result<(), Error> {
        let place = self.private_place(plane, offset, bytes)?;
        let backing = Arc::clone(&self.backing);
        backing.fill_in(place, (bytes, value), || self.private_part(plane, offset, bytes))
    }

    /// Where some bytes of a plane are, unless it ends before.
    fn place(&self, plane: usize, offset: u64, bytes: u64) -> Result<Address, BufferError> {
        let count = self.planes.len();
        let found = self.planes.get(plane).ok_or_else(|| no_such_plane(&self.backing, plane, count))?;
        let len = self.len.min(found.certain());
        let end = offset.checked_add(bytes).filter(|end| *end <= len);
        end.and_then(|_| found.base().checked_add(offset)).ok_or_else(|| BufferError::PastTheEnd {
            backing: Arc::clone(self.backing.name()),
            plane,
            offset,
            bytes,
            len,
        })
    }

    fn private_place(&self, plane: usize, offset: u64, bytes: u64) -> Result<Address, Error> {
        if offset < self.shared && bytes > 0 {
            return Err(PrefixError::ReadOnly { backing: Arc::clone(self.backing.name()), shared: self.shared }.into());
        }
        Ok(self.place(plane, offset, bytes)?)
    }

    /// Some private bytes of a plane, which are there.
    fn private_part(&mut self, plane: usize, offset: u64, bytes: u64) -> Result<&mut [u8], Error> {
        let start = offset.saturating_sub(self.shared);
        Ok(part_mut(self.private_mut(plane)?, start, bytes))
    }
}
