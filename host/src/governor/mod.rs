//! Leases every committed byte, one ledger and one authority per domain.
//!
//! ```text
//!   Governor ──► DomainBooks (one per domain) ──► Ledger   limit, used, peak
//!                     │ authority                   ▲
//!                     ├───────── Lease ─────────────┤      a live charge, returned once, on drop
//!                     │                             │
//!                     └─ refused ─► pressure ───────┘      asks others for the shortfall, then charges again;
//!                                     │     ▲              where the memory itself is short, tells what came back
//!                          Reclaim ◄──┘     ├── party      whom this thread must not ask
//!                                           └── giving     what this thread gave back itself
//! ```
//!
//! * G1: the sum of all leases stays within the limit. Memory that is taken already is recorded even above it; a limit
//!   lowered below what is in use takes nothing away and grants nothing more. Both show as oversubscribed.
//! * G2: a lease is returned exactly once, on drop, and returning can't fail.
//! * G3: the governor frees nobody's memory. For a charge that does not fit it asks: first the backings that may have
//!   memory parked, then who registered, by priority, each for the shortfall only and never a party to the request; and
//!   after each it reads the ledger instead of believing the answer. When nobody gives, the new request is refused; one
//!   above the limit at once. For a request that is charged and finds no memory it asks in the same way.
//! * G4: a refused request leaves every lease and counter as it was, but for what others gave back.
//!
//! The governor knows no backing: it asks them as it asks anybody else. It holds no lock while it asks. Any thread may
//! call it, those that are being asked too.

mod books;
mod giving;
mod lease;
mod ledger;
mod party;
mod pressure;
mod quarantined;
mod reclaim;
mod snapshot;

pub(crate) use books::{DomainBooks, GovernorCore};
pub use lease::Lease;
pub(crate) use party::{Parties, Party, PartyId};
pub(crate) use pressure::Place;
pub use pressure::Registration;
pub use reclaim::{Reclaim, ReclaimOrder, Shortage, Shortfall};
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

    /// Books with these limits in bytes, the last one of a domain, for use without a registry file. Each domain gets an
    /// authority of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::System`](crate::ErrorKind::System) when the operating system gives no randomness.
    pub fn with_limits(limits: impl IntoIterator<Item = (Domain, u64)>) -> Result<Self, Error> {
        let core = GovernorCore::default();
        for (domain, limit_bytes) in limits {
            let books = core.open(domain)?;
            books.settle_limit(limit_bytes);
            books.ledger().set_limit(limit_bytes);
        }
        Ok(Self::new(Arc::new(core)))
    }

    pub(crate) fn core(&self) -> &GovernorCore {
        &self.core
    }

    /// The books of a domain, in the process that opened them.
    fn books(&self, domain: Domain) -> Result<Arc<DomainBooks>, Error> {
        let books = self.core.books(domain).ok_or_else(|| Error::unknown_domain(domain))?;
        if books.is_of_this_process() { Ok(books) } else { Err(Error::forked_books(domain)) }
    }

    /// The identity of a domain's books, or `None` where none are kept.
    #[must_use]
    pub fn authority(&self, domain: Domain) -> Option<AuthorityId> {
        self.core.books(domain).map(|books| books.authority())
    }

    /// Charges `bytes` to the domain until the lease is dropped; where they don't fit, after others were asked to make
    /// room.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TierExhausted`](crate::ErrorKind::TierExhausted) when the limit would be passed,
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept,
    /// [`ErrorKind::OutOfService`](crate::ErrorKind::OutOfService) in a forked child. Nothing is charged then.
    pub fn lease(&self, domain: Domain, bytes: u64, role: MemoryRole) -> Result<Lease, Error> {
        Ok(Lease::charge(self.books(domain)?, bytes, role, None)?)
    }

    /// Has somebody asked for memory whenever a request on the domain does not fit, until the registration is dropped.
    /// The books keep nobody alive: the registration does. It is asked as well where a request fits into the budget and a
    /// backing finds no memory for it; the [`Shortfall`] says which of the two is short.
    ///
    /// Asked first are the backings for what they have parked, then who is registered, in the order of `order`, each for
    /// what is still missing then, and after each of them the backings again; and nobody where the request is above the
    /// limit, for what a buffer merely commits ahead, for a request that it is a party to, or while it answers itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept,
    /// [`ErrorKind::OutOfService`](crate::ErrorKind::OutOfService) in a forked child.
    pub fn on_pressure(
        &self,
        domain: Domain,
        order: ReclaimOrder,
        reclaimer: Arc<dyn Reclaim>,
    ) -> Result<Registration, Error> {
        Ok(self.books(domain)?.register(order, reclaimer))
    }

    /// Changes the limit of a domain. Lowered below what is in use it takes nothing away, grants nothing more, and
    /// shows as oversubscribed until enough came back. What a pool has parked is in use already: it serves on, until
    /// [`Host::trim`](crate::Host::trim) takes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept,
    /// [`ErrorKind::OutOfService`](crate::ErrorKind::OutOfService) in a forked child.
    pub fn set_limit(&self, domain: Domain, limit_bytes: u64) -> Result<(), Error> {
        self.books(domain)?.ledger().set_limit(limit_bytes);
        Ok(())
    }

    /// Forgets the peak of a domain: from now on its snapshot tells the most since now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDomain`](crate::ErrorKind::UnknownDomain) when no books of the domain are kept,
    /// [`ErrorKind::OutOfService`](crate::ErrorKind::OutOfService) in a forked child.
    pub fn restart_peak(&self, domain: Domain) -> Result<(), Error> {
        self.books(domain)?.ledger().restart_peak();
        Ok(())
    }

    /// The state of all books. Each figure is exact; figures that others change meanwhile may belong to different
    /// moments.
    #[must_use]
    pub fn snapshot(&self) -> GovernorSnapshot {
        self.core.snapshot()
    }
}
