//! A live charge in one domain's ledger.

use super::books::DomainBooks;
use super::ledger::Refusal;
use super::party::Party;
use crate::error::TierExhausted;
use leasehold_plugin_api::{Domain, MemoryRole};
use std::sync::Arc;

/// Bytes charged to one domain, returned exactly once: on drop.
#[derive(Debug)]
#[must_use = "dropping a lease returns its bytes"]
pub struct Lease {
    books: Arc<DomainBooks>,
    /// Invariant 1: the ledger holds a charge of exactly these bytes for this lease.
    bytes: u64,
    role: MemoryRole,
}

impl Lease {
    /// Charges `bytes`; a backing that takes them for itself is their payer.
    pub(crate) fn charge(
        books: Arc<DomainBooks>,
        bytes: u64,
        role: MemoryRole,
        payer: Option<Party>,
    ) -> Result<Self, TierExhausted> {
        let used = books.charge(bytes, role, payer).map_err(|refused| *refused)?;
        books.ledger().note_peak(used);
        Ok(Self { books, bytes, role })
    }

    /// A lease on nothing yet.
    pub(crate) fn empty(books: Arc<DomainBooks>, role: MemoryRole) -> Self {
        Self { books, bytes: 0, role }
    }

    /// What it holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The domain that it is charged to.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.books.domain()
    }

    /// Charges `bytes` more; where they don't fit, after others were asked to make room.
    ///
    /// # Errors
    ///
    /// The refusal, with the figures it was made on at last; the lease is as before.
    pub fn grow(&mut self, bytes: u64) -> Result<(), TierExhausted> {
        match self.books.ledger().charge(bytes) {
            Ok(used) => {
                self.hold(bytes);
                self.note_used(used);
                Ok(())
            }
            Err(refused) => self.grow_under_pressure(bytes, refused),
        }
    }

    /// Apart from the charge that fits, so that this needs no room for the figures of a refusal.
    #[cold]
    #[inline(never)]
    fn grow_under_pressure(&mut self, bytes: u64, refused: Refusal) -> Result<(), TierExhausted> {
        let charged = self.books.charge_under_pressure(bytes, self.role, None, refused);
        let used = charged.map_err(|refused| *refused)?;
        self.hold(bytes);
        self.note_used(used);
        Ok(())
    }

    /// The ledger's own sum did not overflow, and it is at least this lease's.
    fn hold(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Charges `bytes` more that are not taken yet. Answers what [`note_used`](Self::note_used) is to be told when they
    /// are; until then they are no peak.
    pub(crate) fn grow_unused(&mut self, bytes: u64) -> Result<u64, Box<TierExhausted>> {
        let used = self.books.charge(bytes, self.role, None)?;
        self.hold(bytes);
        Ok(used)
    }

    /// The bytes of a charge are taken.
    pub(crate) fn note_used(&self, used: u64) {
        self.books.ledger().note_peak(used);
    }

    /// Charges `bytes` more that are taken already, above the limit too.
    pub(crate) fn record(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(self.books.ledger().record(bytes));
    }

    /// Returns `bytes` early; more than the lease holds returns all of it.
    pub fn shrink(&mut self, bytes: u64) {
        let returned = bytes.min(self.bytes);
        self.bytes = self.bytes.saturating_sub(returned);
        if returned > 0 {
            self.books.ledger().refund(returned);
        }
    }

    /// Moves `bytes` of the charge into a lease of its own; more than the lease holds moves all of it.
    pub(crate) fn split_off(&mut self, bytes: u64) -> Lease {
        let moved = bytes.min(self.bytes);
        self.bytes = self.bytes.saturating_sub(moved);
        Lease { books: Arc::clone(&self.books), bytes: moved, role: self.role }
    }

    /// Takes over the charge of another lease on the same books.
    pub(crate) fn absorb(&mut self, mut other: Lease) {
        debug_assert_eq!(self.books.authority(), other.books.authority(), "leases on different books");
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.books.ledger().refund(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::GovernorCore;

    fn books(limit: u64) -> Arc<DomainBooks> {
        let books = GovernorCore::default().open(Domain::Host).expect("opens");
        books.settle_limit(limit);
        books
    }

    #[test]
    fn a_lease_is_returned_once_whatever_was_split_and_absorbed() {
        let books = books(100);
        let mut lease = Lease::charge(Arc::clone(&books), 60, MemoryRole::KvCache, None).expect("fits");
        let mut part = lease.split_off(25);
        part.grow(5).expect("fits");
        lease.shrink(5);
        assert_eq!((lease.bytes(), part.bytes(), books.ledger().used()), (30, 30, 60));
        lease.absorb(part);
        assert_eq!(books.ledger().used(), 60);
        drop(lease);
        assert_eq!(books.ledger().used(), 0);
    }

    #[test]
    fn a_refused_growth_leaves_the_lease_as_it_was() {
        let books = books(100);
        let mut lease = Lease::charge(Arc::clone(&books), 60, MemoryRole::Weights, None).expect("fits");
        let refusal = lease.grow(41).expect_err("is refused");
        assert_eq!((refusal.requested_bytes, refusal.used_bytes, refusal.available_bytes()), (41, 60, 40));
        assert_eq!((lease.bytes(), books.ledger().used()), (60, 60));
    }
}
