//! A budget that is used up: expected, typed, and cheap until it is printed.

use leasehold_plugin_api::{Domain, MemoryRole, Tier};
use std::fmt;

/// Bytes that a backing's releases could not give back: charged until [`Host::reap`](crate::Host::reap) releases them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The backing's name.
    pub backing: String,
    /// How many.
    pub bytes: u64,
}

/// A budget that is used up, with the figures on which the request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What of the bytes in use is in quarantine, by backing.
    pub quarantined: Vec<Quarantined>,
}

/// The figures of a refusal alone: what a thread keeps of it, which owns nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedFigures {
    pub(crate) domain: Domain,
    role: MemoryRole,
    requested_bytes: u64,
    used_bytes: u64,
    limit_bytes: u64,
    lacks_size: bool,
}

impl RefusedFigures {
    pub(crate) fn of(refusal: &TierExhausted) -> Self {
        let TierExhausted { domain, role, requested_bytes, used_bytes, limit_bytes, lacks_size, .. } = *refusal;
        Self { domain, role, requested_bytes, used_bytes, limit_bytes, lacks_size }
    }

    pub(crate) fn with_quarantined(self, quarantined: Vec<Quarantined>) -> TierExhausted {
        let Self { domain, role, requested_bytes, used_bytes, limit_bytes, lacks_size } = self;
        TierExhausted { domain, role, requested_bytes, used_bytes, limit_bytes, lacks_size, quarantined }
    }
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

    /// Bytes in use that releases could not give back.
    #[must_use]
    pub fn quarantined_bytes(&self) -> u64 {
        self.quarantined.iter().fold(0, |sum, one| sum.saturating_add(one.bytes))
    }

    /// Whether it would not fit either, if all that is in quarantine came back.
    fn passes_the_limit_without_quarantine(&self) -> bool {
        let used_bytes = self.used_bytes.saturating_sub(self.quarantined_bytes());
        used_bytes.saturating_add(self.requested_bytes) > self.limit_bytes
    }

    fn write_quarantine(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, ", {} of them in quarantine after failed releases (", self.quarantined_bytes())?;
        for (index, Quarantined { backing, bytes }) in self.quarantined.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{backing:?}: {bytes}")?;
        }
        formatter.write_str("); call Host::reap() to release them, or restart the process")
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
        let remedy = format_args!("lower the request or raise budget.\"{domain}\" in registry.toml");
        if self.quarantined_bytes() == 0 {
            return write!(formatter, "; {remedy}");
        }
        self.write_quarantine(formatter)?;
        if self.passes_the_limit_without_quarantine() { write!(formatter, "; and {remedy}") } else { Ok(()) }
    }
}

impl std::error::Error for TierExhausted {}
