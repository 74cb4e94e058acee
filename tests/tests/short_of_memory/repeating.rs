//! The call that found no memory: when it is made once more, and what a second failure leaves.

use crate::{ALL_BOOKS, MIB, NO_MEMORY, PAGE, buffer, faulty, giver, lease, miser, used};
use leasehold::{AllocationSpec, BufferSpec, Domain, ErrorKind, GrowthPolicy, MemoryRole, PrefixSpec, ReclaimOrder};
use leasehold_plugin_api as api;
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Strikes, Under};
use std::sync::{Arc, Mutex};

#[test]
fn a_growth_that_finds_no_memory_has_others_give_what_it_wanted_and_is_tried_once_more() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _first = giver(&asked, &host, "first", lease(&host, 10 * PAGE), PAGE);
        let _second = giver(&asked, &host, "second", lease(&host, 10 * PAGE), u64::MAX);
        let _third = miser(&asked, &host, "third", ReclaimOrder::new());
        let mut grows = buffer(&host, &backing);
        grows.grow_to(PAGE).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        grows.grow_to(4 * PAGE).expect("there is memory after others gave");
        assert_eq!(asked.take(), [("first", 3 * PAGE), ("second", 2 * PAGE)], "whoever was not needed was not asked");
        assert_eq!((faults.count(Call::Commit), grows.committed()), (3, 4 * PAGE));
        assert_eq!((used(&host), faults.held().owned_bytes), ((20 - 3 + 4) * PAGE, 4 * PAGE));
    }
}

#[test]
fn where_nothing_comes_back_the_call_is_not_repeated_whatever_was_said() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _others = lease(&host, 9 * PAGE);
        let mut grows = buffer(&host, &backing);
        grows.grow_to(PAGE).unwrap();
        let before = host.snapshot();
        let says = |said| asked.register(&host.governor(), "gives nothing", ReclaimOrder::new(), move |_| said);
        // Whoever says that it gave may be asked again.
        for said in [&[][..], &[0], &[0, 0], &[u64::MAX, 0]] {
            let _registered: Vec<_> = said.iter().map(|said| says(*said)).collect();
            let calls = faults.count(Call::Commit);
            faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
            let refused = grows.grow_to(2 * PAGE).unwrap_err();
            assert_eq!((refused.kind(), refused.is_exhausted()), (ErrorKind::OutOfMemory, true), "{refused}");
            assert_eq!(faults.count(Call::Commit) - calls, 1);
            assert!(asked.take().len() >= said.len());
            assert_eq!((grows.committed(), used(&host)), (PAGE, 10 * PAGE));
        }
        assert_eq!(host.snapshot(), before, "a refusal changes nothing");
    }
}

#[test]
fn a_second_failure_is_the_last_and_nothing_stays_charged() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _held = giver(&asked, &host, "held", lease(&host, 10 * PAGE), PAGE);
        faults.plan(Call::Commit, 0, Strikes::Always, NO_MEMORY);
        let mut grows = buffer(&host, &backing);
        assert_eq!(grows.grow_to(3 * PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!((faults.count(Call::Commit), asked.take()), (2, vec![("held", 3 * PAGE)]));
        assert_eq!((grows.committed(), used(&host)), (0, 9 * PAGE), "what was given stays given");
    }
}

#[test]
fn allocations_and_prefixes_are_tried_once_more_too() {
    for under in [Under::MMAP, Under::CHARGING_MMAP, Under::POOL] {
        let faults = Faults::new();
        let host = under.host(&faults, MIB);
        let backing = host.backing("faulty").unwrap();
        let asked = Asked::default();
        let _held = giver(&asked, &host, "held", lease(&host, 32 * PAGE), u64::MAX);
        faults.plan(Call::Allocate, 0, Strikes::Once, NO_MEMORY);
        let _made = host.allocate(&backing, &AllocationSpec::new(2 * PAGE)).expect("the holder gave");
        assert_eq!((faults.count(Call::Allocate), asked.take()), (2, vec![("held", 2 * PAGE)]));
        assert_eq!(used(&host), 32 * PAGE, "{under:?}");
        if under.shares() {
            faults.plan(Call::CreatePrefix, 0, Strikes::Once, NO_MEMORY);
            let _prefix = host.prefix(&backing, &PrefixSpec::new(3 * PAGE).planes(2)).expect("the holder gave");
            assert_eq!((faults.count(Call::CreatePrefix), asked.take()), (2, vec![("held", 6 * PAGE)]));
            assert_eq!(used(&host), 32 * PAGE);
        }
    }
}

