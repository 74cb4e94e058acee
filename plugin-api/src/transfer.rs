//! The capability to copy in and out of memory that the CPU can't touch.

use crate::{Address, BackingError};

/// Copies in and out by address. Each call returns when the bytes have arrived.
///
/// Ranges lie within what is committed or mapped of this backing, in one region, allocation or prefix. What is not
/// there, and a write to what is sealed, is refused before the device is asked. Nothing orders a copy against what the
/// program runs on the device: the program has waited for that.
pub trait Transfer: Send + Sync {
    /// Copies device memory from `from` on into `into`.
    ///
    /// # Errors
    ///
    /// [`NotCommitted`](crate::ErrorKind::NotCommitted) where some of the bytes are not there,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) where they lie in nothing that is live, and the kinds that fit the
    /// device; `into` may then hold anything.
    fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError>;

    /// Copies `bytes` to device memory from `to` on.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`WrongState`](crate::ErrorKind::WrongState) where some of the bytes are sealed, in a
    /// prefix's window or wherever it is mapped: then nothing is written. Otherwise the destination may hold anything.
    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError>;

    /// Sets `bytes` bytes of device memory from `to` on to `value`.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError>;
}
