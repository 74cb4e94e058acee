//! Who is charged for the pool's physical memory.
//!
//! Nobody calls a treasury with a lock of the pool held: a charge may come back into this very pool, on the same
//! thread.

use leasehold_plugin_api::{BackingError, Domain, HostServices, LogLevel, MemoryRole};
use std::fmt;

/// The books of the pool, and where it tells what it can answer to nobody.
pub(crate) trait Treasury: fmt::Debug + Send + Sync {
    /// Charges bytes before they are taken.
    fn charge(&self, bytes: u64, role: MemoryRole) -> Result<(), BackingError>;

    /// Gives charged bytes back.
    fn refund(&self, bytes: u64);

    /// Tells what went wrong where no call can answer it.
    fn report(&self, what: &str);
}

/// The host's own books.
impl Treasury for HostServices {
    fn charge(&self, bytes: u64, role: MemoryRole) -> Result<(), BackingError> {
        HostServices::charge(self, Domain::Host, bytes, role)
    }

    fn refund(&self, bytes: u64) {
        if let Err(error) = HostServices::refund(self, Domain::Host, bytes) {
            self.report(&format!("{bytes} bytes could not be refunded: {error}"));
        }
    }

    fn report(&self, what: &str) {
        self.log(LogLevel::Error, what);
    }
}

/// No books: everything is granted.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlimited;

#[cfg(test)]
impl Treasury for Unlimited {
    fn charge(&self, _bytes: u64, _role: MemoryRole) -> Result<(), BackingError> {
        Ok(())
    }

    fn refund(&self, _bytes: u64) {}

    fn report(&self, _what: &str) {}
}
