//! Has a backing give up what it has parked: asked directly, or before all others when a budget runs short.

use super::{BackingFault, CheckedBacking, Operation, quietly};
use crate::governor::{DomainBooks, Place, Reclaim, Shortfall};
use leasehold_plugin_api::Accounting;
use std::sync::{Arc, Weak};

impl CheckedBacking {
    /// Has the backing give up parked memory, as much as makes `bytes` bytes; out of service or not, since it gives back.
    /// Answers what it refunded, whatever it says. A failure may have given some of it up: the books tell.
    pub(crate) fn trim(&self, bytes: u64) -> Result<u64, BackingFault> {
        let trim = || self.call(Operation::Trim, || self.inner.trim(bytes));
        let (answer, refunded) = self.services.measure_refunds(trim);
        let said = answer?;
        if said != refunded {
            quietly(|| tracing::debug!(backing = &*self.name, "trimmed {said} bytes, it says; refunded {refunded}"));
        }
        Ok(refunded)
    }

    /// Runs calls to the backing, and answers what it refunded in them.
    pub(crate) fn measure_refunds<T>(&self, calls: impl FnOnce() -> T) -> (T, u64) {
        self.services.measure_refunds(calls)
    }

    /// Takes the backing's place among those who are asked for room in the books of its domain; none where it keeps other
    /// books than these.
    pub(super) fn take_place(
        books: &Arc<DomainBooks>,
        accounting: Accounting,
        services: &super::ServiceContext,
        this: Weak<Self>,
    ) -> Option<Place> {
        let is_elsewhere = matches!(accounting, Accounting::Backing { authority } if authority != books.authority());
        (!is_elsewhere).then(|| books.enlist(services.party(), this))
    }
}

impl Reclaim for CheckedBacking {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.trim(shortfall.bytes).unwrap_or_else(|fault| {
            quietly(|| tracing::warn!(backing = &*self.name, "{fault}"));
            0
        })
    }
}
