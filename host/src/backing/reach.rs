//! Who can copy in and out of a backing's memory, and copies by whoever can.

use super::CheckedBacking;
use crate::error::{BufferError, Error};
use leasehold_plugin_api::Address;
use std::sync::Arc;

/// Who can copy in and out of a backing's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The CPU.
    Direct,
    /// The backing.
    Transfer,
    /// Nobody on this side.
    None,
}

impl CheckedBacking {
    /// Whether anybody can copy in and out.
    pub(crate) fn can_copy(&self) -> bool {
        self.reach() != Reach::None
    }

    fn reach(&self) -> Reach {
        if self.capabilities().host_access().is_direct() {
            Reach::Direct
        } else if self.capabilities().has_transfer() {
            Reach::Transfer
        } else {
            Reach::None
        }
    }

    /// Copies the bytes at `place` into `into`. `lend` lends them where the CPU can touch them.
    pub(crate) fn copy_out<'b>(
        &self,
        place: Address,
        into: &mut [u8],
        lend: impl FnOnce() -> Result<&'b [u8], Error>,
    ) -> Result<(), Error> {
        match self.reach() {
            Reach::Direct => into.copy_from_slice(lend()?),
            Reach::Transfer => self.read(place, into)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Copies `bytes` to `place`, by the same rule.
    pub(crate) fn copy_in<'b>(
        &self,
        place: Address,
        bytes: &[u8],
        lend: impl FnOnce() -> Result<&'b mut [u8], Error>,
    ) -> Result<(), Error> {
        match self.reach() {
            Reach::Direct => lend()?.copy_from_slice(bytes),
            Reach::Transfer => self.write(place, bytes)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    /// Sets so many bytes at `place` to a value, by the same rule.
    pub(crate) fn fill_in<'b>(
        &self,
        place: Address,
        (bytes, value): (u64, u8),
        lend: impl FnOnce() -> Result<&'b mut [u8], Error>,
    ) -> Result<(), Error> {
        match self.reach() {
            Reach::Direct => lend()?.fill(value),
            Reach::Transfer => self.fill(place, bytes, value)?,
            Reach::None => return Err(self.out_of_reach()),
        }
        Ok(())
    }

    fn out_of_reach(&self) -> Error {
        BufferError::NotCopied { backing: Arc::clone(self.name()) }.into()
    }
}

/// How many bytes a slice has.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Some bytes of a slice, which are there.
pub(crate) fn part(bytes: &[u8], offset: u64, len: u64) -> &[u8] {
    bytes.get(range(offset, len)).unwrap_or_default()
}

/// The same, to write.
pub(crate) fn part_mut(bytes: &mut [u8], offset: u64, len: u64) -> &mut [u8] {
    bytes.get_mut(range(offset, len)).unwrap_or_default()
}

fn range(offset: u64, len: u64) -> std::ops::Range<usize> {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    at(offset)..at(offset.saturating_add(len))
}
