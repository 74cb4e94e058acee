//! What a backing refunded during one call, on the thread of the call.
//!
//! The ledger can't tell: others move it meanwhile. Calls nest, as a charge may have another backing called, or the same
//! one again; a refund counts in every call of its backing that is under way on the thread.

use crate::governor::Party;
use std::cell::RefCell;

struct Tally {
    backing: Party,
    bytes: u64,
}

thread_local! {
    static UNDER_WAY: RefCell<Vec<Tally>> = const { RefCell::new(Vec::new()) };
}

/// Ends the tallies that began since, after a panic too.
struct Measuring {
    before: usize,
}

impl Measuring {
    /// At the end of a thread there is nowhere to tally: nothing is measured then.
    fn begin(backing: Party) -> Option<Self> {
        let begin = |tallies: &RefCell<Vec<Tally>>| {
            let mut tallies = tallies.borrow_mut();
            let before = tallies.len();
            tallies.push(Tally { backing, bytes: 0 });
            Self { before }
        };
        UNDER_WAY.try_with(begin).ok()
    }

    fn bytes(&self) -> u64 {
        let bytes = |tallies: &RefCell<Vec<Tally>>| tallies.borrow().get(self.before).map_or(0, |tally| tally.bytes);
        UNDER_WAY.try_with(bytes).unwrap_or(0)
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        let _ = UNDER_WAY.try_with(|tallies| tallies.borrow_mut().truncate(self.before));
    }
}

/// Runs a call to a backing, and answers with it what the backing refunded.
pub(super) fn measure<T>(backing: Party, call: impl FnOnce() -> T) -> (T, u64) {
    let measuring = Measuring::begin(backing);
    let answer = call();
    (answer, measuring.map_or(0, |measuring| measuring.bytes()))
}

/// A backing refunded.
pub(super) fn note(backing: Party, bytes: u64) {
    let note = |tallies: &RefCell<Vec<Tally>>| {
        for tally in tallies.borrow_mut().iter_mut().filter(|tally| tally.backing == backing) {
            tally.bytes = tally.bytes.saturating_add(bytes);
        }
    };
    let _ = UNDER_WAY.try_with(note);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::PartyId;

    #[test]
    fn a_refund_counts_in_every_call_of_its_backing_on_its_thread() {
        let (one, other) = (Party::Backing(PartyId::mint()), Party::Backing(PartyId::mint()));
        let (inner, outer) = measure(one, || {
            note(one, 1);
            let ((), others) = measure(other, || {
                let ((), again) = measure(one, || note(one, 10));
                assert_eq!(again, 10);
                note(other, 100);
            });
            std::thread::spawn(move || note(one, 1000)).join().expect("ends");
            others
        });
        assert_eq!((inner, outer), (100, 11));
        note(one, 1);
        assert_eq!(measure(one, || ()).1, 0, "what was refunded outside of a call is none of it");
    }

    #[test]
    fn a_call_that_panics_leaves_no_tally() {
        let one = Party::Backing(PartyId::mint());
        let panicked = std::panic::catch_unwind(|| measure(one, || panic!("as planned")));
        assert!(panicked.is_err());
        assert!(UNDER_WAY.with(|tallies| tallies.borrow().is_empty()));
    }
}
