//! Copies in and out of planes, wherever their memory is: by the CPU where it can touch it, else by the backing.

use super::{BufferSet, no_such_plane};
use crate::backing::Reach;
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
        let place = self.place(plane, offset, bytes_of(into))?;
        match self.backing.reach() {
            Reach::Direct => into.copy_from_slice(part(self.plane(plane)?, offset, into.len())),
            Reach::Transfer => self.backing.read(place, into)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Copies `bytes` into a plane from `offset` on, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`WrongState`](crate::ErrorKind::WrongState) when a prefix is mapped there.
    pub fn write(&mut self, plane: usize, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.private_place(plane, offset, bytes_of(bytes))?;
        match self.backing.reach() {
            Reach::Direct => self.private_part(plane, offset, bytes.len())?.copy_from_slice(bytes),
            Reach::Transfer => self.backing.write(place, bytes)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Sets `bytes` bytes of a plane from `offset` on to `value`, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn fill(&mut self, plane: usize, offset: u64, bytes: u64, value: u8) -> Result<(), Error> {
        let place = self.private_place(plane, offset, bytes)?;
        match self.backing.reach() {
            Reach::Direct => {
                self.private_part(plane, offset, usize::try_from(bytes).unwrap_or(usize::MAX))?.fill(value)
            }
            Reach::Transfer => self.backing.fill(place, bytes, value)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
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
    fn private_part(&mut self, plane: usize, offset: u64, bytes: usize) -> Result<&mut [u8], Error> {
        let start = usize::try_from(offset.saturating_sub(self.shared)).unwrap_or(usize::MAX);
        let private = self.private_mut(plane)?;
        Ok(private.get_mut(start..start.saturating_add(bytes)).unwrap_or_default())
    }

    fn out_of_reach(&self) -> Error {
        BufferError::NotHostAccessible { backing: Arc::clone(self.backing.name()) }.into()
    }
}

/// Some bytes of a plane, which are there.
fn part(bytes: &[u8], offset: u64, len: usize) -> &[u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    bytes.get(start..start.saturating_add(len)).unwrap_or_default()
}

fn bytes_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
