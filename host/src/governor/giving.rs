//! How much a thread itself gives back to one ledger while it asks others for room.
//!
//! The ledger can't tell: other threads move it meanwhile. So charges and refunds look whether their thread is asking for
//! room in their ledger, which is a comparison, and are added up only then. What is given back by another thread on behalf
//! of whoever was asked is not seen.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

/// Where a ledger lies, to tell it from others: never followed.
pub(super) type LedgerAddress = *const ();

thread_local! {
    static WATCHED: Cell<Watched> = const { Cell::new(Watched { ledger: ptr::null(), given: 0 }) };
}

#[derive(Clone, Copy)]
struct Watched {
    ledger: LedgerAddress,
    /// Refunds less charges, in bytes.
    given: i128,
}

/// Adds up what its thread gives back to a ledger, until it is dropped. Watches nest: they end in the opposite order that
/// they began in, and what an inner one saw of the same ledger counts in the outer one too.
#[must_use = "what is given back is added up until the watch is dropped"]
pub(super) struct Watch {
    outer: Watched,
    of_one_thread: PhantomData<*const ()>,
}

impl Watch {
    /// The ledger stays where it is until the watch is dropped.
    pub(super) fn begin(ledger: LedgerAddress) -> Self {
        // At the end of a thread nothing is seen.
        let now = Watched { ledger, given: 0 };
        let outer = WATCHED.try_with(|watched| watched.replace(now)).unwrap_or(Watched { ledger: ptr::null(), ..now });
        Self { outer, of_one_thread: PhantomData }
    }

    /// Refunds less charges since it began; 0 where more was charged.
    pub(super) fn given(&self) -> u64 {
        let given = WATCHED.try_with(|watched| watched.get().given).unwrap_or(0);
        u64::try_from(given.max(0)).unwrap_or(u64::MAX)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = WATCHED.try_with(|watched| {
            let (inner, outer) = (watched.get(), self.outer);
            let seen = if ptr::eq(inner.ledger, outer.ledger) { inner.given } else { 0 };
            watched.set(Watched { given: outer.given.saturating_add(seen), ..outer });
        });
    }
}

/// The thread charged bytes to the ledger.
#[inline]
pub(super) fn note_charge(ledger: LedgerAddress, bytes: u64) {
    note(ledger, |given| given.saturating_sub(i128::from(bytes)));
}

/// The thread refunded bytes.
#[inline]
pub(super) fn note_refund(ledger: LedgerAddress, bytes: u64) {
    note(ledger, |given| given.saturating_add(i128::from(bytes)));
}

#[inline]
fn note(ledger: LedgerAddress, add: impl FnOnce(i128) -> i128) {
    let _ = WATCHED.try_with(|watched| {
        let now = watched.get();
        if ptr::eq(now.ledger, ledger) {
            watched.set(Watched { given: add(now.given), ..now });
        }
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::governor::ledger::Ledger;

    #[test]
    fn what_the_thread_refunds_less_what_it_charges_is_given() {
        let (ledger, other) = (Ledger::new(100), Ledger::new(100));
        ledger.charge(50).expect("fits");
        let watch = Watch::begin(ledger.address());
        ledger.refund(30);
        ledger.charge(10).expect("fits");
        other.charge(5).expect("fits");
        std::thread::scope(|scope| {
            scope.spawn(|| ledger.refund(7));
        });
        assert_eq!(watch.given(), 20, "of this ledger, and by this thread");
        ledger.charge(50).expect("fits");
        assert_eq!(watch.given(), 0);
    }

    #[test]
    fn what_an_inner_watch_saw_counts_in_the_outer_one_of_the_same_ledger() {
        let (ledger, other) = (Ledger::new(100), Ledger::new(100));
        for ledger in [&ledger, &other] {
            ledger.charge(50).expect("fits");
        }
        let outer = Watch::begin(ledger.address());
        ledger.refund(1);
        for (watched, given) in [(&ledger, 10), (&other, 0)] {
            let inner = Watch::begin(watched.address());
            ledger.refund(10);
            assert_eq!(inner.given(), given);
        }
        assert_eq!(outer.given(), 11, "but for what went by while another ledger was watched");
        drop(outer);
        ledger.refund(10);
        assert_eq!(Watch::begin(ledger.address()).given(), 0);
    }
}
