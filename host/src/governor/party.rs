//! Who is not asked for room on this thread: whoever is a party to a request that is under way on it.
//!
//! The parties are a stack of the thread. A guard adds to it and takes away what it added, when it is dropped by a panic
//! too. Only the search for room reads it, so a charge that fits never does. A plugin that charges from a thread of its
//! own brings nobody along but itself.

use leasehold_plugin_api::HolderId;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that no other backing or reclaimer of this process has; later ones are larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartyId(u64);

impl PartyId {
    pub(crate) fn mint() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Somebody who is not to be asked for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// Whoever gives up this holder's memory: the request is made on the holder's behalf.
    Holder(HolderId),
    /// The backing: it is being asked at this moment.
    Backing(PartyId),
    /// The reclaimer: it was asked already.
    Reclaimer(PartyId),
    /// The reclaimers that have this number or a later one: whoever registers others in its answer, and then needs memory
    /// itself, would else be answered by those, and so without end.
    RegisteredSince(PartyId),
    /// Every reclaimer that was registered: what is merely committed ahead is worth nobody's memory.
    AllReclaimers,
}

thread_local! {
    static PARTIES: RefCell<Vec<Party>> = const { RefCell::new(Vec::new()) };
}

/// Keeps parties on the stack of its thread, where guards end in the opposite order that they began in.
#[derive(Debug)]
#[must_use = "the parties leave when the guard is dropped"]
pub(crate) struct Parties {
    before: usize,
    of_one_thread: PhantomData<*const ()>,
}

impl Parties {
    pub(super) fn enter() -> Self {
        // At the end of a thread the stack is gone: see `any`.
        let before = PARTIES.try_with(|parties| parties.borrow().len()).unwrap_or(0);
        Self { before, of_one_thread: PhantomData }
    }

    /// Keeps one party there.
    pub(crate) fn with(party: Party) -> Self {
        let parties = Self::enter();
        parties.add(party);
        parties
    }

    /// Keeps the holder there, unless it is nobody.
    pub(crate) fn on_behalf_of(holder: HolderId) -> Option<Self> {
        (holder != HolderId::NOBODY).then(|| Self::with(Party::Holder(holder)))
    }

    /// Adds one more, until this guard ends. Only the guard that began last may.
    pub(super) fn add(&self, party: Party) {
        let _ = PARTIES.try_with(|parties| parties.borrow_mut().push(party));
    }
}

impl Drop for Parties {
    fn drop(&mut self) {
        let _ = PARTIES.try_with(|parties| parties.borrow_mut().truncate(self.before));
    }
}

/// Whether one of this thread's parties is as wanted. At the end of a thread, when its stack is gone, every one is: then
/// nobody is asked, and so nobody twice.
pub(super) fn any(wanted: impl Fn(Party) -> bool) -> bool {
    PARTIES.try_with(|parties| parties.borrow().iter().any(|party| wanted(*party))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Party = Party::Holder(HolderId::new(1));
    const OTHER: Party = Party::AllReclaimers;

    fn has(party: Party) -> bool {
        any(|other| other == party)
    }

    #[test]
    fn a_party_is_there_until_its_guard_ends() {
        let outer = Parties::with(ONE);
        {
            let inner = Parties::with(ONE);
            inner.add(OTHER);
            assert!(has(ONE) && has(OTHER));
        }
        assert!(has(ONE) && !has(OTHER));
        drop(outer);
        assert!(!has(ONE));
    }

    #[test]
    fn a_panic_takes_its_parties_away() {
        let _outer = Parties::with(ONE);
        let panicked = std::panic::catch_unwind(|| {
            let _inner = Parties::with(OTHER);
            panic!("as planned");
        });
        assert!(panicked.is_err() && has(ONE) && !has(OTHER));
    }

    #[test]
    fn nobody_is_no_party() {
        assert!(Parties::on_behalf_of(HolderId::NOBODY).is_none());
        let _one = Parties::on_behalf_of(HolderId::new(1)).expect("is somebody");
        assert!(has(ONE));
    }

    #[test]
    fn a_thread_knows_its_own_parties_only() {
        let _one = Parties::with(ONE);
        assert!(!std::thread::spawn(|| has(ONE)).join().expect("ends"));
    }

    #[test]
    fn ids_are_never_equal() {
        assert_ne!(PartyId::mint(), PartyId::mint());
    }
}