#[test]
fn what_is_committed_ahead_is_worth_nobodys_memory_and_the_exact_size_is() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _held = giver(&asked, &host, "held", lease(&host, 10 * PAGE), u64::MAX);
        let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE));
        let mut ahead = host.buffer(&backing, &spec).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        ahead.grow_to(3 * PAGE).unwrap();
        assert_eq!((asked.take(), faults.count(Call::Commit), ahead.committed()), (vec![], 2, 3 * PAGE));

        let mut exact = host.buffer(&backing, &spec).unwrap();
        (0..2).for_each(|nth| faults.plan(Call::Commit, nth, Strikes::Once, NO_MEMORY));
        exact.grow_to(3 * PAGE).unwrap();
        assert_eq!((asked.take(), faults.count(Call::Commit)), (vec![("held", 3 * PAGE)], 5));
        assert_eq!(exact.committed(), 3 * PAGE);
    }
}

#[test]
fn a_call_that_is_made_once_more_asks_for_something_new() {
    let faults = Faults::new();
    let host = faults.pool_host(4 * MIB, api::Options::new()).unwrap();
    let backing = host.backing("faulty").unwrap();
    for call in [Call::Allocate, Call::CreatePrefix] {
        faults.plan(call, 0, Strikes::Once, Fault::Denied(api::ErrorKind::OutOfMemory));
    }
    let asked = Asked::default();
    let _held = giver(&asked, &host, "held", lease(&host, MIB), u64::MAX);
    let allocation = host.allocate(&backing, &AllocationSpec::new(64 << 10)).expect("the second one is its own");
    let prefix = host.prefix(&backing, &PrefixSpec::new(64 << 10)).expect("the second one is its own");
    assert_eq!(asked.take(), [("held", 64 << 10), ("held", 64 << 10)]);
    drop((allocation, prefix));
    host.backing("faulty").expect("it is in service");
}

/// It takes nothing of what was given: the budget has room for both.
#[test]
fn what_a_neighbour_charges_meanwhile_has_nobody_give_more() {
    for neighbours in [50, 120] {
        let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
        let (asked, governor, neighbour) = (Asked::default(), host.governor(), Mutex::new(None));
        let held = Mutex::new(lease(&host, 100 * PAGE));
        let _held = asked.register(&host.governor(), "held", ReclaimOrder::new(), move |shortfall| {
            held.lock().unwrap().shrink(shortfall.bytes);
            neighbour.lock().unwrap().get_or_insert_with(|| {
                let governor = governor.clone();
                let grow = move || governor.lease(Domain::Host, neighbours * PAGE, MemoryRole::KvCache).unwrap();
                std::thread::spawn(grow).join().unwrap()
            });
            0
        });
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        let mut grows = buffer(&host, &backing);
        grows.grow_to(4 * PAGE).expect("there is memory after others gave");
        assert_eq!((asked.take(), faults.count(Call::Commit)), (vec![("held", 4 * PAGE)], 2));
        assert_eq!(used(&host), (100 + neighbours) * PAGE);
    }
}

/// Whoever is asked may have another thread of its own do it.
#[test]
fn what_another_thread_gives_on_behalf_of_whoever_is_asked_counts_too() {
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let held = Arc::new(Mutex::new(lease(&host, 100 * PAGE)));
    let _held = asked.register(&host.governor(), "held", ReclaimOrder::new(), move |shortfall| {
        let (held, bytes) = (Arc::clone(&held), shortfall.bytes);
        std::thread::spawn(move || held.lock().unwrap().shrink(bytes)).join().unwrap();
        0
    });
    let _miser = miser(&asked, &host, "miser", ReclaimOrder::new());
    faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    buffer(&host, &backing).grow_to(4 * PAGE).expect("there is memory after others gave");
    assert_eq!(asked.take(), [("held", 4 * PAGE)]);
}
