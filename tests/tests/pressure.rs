//! A budget that runs short: who is asked to give, for how much, in what order, and what the books make of the answers.

use leasehold::{
    AllocationSpec, BackingHandle, BufferSpec, Domain, Error, ErrorKind, Governor, GrowthPolicy, HolderId, Host, Lease,
    MemoryRole, PrefixSpec, Reclaim, ReclaimOrder, Registration, Shortfall, StepScope,
};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, FaultyBacking, Strikes, host_mmap};
use leasehold_tests::log::Log;
use leasehold_tests::parking::ParkingBacking;
use leasehold_tests::plugins::Registry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 << 10;
const ALL_BOOKS: [fn(api::HostServices) -> Books; 2] = [|_| Books::OfTheBuffers, Books::OfItsHost];

fn governor(limit_bytes: u64) -> Governor {
    Governor::with_limits([(Domain::Host, limit_bytes)]).unwrap()
}

fn used(governor: &Governor) -> u64 {
    governor.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn lease(governor: &Governor, bytes: u64) -> Result<Lease, Error> {
    governor.lease(Domain::Host, bytes, MemoryRole::KvCache)
}

fn faulty(limit_bytes: u64, books: fn(api::HostServices) -> Books) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host_with(limit_bytes, books).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

/// A host with a backing that keeps the books and parks what is decommitted, and one that does neither.
fn parking(limit_bytes: u64) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let steered = faults.clone();
    let create = move |services: api::HostServices| -> Result<Box<dyn api::Backing>, api::BackingError> {
        let parking = ParkingBacking::new(host_mmap(services)?, 0);
        Ok(Box::new(FaultyBacking::new(Box::new(parking), &steered, Books::OfItsHost(services))))
    };
    let host = Host::builder()
        .limit(Domain::Host, limit_bytes)
        .with_backing("parking", create)
        .with_backing("host-mmap", host_mmap)
        .load()
        .unwrap();
    let backing = host.backing("parking").unwrap();
    (faults, host, backing)
}

struct Answer<F>(F);

impl<F: Fn(&Shortfall) -> u64 + Send + Sync> Reclaim for Answer<F> {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        (self.0)(shortfall)
    }
}

fn register(
    governor: &Governor,
    order: ReclaimOrder,
    answer: impl Fn(&Shortfall) -> u64 + Send + Sync + 'static,
) -> Registration {
    governor.on_pressure(Domain::Host, order, Arc::new(Answer(answer))).unwrap()
}

/// Who was asked, for how much, in order.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(&'static str, u64)>>>);

impl Asked {
    /// Registers somebody who notes that it was asked and gives back at most `most` bytes of a lease at a time.
    fn giver(
        &self,
        governor: &Governor,
        name: &'static str,
        order: ReclaimOrder,
        held: Held,
        most: u64,
    ) -> Registration {
        let asked = self.clone();
        register(governor, order, move |shortfall| {
            asked.note(name, shortfall.bytes);
            held.give(shortfall.bytes.min(most))
        })
    }

    /// Registers somebody who notes that it was asked and gives nothing.
    fn miser(&self, governor: &Governor, name: &'static str, order: ReclaimOrder) -> Registration {
        let asked = self.clone();
        register(governor, order, move |shortfall| {
            asked.note(name, shortfall.bytes);
            0
        })
    }

    fn note(&self, name: &'static str, bytes: u64) {
        self.0.lock().unwrap().push((name, bytes));
    }

    fn take(&self) -> Vec<(&'static str, u64)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn names(&self) -> Vec<&'static str> {
        self.take().into_iter().map(|(name, _)| name).collect()
    }
}

/// A lease that a reclaimer gives back from.
#[derive(Clone)]
struct Held(Arc<Mutex<Lease>>);

impl Held {
    fn new(governor: &Governor, bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(lease(governor, bytes).unwrap())))
    }

    fn give(&self, bytes: u64) -> u64 {
        let mut lease = self.0.lock().unwrap();
        let before = lease.bytes();
        lease.shrink(bytes);
        before - lease.bytes()
    }

    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().bytes()
    }
}

