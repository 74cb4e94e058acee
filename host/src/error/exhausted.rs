//! A budget that is used up: expected, typed, and cheap until it is printed.

use leasehold_plugin_api::{Domain, MemoryRole, Tier};
use std::fmt;

/// A budget that is used up, with the figures on which the request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierExhausted {
    /// Whose budget.
    pub domain: Domain,
    /// What the memory was for.
    pub role: MemoryRole,
    /// Bytes that were asked for.
    pub requested_bytes: u64,
    /// Bytes in use at that moment.
    pub used_bytes: u64,
    /// Bytes that may be used.
    pub limit_bytes: u64,
    /// Whether the limit is 0 because no backing reports the size of the device.
    pub lacks_size: bool,
}

impl TierExhausted {
    /// The kind of memory.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.domain.tier()
    }

    /// Bytes that were left at that moment.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

impl fmt::Display for TierExhausted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, role, requested_bytes, limit_bytes, .. } = self;
        let available = self.available_bytes();
        write!(formatter, "asks {requested_bytes} bytes on {domain} for {role}, {available} of {limit_bytes} left")?;
        if self.lacks_size {
            return write!(
                formatter,
                ": no backing reports the size of {domain}; set budget.\"{domain}\" in bytes in registry.toml"
            );
        }
        write!(formatter, "; lower the request or raise budget.\"{domain}\" in registry.toml")
    }
}

impl std::error::Error for TierExhausted {}
