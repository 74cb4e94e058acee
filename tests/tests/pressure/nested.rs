//! Reclaimers that ask for memory themselves while they are asked for some.

use crate::{ALL_BOOKS, Held, MIB, PAGE, faulty, giver, governor, lease, miser, used};
use leasehold::{BufferSpec, Domain, ErrorKind, Governor, HolderId, Reclaim, ReclaimOrder, Registration, Shortfall};
use leasehold_tests::asked::{Asked, register};
use leasehold_tests::fault::Books;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn a_reclaimer_that_leases_in_its_answer_has_the_others_asked_and_not_itself() {
    let governor = governor(100);
    let (asked, first, second) = (Asked::default(), Held::new(&governor, 60), Held::new(&governor, 40));
    let (books, giving) = (governor.clone(), first.clone());
    let _first = asked.register(&governor, "first", ReclaimOrder::new().priority(1), move |shortfall| {
        let scratch = lease(&books, 10).expect("the other gives");
        let gave = giving.give(shortfall.bytes);
        drop(scratch);
        gave
    });
    let _second = giver(&asked, &governor, "second", ReclaimOrder::new(), second.clone(), u64::MAX);
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
        // The first needs a page to write down what it gives up; the second gives it that page.
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
    let _mine = miser(&asked, &governor, "mine", ReclaimOrder::new().holder(mine));
    let books = governor.clone();
    let _needy = register(&governor, ReclaimOrder::new(), move |_| lease(&books, 1).map_or(0, |lease| lease.bytes()));
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).holder(mine)).unwrap();
    buffer.grow_to(PAGE).unwrap_err();
    assert_eq!(asked.take(), []);
}

#[test]
fn whoever_registers_others_in_its_answer_is_not_answered_by_those() {
    struct Registers {
        governor: Governor,
        registered: Arc<Mutex<Vec<Registration>>>,
    }

    impl Reclaim for Registers {
        fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
            let another = Self { governor: self.governor.clone(), registered: Arc::clone(&self.registered) };
            let order = ReclaimOrder::new();
            let another = self.governor.on_pressure(Domain::Host, order, Arc::new(another)).unwrap();
            self.registered.lock().unwrap().push(another);
            lease(&self.governor, 1).unwrap_err();
            0
        }
    }

    let governor = governor(10);
    let _all = lease(&governor, 10).unwrap();
    let registered = Arc::<Mutex<Vec<Registration>>>::default();
    let first = Registers { governor: governor.clone(), registered: Arc::clone(&registered) };
    let _first = governor.on_pressure(Domain::Host, ReclaimOrder::new(), Arc::new(first)).unwrap();
    let count = || registered.lock().unwrap().len();
    lease(&governor, 1).unwrap_err();
    assert_eq!(count(), 1);
    lease(&governor, 1).unwrap_err();
    assert_eq!(count(), 1 + 3, "in the next request both are asked, and the one has the other asked");
}