/// What is asked for, and of whom.
mod asking {
    use super::*;

    #[test]
    fn each_is_asked_for_the_shortfall_which_falls_as_others_give() {
        let governor = governor(100);
        let (asked, order) = (Asked::default(), ReclaimOrder::new());
        let (first, second, third) = (Held::new(&governor, 50), Held::new(&governor, 30), Held::new(&governor, 10));
        let _first = asked.giver(&governor, "first", order, first.clone(), 5);
        let _second = asked.giver(&governor, "second", order, second.clone(), u64::MAX);
        let _third = asked.giver(&governor, "third", order, third.clone(), u64::MAX);
        let granted = lease(&governor, 30).expect("others gave");
        assert_eq!(
            asked.take(),
            [("first", 90 + 30 - 100), ("second", 15)],
            "and whoever was not needed was not asked"
        );
        assert_eq!((first.bytes(), second.bytes(), third.bytes(), granted.bytes()), (45, 15, 10, 30));
        assert_eq!(used(&governor), 100, "nobody gave more than was missing");
    }

    #[test]
    fn what_a_lowered_limit_left_too_much_is_missing_too() {
        let governor = governor(100);
        let (asked, held) = (Asked::default(), Held::new(&governor, 90));
        let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held, u64::MAX);
        governor.set_limit(Domain::Host, 40).unwrap();
        let _granted = lease(&governor, 10).expect("it gave");
        assert_eq!(asked.take(), [("held", 60)]);
        assert_eq!(used(&governor), 40);
    }

    #[test]
    fn the_role_and_the_domain_of_the_request_are_told() {
        let governor = Governor::with_limits([(Domain::Host, 0), (Domain::Device(0), 10)]).unwrap();
        let told = Arc::new(OnceLock::new());
        let _all = governor.lease(Domain::Device(0), 10, MemoryRole::Weights).unwrap();
        let tell = Arc::clone(&told);
        let answer = Answer(move |shortfall: &Shortfall| tell.set(*shortfall).map_or(0, |()| 0));
        let _teller = governor.on_pressure(Domain::Device(0), ReclaimOrder::new(), Arc::new(answer)).unwrap();
        let _other = register(&governor, ReclaimOrder::new(), |_| panic!("nothing is missing on the host"));
        let role = MemoryRole::Workspace(StepScope::OneStep);
        governor.lease(Domain::Device(0), 3, role).unwrap_err();
        let told = told.get().expect("was asked");
        assert_eq!((told.domain, told.bytes, told.role), (Domain::Device(0), 3, role));
    }

    #[test]
    fn the_higher_priority_is_asked_first_and_of_equal_ones_the_earlier() {
        let governor = governor(10);
        let asked = Asked::default();
        let order = |priority| ReclaimOrder::new().priority(priority);
        let _all = lease(&governor, 10).unwrap();
        let _registered = [
            asked.miser(&governor, "low", order(i32::MIN)),
            asked.miser(&governor, "middle", order(0)),
            asked.miser(&governor, "high", order(7)),
            asked.miser(&governor, "middle too", ReclaimOrder::new()),
            asked.miser(&governor, "high too", order(7)),
        ];
        lease(&governor, 1).unwrap_err();
        assert_eq!(asked.names(), ["high", "high too", "middle", "middle too", "low"]);
    }

    #[test]
    fn a_request_above_the_limit_asks_nobody() {
        let governor = governor(100);
        let asked = Asked::default();
        let held = Held::new(&governor, 60);
        let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held.clone(), u64::MAX);
        for bytes in [101, u64::MAX] {
            let figures = *lease(&governor, bytes).unwrap_err().tier_exhausted().unwrap();
            assert_eq!((figures.requested_bytes, figures.used_bytes, figures.limit_bytes), (bytes, 60, 100));
        }
        assert_eq!((asked.take().len(), held.bytes()), (0, 60), "in vain nobody gives");
        let _fits = lease(&governor, 40).unwrap();
        assert_eq!(asked.take().len(), 0, "nor where it fits");
    }

    #[test]
    fn a_holder_is_not_asked_to_make_room_for_itself() {
        for books in ALL_BOOKS {
            let (_, host, backing) = faulty(8 * PAGE, books);
            let (governor, asked) = (host.governor(), Asked::default());
            let (mine, theirs) = (HolderId::new(7), HolderId::new(8));
            let _others = lease(&governor, 6 * PAGE).unwrap();
            let order = ReclaimOrder::new();
            let _mine = asked.miser(&governor, "mine", order.holder(mine).priority(9));
            let _theirs = asked.miser(&governor, "theirs", order.holder(theirs));
            let _nobodys = asked.miser(&governor, "nobody's", order);

            let buffer = |holder| host.buffer(&backing, &BufferSpec::new(MIB).holder(holder)).unwrap();
            assert_eq!(buffer(mine).grow_to(3 * PAGE).unwrap_err().kind(), ErrorKind::TierExhausted);
            assert_eq!(asked.take(), [("theirs", PAGE), ("nobody's", PAGE)]);
            buffer(theirs).grow_to(4 * PAGE).unwrap_err();
            assert_eq!(asked.take(), [("mine", 2 * PAGE), ("nobody's", 2 * PAGE)]);
            buffer(HolderId::NOBODY).grow_to(3 * PAGE).unwrap_err();
            assert_eq!(asked.names(), ["mine", "theirs", "nobody's"]);

            let spec = AllocationSpec::new(3 * PAGE).holder(mine);
            assert_eq!(host.allocate(&backing, &spec).unwrap_err().kind(), ErrorKind::TierExhausted);
            assert_eq!(asked.names(), ["theirs", "nobody's"]);
            assert_eq!(used(&governor), 6 * PAGE);
        }
    }

    #[test]
    fn a_holder_is_not_asked_to_make_room_for_its_prefix() {
        let host = Registry::new().backing("shares", "builtin", "backing = \"shared-only\"").host();
        let (governor, asked, mine) = (host.governor(), Asked::default(), HolderId::new(7));
        governor.set_limit(Domain::Host, 2 * PAGE).unwrap();
        let _others = lease(&governor, PAGE).unwrap();
        let _mine = asked.miser(&governor, "mine", ReclaimOrder::new().holder(mine));
        let _theirs = asked.miser(&governor, "theirs", ReclaimOrder::new());
        let spec = PrefixSpec::new(2 * PAGE).holder(mine);
        let refused = host.prefix(&host.backing("shares").unwrap(), &spec).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TierExhausted, "{refused}");
        assert_eq!(asked.take(), [("theirs", PAGE)]);
    }

    #[test]
    fn what_is_committed_ahead_is_worth_nobodys_memory() {
        for books in ALL_BOOKS {
            let (_, host, backing) = faulty(16 * PAGE, books);
            let (governor, asked) = (host.governor(), Asked::default());
            let held = Held::new(&governor, 15 * PAGE);
            let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held.clone(), u64::MAX);
            let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE));
            let mut buffer = host.buffer(&backing, &spec).unwrap();
            buffer.grow_to(3 * PAGE).expect("what it needs is given");
            assert_eq!((asked.take(), buffer.committed()), (vec![("held", 2 * PAGE)], 3 * PAGE));
            assert_eq!(held.bytes(), 13 * PAGE);
        }
    }

    #[test]
    fn a_domain_without_books_has_nobody_to_ask() {
        let nobody = Arc::new(Answer(|_: &Shortfall| 0));
        let refused = governor(1).on_pressure(Domain::Device(3), ReclaimOrder::new(), nobody);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnknownDomain);
    }
}

