//! Asks others to make room, one after the other, until there is enough.
//!
//! Input: a charge that the ledger refused, or a request that fits into the budget and found no memory. Output: the charge
//! after all, or the refusal with the last figures; how much memory came back. Whoever is asked gives back what it can by
//! itself: here nobody's memory is freed, and no answer is believed, but the ledger is read again. Owned are only the places
//! in the order, not those who stand there: a [`Registration`] owns its reclaimer, a backing owns its own place.
//!
//! No lock is held while anybody is asked, so an answer may charge, refund, register and deregister. It is asked on the
//! thread of the request. A panic is caught and counts as an answer that gave nothing.

use super::DomainBooks;
use super::giving::Watch;
use super::ledger::{Ledger, Refusal};
use super::party::{self, Parties, Party, PartyId};
use super::reclaim::{Reclaim, ReclaimOrder, Shortage, Shortfall};
use crate::quiet::quietly;
use leasehold_plugin_api::{BackingError, Domain, HolderId, MemoryRole};
use std::fmt;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// How often one request asks somebody at most: one whose other threads take at once what it gave would else be asked for
/// ever.
const ROUNDS: usize = 1000;

/// Keeps a reclaimer registered; see [`Governor::on_pressure`](crate::Governor::on_pressure). Once it is dropped, the
/// reclaimer is asked no more; a call that another thread is in the middle of ends by itself.
#[must_use = "dropping a registration ends it"]
pub struct Registration {
    /// Before the reclaimer, so that it leaves the order before it ends.
    place: Place,
    /// Invariant 1: nobody else keeps this one alive, but during a call.
    _reclaimer: Arc<Registered>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registration").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A reclaimer that lives as long as its registration, whoever else holds what is in it.
struct Registered(Arc<dyn Reclaim>);

impl Reclaim for Registered {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.0.reclaim(shortfall)
    }
}

/// Somebody's place in the order; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Place {
    books: Weak<DomainBooks>,
    party: Party,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(books) = self.books.upgrade()
            && let Some(reclaimers) = books.reclaimers()
        {
            reclaimers.remove(self.party);
        }
    }
}

impl DomainBooks {
    /// Puts a backing before all reclaimers that are registered: parked memory is nobody's.
    pub(crate) fn enlist(self: &Arc<Self>, backing: Party, reclaimer: Weak<dyn Reclaim>) -> Place {
        self.place(Entry { party: backing, rank: Rank::Backing, holder: None, reclaimer })
    }

    pub(super) fn register(self: &Arc<Self>, order: ReclaimOrder, reclaimer: Arc<dyn Reclaim>) -> Registration {
        let registered = Arc::new(Registered(reclaimer));
        let weak: Weak<Registered> = Arc::downgrade(&registered);
        let (party, rank) = (Party::Reclaimer(PartyId::mint()), Rank::Registered(order.priority));
        let place = self.place(Entry { party, rank, holder: order.holder, reclaimer: weak });
        Registration { place, _reclaimer: registered }
    }

    fn place(self: &Arc<Self>, entry: Entry) -> Place {
        let party = entry.party;
        if let Some(reclaimers) = self.reclaimers() {
            reclaimers.add(entry);
        }
        Place { books: Arc::downgrade(self), party }
    }
}

/// Higher ranks are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Registered(i32),
    Backing,
}

/// One place in the order.
#[derive(Clone, Debug)]
struct Entry {
    party: Party,
    rank: Rank,
    holder: Option<HolderId>,
    reclaimer: Weak<dyn Reclaim>,
}

impl Entry {
    /// Whether it is, or stands for, a party to what this thread asks for.
    fn is_excused(&self) -> bool {
        party::any(|party| match party {
            Party::Holder(holder) => self.holder == Some(holder),
            Party::AllReclaimers => self.rank != Rank::Backing,
            Party::Backing(_) | Party::Reclaimer(_) => self.party == party,
            Party::RegisteredSince(first) => matches!(self.party, Party::Reclaimer(id) if id >= first),
        })
    }

    /// Asks, unless it is gone. Who registered is a party from then on, a backing only until it has answered: later it may
    /// have more, since others park there. What it holds may end here, if it was dropped elsewhere meanwhile: within what is
    /// caught.
    fn ask(&self, parties: &Parties, shortfall: &Shortfall) {
        let Some(reclaimer) = self.reclaimer.upgrade() else { return };
        let _answering = match self.rank {
            Rank::Backing => Some(Parties::with(self.party)),
            Rank::Registered(_) => {
                parties.add(self.party);
                None
            }
        };
        let answer = catch_unwind(AssertUnwindSafe(move || reclaimer.reclaim(shortfall)));
        let Shortfall { domain, bytes, shortage, .. } = shortfall;
        match answer {
            Ok(said) => {
                quietly(|| tracing::debug!("{shortage} of {domain} is short by {bytes} bytes: says it gave {said}"));
            }
            Err(payload) => {
                let error = BackingError::from_panic("a reclaimer", payload);
                let words = error.message();
                quietly(|| tracing::error!("{shortage} of {domain} is short by {bytes} bytes: gave none: {words}"));
            }
        }
    }
}

/// Who is asked for room in one domain, in order.
#[derive(Debug, Default)]
pub(super) struct Reclaimers {
    /// Highest rank first. Shared with those who are asking, and then copied before it is changed.
    entries: RwLock<Arc<Vec<Entry>>>,
}

impl Reclaimers {
    fn in_order(&self) -> Arc<Vec<Entry>> {
        Arc::clone(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, entry: Entry) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let behind = entries.partition_point(|earlier| earlier.rank >= entry.rank);
        Arc::make_mut(&mut entries).insert(behind, entry);
    }

