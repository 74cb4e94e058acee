//! Who is charged for physical memory: the host, for the device's domain.

use leasehold_plugin_api::{BackingError, Domain, HostServices, LogLevel, MemoryRole};

/// The books of one device.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) host: HostServices,
    pub(crate) domain: Domain,
}

impl Books {
    /// Charges bytes before they are taken. The caller holds no lock.
    pub(crate) fn charge(&self, bytes: u64, role: MemoryRole) -> Result<(), BackingError> {
        self.host.charge(self.domain, bytes, role)
    }

    /// Refunds bytes that were given back. The caller holds no lock.
    pub(crate) fn refund(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Err(error) = self.host.refund(self.domain, bytes) {
            self.report(&format!("{bytes} bytes not refunded: {error}"));
        }
    }

    /// Tells the host what went wrong where no call can answer it.
    pub(crate) fn report(&self, what: &str) {
        self.host.log(LogLevel::Error, what);
    }
}