/// What the books make of the answers.
mod answers {
    use super::*;

    #[test]
    fn whoever_says_that_it_gave_and_gave_nothing_is_not_believed() {
        let governor = governor(100);
        let held = lease(&governor, 80).unwrap();
        let _liar = register(&governor, ReclaimOrder::new(), |shortfall| shortfall.bytes + 100);
        let before = governor.snapshot();
        let figures = *lease(&governor, 50).unwrap_err().tier_exhausted().unwrap();
        assert_eq!((figures.requested_bytes, figures.used_bytes, figures.limit_bytes), (50, 80, 100));
        assert_eq!((governor.snapshot(), held.bytes()), (before, 80), "a refusal changes nothing");
    }

    #[test]
    fn whoever_says_that_it_gave_nothing_and_gave_is_not_believed_either() {
        let governor = governor(100);
        let held = Held::new(&governor, 80);
        let modest = held.clone();
        let _modest = register(&governor, ReclaimOrder::new(), move |shortfall| {
            modest.give(shortfall.bytes);
            0
        });
        assert_eq!(lease(&governor, 50).expect("it gave").bytes(), 50);
        assert_eq!((used(&governor), held.bytes()), (50, 50), "the lease ended at once");
    }

    #[test]
    fn a_refusal_tells_the_figures_after_the_last_answer() {
        let governor = governor(100);
        let (asked, held) = (Asked::default(), Held::new(&governor, 80));
        let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held, 20);
        let mut mine = lease(&governor, 10).unwrap();
        let figures = mine.grow(50).unwrap_err();
        assert_eq!((figures.used_bytes, figures.available_bytes(), mine.bytes()), (70, 30, 10));
    }

    #[test]
    fn whoever_panics_gave_nothing_and_the_next_is_asked() {
        let governor = governor(100);
        let (asked, held) = (Asked::default(), Held::new(&governor, 100));
        let noting = asked.clone();
        let _panics = register(&governor, ReclaimOrder::new().priority(1), move |shortfall| {
            noting.note("panics", shortfall.bytes);
            panic!("the cache is broken")
        });
        let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held, u64::MAX);
        Log::during(|log| {
            for bytes in [10, 20] {
                let _granted = lease(&governor, bytes).expect("the other gives");
                assert_eq!(asked.names(), ["panics", "held"], "it is asked the next time too");
            }
            assert!(log.has("", "gave none: a reclaimer panicked: the cache is broken"), "{:?}", log.lines());
        });
    }

    #[test]
    fn what_was_given_is_no_peak_and_what_failed_is_none() {
        let governor = governor(100);
        let (asked, held) = (Asked::default(), Held::new(&governor, 90));
        let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held, u64::MAX);
        let _granted = lease(&governor, 5).unwrap();
        assert_eq!(governor.snapshot().domain(Domain::Host).unwrap().peak_bytes, 95);
        let _more = lease(&governor, 50).unwrap();
        assert_eq!(governor.snapshot().domain(Domain::Host).unwrap().peak_bytes, 100);
    }
}