    fn remove(&self, party: Party) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut entries).retain(|entry| entry.party != party);
    }

    /// Has others make room for a charge that was refused, and tries it after each; nobody where it could never fit.
    pub(super) fn charge(&self, ledger: &Ledger, request: Request, refused: Refusal) -> Result<u64, Refusal> {
        let Some(missing) = refused.shortfall(request.bytes) else { return Err(refused) };
        let mut outcome = Err(refused);
        self.ask(ledger, request, Shortage::Budget, missing, |_given| {
            outcome = ledger.charge(request.bytes);
            outcome.err()?.shortfall(request.bytes)
        });
        outcome
    }

    /// Has others give memory back, as much as was asked for; nobody where that is above the limit, or merely committed
    /// ahead. Answers how much came back: what this thread gave in the answers, or what the ledger fell by, where others gave
    /// for it. Neither is all: the one misses other threads, the other what they charge meanwhile.
    pub(super) fn reclaim(&self, ledger: &Ledger, request: Request) -> u64 {
        let is_ahead = party::any(|party| party == Party::AllReclaimers);
        if is_ahead || request.bytes > ledger.limit() {
            return 0;
        }
        let (before, mut freed) = (ledger.used(), 0);
        self.ask(ledger, request, Shortage::Memory, request.bytes, |given| {
            freed = given.max(before.saturating_sub(ledger.used()));
            request.bytes.checked_sub(freed).filter(|missing| *missing > 0)
        });
        freed
    }

    /// Asks one after the other for what is missing, for as long as something still is. Whoever registered and was asked
    /// is not asked by what those behind it ask for, who may need memory themselves: it had given all that it has. So this
    /// ends.
    ///
    /// What the payer had parked served the request already. What those who registered give back may be parked then, and
    /// so nobody's: after each of them the backings are asked once more, the payer too.
    ///
    /// Other threads may have taken what was given. Where what is missing fell by less than this thread gave back in the
    /// answers, all are asked again.
    fn ask(
        &self,
        ledger: &Ledger,
        request: Request,
        shortage: Shortage,
        missing: u64,
        mut still_missing: impl FnMut(u64) -> Option<u64>,
    ) {
        let order = self.in_order();
        let able = order.iter().filter(|entry| !entry.is_excused());
        let (backings, registered): (Vec<_>, Vec<_>) = able.partition(|entry| entry.rank == Rank::Backing);
        let parties = Parties::enter();
        parties.add(Party::RegisteredSince(PartyId::mint()));
        let (mut bytes, mut spared, watch) = (missing, request.payer, Watch::begin(ledger.address()));
        for _ in 0..ROUNDS {
            let (bytes_before, given_before) = (bytes, watch.given());
            let parked = backings.iter().copied().filter(|backing| Some(backing.party) != spared);
            let given = registered.iter().flat_map(|entry| iter::once(*entry).chain(backings.iter().copied()));
            for entry in parked.chain(given) {
                entry.ask(&parties, &Shortfall { domain: request.domain, bytes, role: request.role, shortage });
                let Some(left) = still_missing(watch.given()) else { return };
                bytes = left;
            }
            if watch.given().saturating_sub(given_before) <= bytes_before.saturating_sub(bytes) {
                return;
            }
            spared = None;
        }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) domain: Domain,
    pub(super) bytes: u64,
    pub(super) role: MemoryRole,
    /// The backing that takes the bytes for itself, where one does.
    pub(super) payer: Option<Party>,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::governor::GovernorCore;

    struct Nothing;

    impl Reclaim for Nothing {
        fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
            0
        }
    }

    fn books() -> Arc<DomainBooks> {
        GovernorCore::default().open(Domain::Host).expect("opens")
    }

    fn parties(books: &DomainBooks) -> Vec<Party> {
        books.reclaimers().expect("not forked").in_order().iter().map(|entry| entry.party).collect()
    }

    #[test]
    fn backings_come_first_then_the_higher_priority_then_the_earlier() {
        let books = books();
        let register = |priority| books.register(ReclaimOrder::new().priority(priority), Arc::new(Nothing));
        let (low, high, high_too) = (register(-1), register(i32::MAX), register(i32::MAX));
        let reclaimer: Arc<dyn Reclaim> = Arc::new(Nothing);
        let backing = || books.enlist(Party::Backing(PartyId::mint()), Arc::downgrade(&reclaimer));
        let (first, second) = (backing(), backing());
        let expected = [&first, &second, &high.place, &high_too.place, &low.place].map(|place| place.party);
        assert_eq!(parties(&books), expected);
        drop((first, high));
        assert_eq!(parties(&books), [second.party, high_too.place.party, low.place.party]);
        drop((second, high_too, low));
        assert_eq!(parties(&books), []);
    }

    #[test]
    fn a_registration_that_outlives_the_books_does_not_keep_them_alive() {
        let books = books();
        let registration = books.register(ReclaimOrder::new(), Arc::new(Nothing));
        let weak = Arc::downgrade(&books);
        drop(books);
        assert!(weak.upgrade().is_none());
        drop(registration);
    }

    #[test]
    fn the_order_that_is_being_asked_stays_when_others_come_and_go() {
        let books = books();
        let one = books.register(ReclaimOrder::new(), Arc::new(Nothing));
        let asking = books.reclaimers().expect("not forked").in_order();
        let _other = books.register(ReclaimOrder::new(), Arc::new(Nothing));
        drop(one);
        assert_eq!((asking.len(), parties(&books).len()), (1, 1));
        assert!(asking.iter().all(|entry| entry.reclaimer.upgrade().is_none()), "who has left is not asked");
    }
}
