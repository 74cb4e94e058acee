//! One domain's counters: a limit, what is used, and the most that ever was.
//!
//! Charging is a compare-exchange loop with checked addition. There is no lock, and no optimistic addition that would
//! make a small request fail because of a large one that is about to be refused.

use super::giving::{LedgerAddress, note_charge, note_refund};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
use std::ptr;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters, in bytes.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: AtomicU64,
    /// Invariant 1: the sum of the charges that were granted and not yet refunded.
    used: AtomicU64,
    peak: AtomicU64,
}

/// A charge that was refused, with the figures that it was refused on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Refusal {
    /// What must come back before a charge of `bytes` bytes fits; nothing where it never could.
    pub(crate) fn shortfall(self, bytes: u64) -> Option<u64> {
        let most_used = self.limit.checked_sub(bytes)?;
        Some(self.used.saturating_sub(most_used))
    }
}

impl Ledger {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), used: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    pub(super) fn address(&self) -> LedgerAddress {
        ptr::from_ref(self).cast()
    }

    /// Charges all of `bytes`, or nothing. Answers what is used with it, for [`note_peak`](Self::note_peak) once the bytes
    /// are really taken: an attempt that fails after all is no peak.
    pub(crate) fn charge(&self, bytes: u64) -> Result<u64, Refusal> {
        let mut used = self.used.load(Ordering::Acquire);
        loop {
            let limit = self.limit.load(Ordering::Acquire);
            // A branch for each: this is on the way of every growth.
            let Some(wanted) = used.checked_add(bytes) else { return Err(Refusal { used, limit }) };
            if wanted > limit && bytes > 0 {
                return Err(Refusal { used, limit });
            }
            match self.used.compare_exchange_weak(used, wanted, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    note_charge(self.address(), bytes);
                    return Ok(wanted);
                }
                Err(now) => used = now,
            }
        }
    }

    /// Charges bytes that are taken already, above the limit too: then the domain shows as oversubscribed. Answers what
    /// could be counted.
    pub(crate) fn record(&self, bytes: u64) -> u64 {
        let mut used = self.used.load(Ordering::Acquire);
        loop {
            let counted = used.saturating_add(bytes);
            match self.used.compare_exchange_weak(used, counted, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    self.note_peak(counted);
                    note_charge(self.address(), counted.saturating_sub(used));
                    return counted.saturating_sub(used);
                }
                Err(now) => used = now,
            }
        }
    }

    /// Takes back `bytes` of an earlier charge. The caller holds that charge, so by invariant 1 nothing goes below
    /// zero.
    pub(crate) fn refund(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "refunded {bytes} bytes of {before}");
        note_refund(self.address(), bytes);
    }

    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Release);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Forgets what was used before now. Whoever charges meanwhile may note its peak before or after, and may see the
    /// old one, so what is used is read once more after the peak was taken back. Sequential consistency keeps both
    /// sides from missing each other.
    pub(crate) fn restart_peak(&self) {
        self.peak.swap(self.used(), Ordering::SeqCst);
        self.peak.fetch_max(self.used.load(Ordering::SeqCst), Ordering::AcqRel);
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Acquire)
    }

    /// Notes what a charge that was used answered.
    pub(crate) fn note_peak(&self, used: u64) {
        if used > self.peak.load(Ordering::SeqCst) {
            self.peak.fetch_max(used, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_charge_past_the_limit_is_refused_and_changes_nothing() {
        let ledger = Ledger::new(100);
        assert_eq!(ledger.charge(60), Ok(60));
        ledger.note_peak(60);
        assert_eq!(ledger.charge(41), Err(Refusal { used: 60, limit: 100 }));
        assert_eq!((ledger.used(), ledger.peak()), (60, 60));
        assert_eq!(ledger.charge(40), Ok(100));
        assert_eq!(ledger.peak(), 60, "nobody said that the last charge was used");
        ledger.refund(60);
        ledger.restart_peak();
        assert_eq!(ledger.peak(), 40);
    }

    #[test]
    fn a_charge_that_overflows_is_refused() {
        let ledger = Ledger::new(u64::MAX);
        assert_eq!(ledger.charge(2), Ok(2));
        assert_eq!(ledger.charge(u64::MAX), Err(Refusal { used: 2, limit: u64::MAX }));
        assert_eq!(ledger.used(), 2);
    }

    #[test]
    fn the_shortfall_is_what_is_used_and_asked_for_less_the_limit() {
        let shortfall = |used, limit, bytes| Refusal { used, limit }.shortfall(bytes);
        assert_eq!(shortfall(60, 100, 41), Some(1));
        assert_eq!(shortfall(100, 100, 100), Some(100));
        assert_eq!(shortfall(0, 100, 101), None, "it could never fit");
        assert_eq!(shortfall(150, 100, 10), Some(60), "what is oversubscribed is missing too");
        assert_eq!(shortfall(u64::MAX, u64::MAX, u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn a_limit_below_what_is_used_takes_nothing_and_grants_nothing() {
        let ledger = Ledger::new(100);
        assert_eq!(ledger.charge(80), Ok(80));
        ledger.set_limit(50);
        assert_eq!(ledger.used(), 80);
        assert!(ledger.charge(1).is_err());
        assert_eq!(ledger.charge(0), Ok(80));
        ledger.refund(40);
        assert_eq!(ledger.charge(10), Ok(50));
    }

    #[test]
    fn what_is_taken_already_is_recorded_above_the_limit_and_comes_back_exactly() {
        let ledger = Ledger::new(100);
        assert_eq!(ledger.charge(90), Ok(90));
        assert_eq!(ledger.record(20), 20);
        assert_eq!((ledger.used(), ledger.charge(1)), (110, Err(Refusal { used: 110, limit: 100 })));
        assert_eq!(ledger.record(u64::MAX), u64::MAX - 110, "a sum that overflows is counted as far as it goes");
        ledger.refund(u64::MAX);
        assert_eq!(ledger.used(), 0);
    }

    proptest! {
        #[test]
        fn used_is_the_sum_of_the_live_charges(limit in 0u64..1000, requests in prop::collection::vec(0u64..400, 0..64)) {
            let ledger = Ledger::new(limit);
            let mut live: Vec<u64> = Vec::new();
            for (index, bytes) in requests.into_iter().enumerate() {
                let sum: u64 = live.iter().sum();
                if index % 3 == 2 && let Some(bytes) = live.pop() {
                    ledger.refund(bytes);
                } else {
                    let granted = ledger.charge(bytes).is_ok();
                    prop_assert_eq!(granted, bytes == 0 || sum.saturating_add(bytes) <= limit);
                    if granted { live.push(bytes); }
                }
                prop_assert_eq!(ledger.used(), live.iter().sum::<u64>());
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn two_charges_never_pass_the_limit_together() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(10));
            let other = Arc::clone(&ledger);
            let take = |ledger: &Ledger| ledger.charge(6).map(|used| ledger.note_peak(used)).is_ok();
            let thread = thread::spawn(move || take(&other));
            let here = take(&ledger);
            let there = thread.join().expect("the thread ends");
            assert!(here ^ there, "exactly one of two charges of 6 fits into 10");
            assert_eq!((ledger.used(), ledger.peak()), (6, 6));
        });
    }

    #[test]
    fn a_doomed_large_charge_never_makes_a_small_one_fail() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(10));
            let other = Arc::clone(&ledger);
            let thread = thread::spawn(move || other.charge(1000).is_err());
            assert!(ledger.charge(10).is_ok());
            assert!(thread.join().expect("the thread ends"));
            assert_eq!(ledger.used(), 10);
        });
    }

    #[test]
    fn charges_and_refunds_of_two_threads_leave_nothing_behind() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(10));
            let other = Arc::clone(&ledger);
            let work = |ledger: &Ledger, bytes| {
                if let Ok(used) = ledger.charge(bytes) {
                    ledger.note_peak(used);
                    assert!(ledger.used() <= 10);
                    ledger.refund(bytes);
                }
            };
            let thread = thread::spawn(move || work(&other, 7));
            work(&ledger, 4);
            thread.join().expect("the thread ends");
            assert_eq!(ledger.used(), 0);
            assert!((4..=10).contains(&ledger.peak()));
        });
    }

    #[test]
    fn a_limit_lowered_meanwhile_takes_nothing_back() {
        loom::model(|| {
            let ledger = Arc::new(Ledger::new(10));
            let other = Arc::clone(&ledger);
            let thread = thread::spawn(move || other.set_limit(3));
            let granted = ledger.charge(5).is_ok();
            thread.join().expect("the thread ends");
            assert_eq!(ledger.used(), if granted { 5 } else { 0 });
            assert!(ledger.charge(4).is_err(), "nothing is granted past the lowered limit");
        });
    }
}