/// Who asks while it is being asked.
mod nested {
    use super::*;

    #[test]
    fn a_reclaimer_that_leases_in_its_answer_has_the_others_asked_and_not_itself() {
        let governor = governor(100);
        let (asked, first, second) = (Asked::default(), Held::new(&governor, 60), Held::new(&governor, 40));
        let (books, noting, giving) = (governor.clone(), asked.clone(), first.clone());
        let _first = register(&governor, ReclaimOrder::new().priority(1), move |shortfall| {
            noting.note("first", shortfall.bytes);
            let scratch = lease(&books, 10).expect("the other gives");
            let gave = giving.give(shortfall.bytes);
            drop(scratch);
            gave
        });
        let _second = asked.giver(&governor, "second", ReclaimOrder::new(), second.clone(), u64::MAX);
        let _granted = lease(&governor, 30).expect("the first gives");
        assert_eq!(asked.take(), [("first", 30), ("second", 10)]);
        assert_eq!((first.bytes(), second.bytes(), used(&governor)), (30, 30, 90));
    }

    #[test]
    fn two_growths_on_one_thread_one_inside_of_the_other_both_end() {
        for books in ALL_BOOKS {
            let (_, host, backing) = faulty(8 * PAGE, books);
            let governor = host.governor();
            let buffer = || host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
            let (mut outer, mut victim, inner) = (buffer(), buffer(), Mutex::new(buffer()));
            victim.grow_to(8 * PAGE).unwrap();
            let victim = Arc::new(Mutex::new(victim));
            let giving = Arc::clone(&victim);
            let inner = Arc::new(inner);
            let growing = Arc::clone(&inner);
            // The one needs a page to write down what it gives up; the other gives it that page.
            let _first = register(&governor, ReclaimOrder::new().priority(1), move |shortfall| {
                growing.lock().unwrap().grow_to(PAGE).expect("the other gives");
                let mut victim = giving.lock().unwrap();
                let len = victim.len();
                victim.shrink_to(len - shortfall.bytes).unwrap();
                shortfall.bytes
            });
            let giving = Arc::clone(&victim);
            let _second = register(&governor, ReclaimOrder::new(), move |shortfall| {
                let mut victim = giving.lock().unwrap();
                let len = victim.len();
                victim.shrink_to(len - shortfall.bytes).unwrap();
                shortfall.bytes
            });
            outer.grow_to(3 * PAGE).expect("the victim gives");
            let lengths = (outer.committed(), inner.lock().unwrap().committed(), victim.lock().unwrap().committed());
            assert_eq!(lengths, (3 * PAGE, PAGE, 4 * PAGE));
            assert_eq!(used(&governor), 8 * PAGE);
        }
    }

