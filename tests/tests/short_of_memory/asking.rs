//! Who is asked to give, and what it is told.

use crate::{MIB, NO_MEMORY, PAGE, buffer, faulty, giver, lease, miser, used};
use leasehold::{
    AllocationSpec, BufferSpec, Domain, ErrorKind, HolderId, MemoryRole, PrefixSpec, ReclaimOrder, Shortage,
};
use leasehold_plugin_api as api;
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Strikes, Under};
use std::sync::Mutex;

#[test]
fn it_is_told_that_memory_is_short_and_for_what_and_a_budget_that_is_short_is_told_too() {
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let _miser = miser(&asked, &host, "miser", ReclaimOrder::new());
    let mut grows = host.buffer(&backing, &BufferSpec::new(MIB).role(MemoryRole::Activation)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(PAGE).unwrap_err();
    let _all = lease(&host, MIB);
    grows.grow_to(PAGE).unwrap_err();
    let told: Vec<_> = asked.shortfalls().into_iter().map(|told| (told.domain, told.role, told.shortage)).collect();
    let short = |shortage| (Domain::Host, MemoryRole::Activation, shortage);
    assert_eq!(told, [short(Shortage::Memory), short(Shortage::Budget)]);
}

#[test]
fn a_party_to_the_request_is_not_asked() {
    for under in [Under::MMAP, Under::POOL] {
        let faults = Faults::new();
        let host = under.host(&faults, MIB);
        let backing = host.backing("faulty").unwrap();
        let asked = Asked::default();
        let (mine, theirs) = (HolderId::new(7), HolderId::new(8));
        let _mine = miser(&asked, &host, "mine", ReclaimOrder::new().holder(mine).priority(9));
        let _theirs = miser(&asked, &host, "theirs", ReclaimOrder::new().holder(theirs));
        for call in [Call::Commit, Call::Allocate, Call::CreatePrefix] {
            faults.plan(call, 0, Strikes::Always, NO_MEMORY);
        }
        let mut grows = host.buffer(&backing, &BufferSpec::new(MIB).holder(mine)).unwrap();
        grows.grow_to(PAGE).unwrap_err();
        assert_eq!(asked.take(), [("theirs", PAGE)]);
        host.allocate(&backing, &AllocationSpec::new(PAGE).holder(theirs)).unwrap_err();
        assert_eq!(asked.take(), [("mine", PAGE)]);
        if under.shares() {
            host.prefix(&backing, &PrefixSpec::new(PAGE).holder(mine)).unwrap_err();
            assert_eq!(asked.take(), [("theirs", PAGE)]);
        }
        buffer(&host, &backing).grow_to(PAGE).unwrap_err();
        assert_eq!(asked.take(), [("mine", PAGE), ("theirs", PAGE)]);
    }
}

#[test]
fn any_other_failure_asks_nobody() {
    use api::ErrorKind::{AddressSpaceExhausted, BrokenOff, BudgetRefused, Internal, InvalidRequest};
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let _held = giver(&asked, &host, "held", lease(&host, 10 * PAGE), u64::MAX);
    for kind in [BudgetRefused, AddressSpaceExhausted, Internal, InvalidRequest, BrokenOff] {
        let calls = faults.count(Call::Commit);
        faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(kind));
        buffer(&host, &backing).grow_to(PAGE).unwrap_err();
        assert_eq!((faults.count(Call::Commit) - calls, asked.take()), (1, vec![]), "{kind:?}");
    }
}

#[test]
fn a_request_above_the_limit_asks_nobody() {
    let (faults, host, backing) = faulty(Books::OfItsHost);
    let asked = Asked::default();
    let _held = giver(&asked, &host, "held", lease(&host, 10 * PAGE), u64::MAX);
    faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    assert_eq!(buffer(&host, &backing).grow_to(MIB + PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!((faults.count(Call::Commit), asked.take()), (1, vec![]), "in vain nobody gives");
}

#[test]
fn whoever_finds_no_memory_in_its_answer_has_the_others_asked_and_not_itself() {
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let (needy, mut grows) = (Mutex::new(buffer(&host, &backing)), buffer(&host, &backing));
    let first = ReclaimOrder::new().priority(1);
    let _needy = asked.register(&host.governor(), "needy", first, move |_| {
        let refused = needy.lock().unwrap().grow_to(PAGE).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfMemory, "{refused}");
        0
    });
    let _miser = miser(&asked, &host, "miser", ReclaimOrder::new());
    faults.plan(Call::Commit, 0, Strikes::Always, NO_MEMORY);
    grows.grow_to(2 * PAGE).unwrap_err();
    assert_eq!(asked.take(), [("needy", 2 * PAGE), ("miser", PAGE), ("miser", 2 * PAGE)]);
    assert_eq!((faults.count(Call::Commit), used(&host)), (2, 0));
}
