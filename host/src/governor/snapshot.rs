//! What the books say at one moment.

use leasehold_plugin_api::{AuthorityId, Domain};
use std::fmt;

/// The state of all books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernorSnapshot {
    /// One for each domain, in the order of domains.
    pub domains: Vec<DomainSnapshot>,
}

/// The state of one domain's books, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSnapshot {
    /// The domain.
    pub domain: Domain,
    /// The identity of its books.
    pub authority: AuthorityId,
    /// What may be used.
    pub limit_bytes: u64,
    /// What is used: the sum of all live leases.
    pub used_bytes: u64,
    /// The most that ever was used at once, or since [`Governor::restart_peak`](crate::Governor::restart_peak). What was
    /// charged for an attempt that failed is not counted, unless the attempt may have taken it.
    pub peak_bytes: u64,
    /// What of the bytes in use releases could not give back; see [`Host::reap`](crate::Host::reap).
    pub quarantined_bytes: u64,
}

impl DomainSnapshot {
    /// What may still be taken.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }

    /// By how much the use passes the limit, after the limit was lowered.
    #[must_use]
    pub fn oversubscribed_bytes(&self) -> u64 {
        self.used_bytes.saturating_sub(self.limit_bytes)
    }
}

impl GovernorSnapshot {
    /// The state of one domain's books.
    #[must_use]
    pub fn domain(&self, domain: Domain) -> Option<&DomainSnapshot> {
        self.domains.iter().find(|snapshot| snapshot.domain == domain)
    }
}

impl fmt::Display for DomainSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, limit_bytes, used_bytes, peak_bytes, .. } = self;
        write!(formatter, "{domain}: {used_bytes} of {limit_bytes} bytes used, at most {peak_bytes}")?;
        if self.quarantined_bytes > 0 {
            write!(formatter, ", {} in quarantine", self.quarantined_bytes)?;
        }
        match self.oversubscribed_bytes() {
            0 => Ok(()),
            bytes => write!(formatter, ", oversubscribed by {bytes}"),
        }
    }
}

impl fmt::Display for GovernorSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, domain) in self.domains.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{domain}")?;
        }
        Ok(())
    }
}