    #[test]
    fn a_growth_whose_reclaimer_can_not_grow_is_refused_and_both_are_as_before() {
        for books in ALL_BOOKS {
            let (faults, host, backing) = faulty(4 * PAGE, books);
            let governor = host.governor();
            let mut outer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
            let inner = Mutex::new(host.buffer(&backing, &BufferSpec::new(MIB)).unwrap());
            outer.grow_to(4 * PAGE).unwrap();
            let refusals = Arc::new(AtomicU64::new(0));
            let counting = Arc::clone(&refusals);
            let _needy = register(&governor, ReclaimOrder::new(), move |_| {
                let refused = inner.lock().unwrap().grow_to(PAGE).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::TierExhausted, "{refused}");
                counting.fetch_add(1, Ordering::AcqRel);
                0
            });
            assert_eq!(outer.grow_to(5 * PAGE).unwrap_err().kind(), ErrorKind::TierExhausted);
            assert_eq!((refusals.load(Ordering::Acquire), outer.committed()), (1, 4 * PAGE));
            assert_eq!((used(&governor), faults.held().owned_bytes), (4 * PAGE, 4 * PAGE));
        }
    }

    #[test]
    fn reclaimers_that_all_need_memory_themselves_are_asked_finitely_often() {
        let governor = governor(10);
        let _all = lease(&governor, 10).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let needy = |_| {
            let (governor, count) = (governor.clone(), Arc::clone(&count));
            let books = governor.clone();
            register(&governor, ReclaimOrder::new(), move |_| {
                count.fetch_add(1, Ordering::AcqRel);
                lease(&books, 1).unwrap_err();
                0
            })
        };
        let _needy: Vec<Registration> = (0..6).map(needy).collect();
        lease(&governor, 1).unwrap_err();
        assert_eq!(count.load(Ordering::Acquire), (1 << 6) - 1, "each behind every choice of those before it");
    }

    #[test]
    fn the_requester_is_not_asked_for_what_a_reclaimer_needs_either() {
        let (_, host, backing) = faulty(8 * PAGE, Books::OfItsHost);
        let (governor, asked) = (host.governor(), Asked::default());
        let mine = HolderId::new(7);
        let _others = lease(&governor, 8 * PAGE).unwrap();
        let _mine = asked.miser(&governor, "mine", ReclaimOrder::new().holder(mine));
        let books = governor.clone();
        let _needy =
            register(&governor, ReclaimOrder::new(), move |_| lease(&books, 1).map_or(0, |lease| lease.bytes()));
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).holder(mine)).unwrap();
        buffer.grow_to(PAGE).unwrap_err();
        assert_eq!(asked.take(), []);
    }
}

/// Who comes and goes.
mod registration {
    use super::*;

