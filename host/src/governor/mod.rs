//! Leases every committed byte, one ledger and one authority per domain.
//!
//! ```text
//!   Governor ──► DomainBooks (one per domain) ──► Ledger   limit, used, peak
//!                     │ authority                   ▲
//!                     └───────── Lease ─────────────┘      a live charge, returned once, on drop
//! ```
//!
//! * G1: the sum of all leases stays within the limit. Memory that is taken already is recorded even above it; a limit
//!   lowered below what is in use takes nothing away and grants nothing more. Both show as oversubscribed.
//! * G2: a lease is returned exactly once, on drop, and returning can't fail.
//! * G4: a refused request leaves every lease and counter as it was.
//!
//! The governor frees nobody's memory and knows no backing; it reads nothing but its own books, and asks nobody to make
//! room (G3 of the architecture is not built yet). Any thread may call it.

mod books;
mod lease;
mod ledger;
mod snapshot;

pub(crate) use books::{DomainBooks, GovernorCore};
pub use lease::Lease;
pub use snapshot::{DomainSnapshot, GovernorSnapshot};

use crate::error::Error;
use leasehold_plugin_api::{AuthorityId, Domain, MemoryRole};
use std::sync::Arc;

/// The books of every domain. Clones share them.
#[derive(Clone, Debug)]
pub struct Governor {
    core: Arc<GovernorCore>,
}

impl Governor {
    pub(crate) fn new(core: Arc<GovernorCore>) -> Self {
        Self { core }
    }

    /// Books with these limits in bytes, for use without a registry file. Each domain gets an authority of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::System`](crate::ErrorKind::System) when the operating system gives no randomness.
    pub fn with_limits(limits: impl IntoIterator<Item = (Domain, u64)>) -> Result<Self, Error> {
        let core = GovernorCore::default();
        for (domain, limit_bytes) in limits {
            core.open(domain)?.settle_limit(limit_bytes);
        }
        Ok(Self::new(Arc::new(core)))
    }

    /// The identity of a domain's books, or `None` where none are kept.
    #[must_use]
    pub fn authority(&self, domain: Domain) -> Option<AuthorityId> {
        self.core.books(domain).map(|books| books.authority())
    }

    /// Charges `bytes` to the domain until the lease is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TierExhausted`](crate::ErrorKind::TierExhausted) when the limit would be passed,
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept. Nothing is
    /// charged then.
    pub fn lease(&self, domain: Domain, bytes: u64, role: MemoryRole) -> Result<Lease, Error> {
        let books = self.core.books(domain).ok_or_else(|| Error::unknown_domain(domain))?;
        Ok(Lease::charge(books, bytes, role)?)
    }

    /// Changes the limit of a domain. Lowered below what is in use it takes nothing away, grants nothing more, and
    /// shows as oversubscribed until enough came back.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept.
    pub fn set_limit(&self, domain: Domain, limit_bytes: u64) -> Result<(), Error> {
        let books = self.core.books(domain).ok_or_else(|| Error::unknown_domain(domain))?;
        books.ledger().set_limit(limit_bytes);
        Ok(())
    }

    /// Forgets the peak of a domain: from now on its snapshot tells the most since now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept.
    pub fn restart_peak(&self, domain: Domain) -> Result<(), Error> {
        let books = self.core.books(domain).ok_or_else(|| Error::unknown_domain(domain))?;
        books.ledger().restart_peak();
        Ok(())
    }

    /// The state of all books. Each figure is exact; figures that others change meanwhile may belong to different
    /// moments.
    #[must_use]
    pub fn snapshot(&self) -> GovernorSnapshot {
        self.core.snapshot()
    }
}
