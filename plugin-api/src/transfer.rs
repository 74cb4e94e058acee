//! The capability to copy in and out of memory that the CPU can't touch.

use crate::{Address, BackingError};

/// Copies in and out by address. Each call returns when the bytes have arrived.
///
/// Ranges lie within committed memory of this backing. Nothing orders a copy against what the program runs on the device:
/// the program has waited for that.
pub trait Transfer: Send + Sync {
    /// Copies device memory from `from` on into `into`.
    ///
    /// # Errors
    ///
    /// The kinds that fit the device; `into` may then hold anything.
    fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError>;

    /// Copies `bytes` to device memory from `to` on.
    ///
    /// # Errors
    ///
    /// The kinds that fit the device; the destination may then hold anything.
    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError>;

    /// Sets `bytes` bytes of device memory from `to` on to `value`.
    ///
    /// # Errors
    ///
    /// The kinds that fit the device; the destination may then hold anything.
    fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError>;
}