    #[test]
    fn dropping_a_registration_ends_it() {
        let governor = governor(10);
        let asked = Asked::default();
        let _all = lease(&governor, 10).unwrap();
        let reclaimer: Arc<dyn Reclaim> = {
            let asked = asked.clone();
            Arc::new(Answer(move |shortfall: &Shortfall| {
                asked.note("asked", shortfall.bytes);
                0
            }))
        };
        let twice = || governor.on_pressure(Domain::Host, ReclaimOrder::new(), Arc::clone(&reclaimer)).unwrap();
        let (one, other) = (twice(), twice());
        for (registered, asks) in [(Some(one), 2), (Some(other), 1), (None, 0)] {
            lease(&governor, 1).unwrap_err();
            assert_eq!(asked.take().len(), asks, "whoever else holds the reclaimer");
            drop(registered);
        }
    }

    #[test]
    fn an_answer_may_register_somebody_and_end_the_registration_of_somebody() {
        let governor = governor(10);
        let asked = Asked::default();
        let _all = lease(&governor, 10).unwrap();
        let later = Arc::new(Mutex::new(None));
        let (books, noting, ending) = (governor.clone(), asked.clone(), Arc::clone(&later));
        let _first = register(&governor, ReclaimOrder::new().priority(1), move |shortfall| {
            noting.note("first", shortfall.bytes);
            let before = ending.lock().unwrap().replace(noting.miser(&books, "new", ReclaimOrder::new()));
            drop(before);
            0
        });
        *later.lock().unwrap() = Some(asked.miser(&governor, "old", ReclaimOrder::new()));
        lease(&governor, 1).unwrap_err();
        assert_eq!(asked.names(), ["first"], "the old one has ended, the new one came after the request");
        let _held = later.lock().unwrap().take();
        lease(&governor, 1).unwrap_err();
        assert_eq!(asked.names(), ["first", "new"]);
    }

    #[test]
    fn a_reclaimer_that_holds_its_host_keeps_nothing_alive_once_its_registration_is_gone() {
        struct HoldsItsHost(Arc<Host>, #[expect(dead_code, reason = "is only held")] Arc<()>);
        impl Reclaim for HoldsItsHost {
            fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
                self.0.snapshot().domains.len().try_into().unwrap()
            }
        }
        let alive = Arc::new(());
        let (_, host, backing) = faulty(PAGE, Books::OfItsHost);
        let host = Arc::new(host);
        let reclaimer = Arc::new(HoldsItsHost(Arc::clone(&host), Arc::clone(&alive)));
        let registration = host.governor().on_pressure(Domain::Host, ReclaimOrder::new(), reclaimer).unwrap();
        let host_is_alive = Arc::downgrade(&host);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(2 * PAGE).unwrap_err();
        drop((host, backing, buffer));
        assert!(host_is_alive.upgrade().is_some(), "the registration holds its reclaimer, and that its host");
        drop(registration);
        assert_eq!((Arc::strong_count(&alive), host_is_alive.strong_count()), (1, 0));
    }
}

/// Backings that own memory which nobody uses.
mod parked {
    use super::*;

    #[test]
    fn parked_memory_is_taken_before_anybody_gives() {
        let (faults, host, backing) = parking(8 * PAGE);
        let (governor, asked) = (host.governor(), Asked::default());
        let held = Held::new(&governor, 2 * PAGE);
        let _held = asked.giver(&governor, "held", ReclaimOrder::new().priority(i32::MAX), held.clone(), u64::MAX);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(6 * PAGE).unwrap();
        buffer.shrink_to(PAGE).unwrap();
        assert_eq!(used(&governor), 8 * PAGE, "five pages are parked");

        let mut mine = lease(&governor, 3 * PAGE).expect("three of them are given up");
        assert_eq!((used(&governor), faults.count(Call::Trim), asked.take().len()), (8 * PAGE, 1, 0));
        mine.grow(3 * PAGE).expect("the other two, and one page of the holder's");
        assert_eq!((faults.count(Call::Trim), asked.take()), (2, vec![("held", PAGE)]));
        assert_eq!((used(&governor), held.bytes(), buffer.committed()), (8 * PAGE, PAGE, PAGE));
    }

