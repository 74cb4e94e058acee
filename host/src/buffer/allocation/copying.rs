//! Copies in and out of an allocation, wherever its memory is: by the CPU where it can touch it, else by the backing.

use super::Allocation;
use crate::backing::Reach;
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
        let place = self.place(offset, bytes_of(into))?;
        match self.backing.reach() {
            Reach::Direct => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = self.as_slice()?.get(start..start.saturating_add(into.len()));
                into.copy_from_slice(found.unwrap_or_default());
            }
            Reach::Transfer => self.backing.read(place, into)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Copies `bytes` into it from `offset` on.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.place(offset, bytes_of(bytes))?;
        match self.backing.reach() {
            Reach::Direct => self.part_mut(offset, bytes.len())?.copy_from_slice(bytes),
            Reach::Transfer => self.backing.write(place, bytes)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Sets `bytes` bytes from `offset` on to `value`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn fill(&mut self, offset: u64, bytes: u64, value: u8) -> Result<(), Error> {
        let place = self.place(offset, bytes)?;
        match self.backing.reach() {
            Reach::Direct => self.part_mut(offset, usize::try_from(bytes).unwrap_or(usize::MAX))?.fill(value),
            Reach::Transfer => self.backing.fill(place, bytes, value)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
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

    /// Some bytes, which are there.
    fn part_mut(&mut self, offset: u64, bytes: usize) -> Result<&mut [u8], Error> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(self.as_mut_slice()?.get_mut(start..start.saturating_add(bytes)).unwrap_or_default())
    }

    fn out_of_reach(&self) -> Error {
        BufferError::NotHostAccessible { backing: Arc::clone(self.backing.name()) }.into()
    }
}

fn bytes_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
