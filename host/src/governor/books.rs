//! The books of each domain, and the one place that holds them all.

use super::ledger::{Ledger, Refusal};
use super::party::Party;
use super::pressure::{Reclaimers, Request};
use super::quarantined::QuarantinedBytes;
use super::snapshot::{DomainSnapshot, GovernorSnapshot};
use crate::error::{Error, TierExhausted};
use crate::machine::ProcessMark;
use leasehold_plugin_api::{AuthorityId, Domain, MemoryRole};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock};

/// One domain's ledger and the identity that no other books share.
#[derive(Debug)]
pub(crate) struct DomainBooks {
    domain: Domain,
    authority: AuthorityId,
    ledger: Ledger,
    /// Whether the limit is known: a share of a device is not until a backing has described the device.
    limit_is_known: Once,
    /// Whether the limit is a share of a size that no backing reports.
    is_unsized: AtomicBool,
    quarantined: QuarantinedBytes,
    reclaimers: Reclaimers,
    /// Where they were opened: in a forked child none of those who are asked for room is there.
    process: ProcessMark,
}

impl DomainBooks {
    fn open(domain: Domain) -> Result<Self, Error> {
        Ok(Self {
            domain,
            authority: mint_authority()?,
            ledger: Ledger::new(0),
            limit_is_known: Once::new(),
            is_unsized: AtomicBool::new(false),
            quarantined: QuarantinedBytes::new(),
            reclaimers: Reclaimers::default(),
            process: ProcessMark::current(),
        })
    }

    /// Sets the limit, unless it is known already.
    pub(crate) fn settle_limit(&self, limit_bytes: u64) {
        self.limit_is_known.call_once(|| self.ledger.set_limit(limit_bytes));
    }

    /// Sets the limit that follows from a device's description, or a limit in bytes that does not.
    pub(crate) fn set_described_limit(&self, limit_bytes: u64) {
        self.ledger.set_limit(limit_bytes);
        self.is_unsized.store(false, Ordering::Relaxed);
    }

    /// The limit is a share of the device's size, and no backing reports one: nothing is granted.
    pub(crate) fn set_unsized(&self) {
        self.ledger.set_limit(0);
        self.is_unsized.store(true, Ordering::Relaxed);
    }

    /// Whether nothing is granted because no backing reports the size of the device.
    pub(crate) fn lacks_size(&self) -> bool {
        self.ledger.limit() == 0 && self.is_unsized.load(Ordering::Relaxed)
    }

    pub(crate) fn domain(&self) -> Domain {
        self.domain
    }

    pub(crate) fn authority(&self) -> AuthorityId {
        self.authority
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the backings' releases could not give back.
    pub(crate) fn quarantined(&self) -> &QuarantinedBytes {
        &self.quarantined
    }

    /// Who is asked for room; none in a forked child, where the list's lock may be held for ever.
    pub(super) fn reclaimers(&self) -> Option<&Reclaimers> {
        self.process.is_here().then_some(&self.reclaimers)
    }

    /// Whether this is the process that opened them, and no child that was forked off since.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process.is_here()
    }

    /// Charges all of `bytes`, or nothing; where they don't fit, after others were asked to make room. The backing that pays
    /// for itself is asked last, for what the others gave back to it. Otherwise as [`Ledger::charge`].
    ///
    /// The refusal is boxed, so that the charge that fits returns in registers.
    pub(crate) fn charge(&self, bytes: u64, role: MemoryRole, payer: Option<Party>) -> Result<u64, Box<TierExhausted>> {
        self.ledger.charge(bytes).or_else(|refused| self.charge_under_pressure(bytes, role, payer, refused))
    }

    /// Apart from the charge that fits, which is on the way of every growth.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_under_pressure(
        &self,
        bytes: u64,
        role: MemoryRole,
        payer: Option<Party>,
        refused: Refusal,
    ) -> Result<u64, Box<TierExhausted>> {
        let domain = self.domain;
        let outcome = match self.reclaimers() {
            Some(reclaimers) => reclaimers.charge(&self.ledger, Request { domain, bytes, role, payer }, refused),
            None => Err(refused),
        };
        outcome.map_err(|Refusal { used: used_bytes, limit: limit_bytes }| {
            let lacks_size = limit_bytes == 0 && self.lacks_size();
            let quarantined = self.quarantined.by_backing();
            let requested_bytes = bytes;
            Box::new(TierExhausted { domain, role, requested_bytes, used_bytes, limit_bytes, lacks_size, quarantined })
        })
    }

    /// Has others give memory back where there is none left for `bytes` bytes, though the budget had room for them: first
    /// what is parked, but by the backing that pays for itself and lacks them. Answers how much came back.
    #[cold]
    #[inline(never)]
    pub(crate) fn reclaim(&self, bytes: u64, role: MemoryRole, payer: Option<Party>) -> u64 {
        let request = Request { domain: self.domain, bytes, role, payer };
        self.reclaimers().map_or(0, |reclaimers| reclaimers.reclaim(&self.ledger, request))
    }

    fn snapshot(&self) -> DomainSnapshot {
        DomainSnapshot {
            domain: self.domain,
            authority: self.authority,
            limit_bytes: self.ledger.limit(),
            used_bytes: self.ledger.used(),
            peak_bytes: self.ledger.peak(),
            quarantined_bytes: self.quarantined.total(),
        }
    }
}

/// 128 bits of OS randomness: a counter would repeat itself in every library that has a copy of it.
fn mint_authority() -> Result<AuthorityId, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::no_randomness(&error))?;
    Ok(AuthorityId::from_bytes(bytes))
}

/// The books of every domain. Domains are opened and never closed.
#[derive(Debug, Default)]
pub(crate) struct GovernorCore {
    domains: RwLock<BTreeMap<Domain, Arc<DomainBooks>>>,
}

impl GovernorCore {
    /// The books of the domain, opened unless they are. Until its limit is settled a domain grants nothing.
    pub(crate) fn open(&self, domain: Domain) -> Result<Arc<DomainBooks>, Error> {
        let mut domains = self.domains.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(books) = domains.get(&domain) {
            return Ok(Arc::clone(books));
        }
        let books = Arc::new(DomainBooks::open(domain)?);
        domains.insert(domain, Arc::clone(&books));
        Ok(books)
    }

    pub(crate) fn books(&self, domain: Domain) -> Option<Arc<DomainBooks>> {
        self.domains.read().unwrap_or_else(PoisonError::into_inner).get(&domain).cloned()
    }

    pub(crate) fn snapshot(&self) -> GovernorSnapshot {
        let domains = self.domains.read().unwrap_or_else(PoisonError::into_inner);
        GovernorSnapshot { domains: domains.values().map(|books| books.snapshot()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_never_equal() {
        let (one, other) = (GovernorCore::default(), GovernorCore::default());
        let mut seen = std::collections::BTreeSet::new();
        for domain in [Domain::Host, Domain::Disk(0), Domain::Disk(1), Domain::Device(0), Domain::Device(1)] {
            assert!(seen.insert(one.open(domain).expect("opens").authority()));
            assert!(seen.insert(other.open(domain).expect("opens").authority()));
        }
    }

    #[test]
    fn a_domain_that_is_open_keeps_its_books_and_its_limit() {
        let core = GovernorCore::default();
        let first = core.open(Domain::Host).expect("opens");
        assert_eq!(first.ledger().limit(), 0);
        first.settle_limit(10);
        let second = core.open(Domain::Host).expect("is open");
        second.settle_limit(99);
        assert_eq!(first.authority(), second.authority());
        assert_eq!(second.ledger().limit(), 10);
    }
}