    #[test]
    fn what_a_reclaimer_leaves_parked_is_taken_before_the_next_gives() {
        let (faults, host, backing) = parking(8 * PAGE);
        let (governor, asked) = (host.governor(), Asked::default());
        let mut victim = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        victim.grow_to(7 * PAGE).unwrap();
        let (victim, noting) = (Mutex::new(victim), asked.clone());
        let _victim = register(&governor, ReclaimOrder::new().priority(1), move |shortfall| {
            noting.note("victim", shortfall.bytes);
            let mut victim = victim.lock().unwrap();
            let len = victim.len() - shortfall.bytes;
            victim.shrink_to(len).unwrap();
            0
        });
        let _miser = asked.miser(&governor, "miser", ReclaimOrder::new());
        let _granted = lease(&governor, 3 * PAGE).expect("the victim gave, though into the pool");
        assert_eq!((asked.take(), faults.count(Call::Trim)), (vec![("victim", 2 * PAGE)], 2), "before and after");
        assert_eq!(used(&governor), 8 * PAGE);
    }

    #[test]
    fn what_is_committed_ahead_takes_parked_memory() {
        let (faults, host, backing) = parking(8 * PAGE);
        let mut parks = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        parks.grow_to(8 * PAGE).unwrap();
        parks.shrink_to(0).unwrap();
        let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(4 * PAGE));
        let mut buffer = host.buffer(&host.backing("host-mmap").unwrap(), &spec).unwrap();
        buffer.grow_to(1).unwrap();
        assert_eq!((buffer.committed(), faults.count(Call::Trim)), (4 * PAGE, 1), "the whole step");
        assert_eq!(used(&host.governor()), 8 * PAGE);
    }

    #[test]
    fn a_backing_that_charges_is_not_trimmed_for_itself() {
        let (faults, host, backing) = parking(4 * PAGE);
        let _others = lease(&host.governor(), 4 * PAGE).unwrap();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(PAGE).unwrap_err();
        assert_eq!(faults.count(Call::Trim), 0);
        lease(&host.governor(), 1).unwrap_err();
        assert_eq!(faults.count(Call::Trim), 1);
    }

    #[test]
    fn trim_answers_what_the_books_got_back() {
        let (_, host, backing) = parking(8 * PAGE);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(6 * PAGE).unwrap();
        buffer.shrink_to(PAGE).unwrap();
        assert_eq!(host.trim(&backing, 0).unwrap(), 0);
        assert_eq!(host.trim(&backing, PAGE + 1).unwrap(), 2 * PAGE, "in whole granules");
        assert_eq!((host.trim(&backing, u64::MAX).unwrap(), used(&host.governor())), (3 * PAGE, PAGE));
        assert_eq!(host.trim(&backing, u64::MAX).unwrap(), 0);
    }

    #[test]
    fn trim_believes_the_books_and_not_the_answer() {
        let create = |services: api::HostServices| -> Result<Box<dyn api::Backing>, api::BackingError> {
            let parking = ParkingBacking::new(host_mmap(services)?, 4 * PAGE);
            Ok(Box::new(FaultyBacking::new(Box::new(parking), &Faults::new(), Books::OfTheBuffers)))
        };
        let host = Host::builder().limit(Domain::Host, MIB).with_backing("says-so", create).load().unwrap();
        let backing = host.backing("says-so").unwrap();
        assert_eq!(host.trim(&backing, PAGE).unwrap(), 0);
    }

    #[test]
    fn a_trim_that_fails_gives_nothing_and_the_next_is_asked() {
        for (fault, is_retired) in [(Fault::Refuse(api::ErrorKind::Internal), false), (Fault::Panic, true)] {
            let (faults, host, backing) = parking(8 * PAGE);
            let (governor, asked) = (host.governor(), Asked::default());
            let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
            buffer.grow_to(4 * PAGE).unwrap();
            buffer.shrink_to(0).unwrap();
            let held = Held::new(&governor, 4 * PAGE);
            let _held = asked.giver(&governor, "held", ReclaimOrder::new(), held, u64::MAX);
            faults.plan(Call::Trim, 0, Strikes::Always, fault);
            let _granted = lease(&governor, PAGE).expect("the holder gives");
            assert_eq!((asked.take(), faults.struck()), (vec![("held", PAGE)], 1));
            let kind = if is_retired { ErrorKind::OutOfService } else { ErrorKind::Backing };
            assert_eq!(host.trim(&backing, PAGE).unwrap_err().kind(), kind);
            assert_eq!(host.backing("parking").is_err(), is_retired);

            faults.heal();
            assert_eq!(host.trim(&backing, PAGE).unwrap(), PAGE, "in service or not, it gives back");
        }
    }

    #[test]
    fn the_words_of_a_trim_that_failed_say_what_failed() {
        let (faults, host, backing) = parking(8 * PAGE);
        faults.plan(Call::Trim, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
        let words = host.trim(&backing, PAGE).unwrap_err().to_string();
        assert_eq!(words, "backing \"parking\": trim failed: Trim fails as planned");
    }

    #[test]
    fn a_backing_of_another_host_is_not_trimmed() {
        let (faults, _other, foreign) = parking(8 * PAGE);
        let (_, host, _) = parking(8 * PAGE);
        assert_eq!(host.trim(&foreign, PAGE).unwrap_err().kind(), ErrorKind::AuthorityMismatch);
        assert_eq!(faults.count(Call::Trim), 0);
    }

    #[test]
    fn a_backing_on_other_books_is_not_asked() {
        let faults = Faults::new();
        let elsewhere = leasehold::AuthorityId::from_bytes([7; 16]);
        let host = faults.host_with(PAGE, move |_| Books::Elsewhere(elsewhere)).unwrap();
        let _all = lease(&host.governor(), PAGE).unwrap();
        lease(&host.governor(), 1).unwrap_err();
        assert_eq!(faults.count(Call::Trim), 0);
    }
}

#[test]
fn many_threads_that_grow_under_pressure_stay_within_the_limit_and_end() {
    const LIMIT: u64 = 64 * PAGE;
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(LIMIT, books);
        let governor = host.governor();
        let stock = Arc::new(Mutex::new(lease(&governor, 48 * PAGE).unwrap()));
        let (given, giving) = (Arc::new(AtomicU64::new(0)), Arc::clone(&stock));
        let counting = Arc::clone(&given);
        let _stock = register(&governor, ReclaimOrder::new(), move |shortfall| {
            // Whoever refills the stock holds it while it asks for memory.
            let Ok(mut stock) = giving.try_lock() else { return 0 };
            counting.fetch_add(shortfall.bytes.min(stock.bytes()), Ordering::AcqRel);
            stock.shrink(shortfall.bytes);
            shortfall.bytes
        });
        let (start, done) = (Barrier::new(8), AtomicBool::new(false));
        let work = |thread: u64| {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
            start.wait();
            for round in 1..300 {
                let wanted = (round * 7 + thread * 13) % 16 * PAGE;
                if let Err(error) = buffer.grow_to(wanted) {
                    assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
                    buffer.shrink_to(0).unwrap();
                }
                if round % 3 == thread % 3 {
                    buffer.shrink_to(wanted / 2).unwrap();
                    let _ = stock.lock().unwrap().grow(wanted);
                }
            }
        };
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    assert!(used(&governor) <= LIMIT);
                }
            });
            let workers: Vec<_> = (0..8).map(|thread| scope.spawn(move || work(thread))).collect();
            // Everybody ends before anybody's failure is told, or the watcher would watch for ever.
            let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Ordering::Release);
            watcher.join().unwrap();
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        });
        assert!(given.load(Ordering::Acquire) > 0, "there was pressure");
        assert_eq!((used(&governor), faults.held().owned_bytes), (stock.lock().unwrap().bytes(), 0));
    }
}
