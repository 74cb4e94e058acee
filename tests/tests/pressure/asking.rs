//! Who is asked, in which order, and for how much.

use crate::{ALL_BOOKS, Held, MIB, PAGE, faulty, giver, governor, lease, miser, used};
use leasehold::{
    AllocationSpec, BufferSpec, Domain, ErrorKind, Governor, GrowthPolicy, HolderId, MemoryRole, PrefixSpec,
    ReclaimOrder, Shortfall, StepScope,
};
use leasehold_tests::asked::{Answer, Asked, register};
use leasehold_tests::plugins::Registry;
use std::sync::{Arc, OnceLock};

#[test]
fn each_is_asked_for_the_shortfall_which_falls_as_others_give() {
    let governor = governor(100);
    let (asked, order) = (Asked::default(), ReclaimOrder::new());
    let (first, second, third) = (Held::new(&governor, 50), Held::new(&governor, 30), Held::new(&governor, 10));
    let _first = giver(&asked, &governor, "first", order, first.clone(), 5);
    let _second = giver(&asked, &governor, "second", order, second.clone(), u64::MAX);
    let _third = giver(&asked, &governor, "third", order, third.clone(), u64::MAX);
    let granted = lease(&governor, 30).expect("others gave");
    assert_eq!(asked.take(), [("first", 90 + 30 - 100), ("second", 15)], "and whoever was not needed was not asked");
    assert_eq!((first.bytes(), second.bytes(), third.bytes(), granted.bytes()), (45, 15, 10, 30));
    assert_eq!(used(&governor), 100, "nobody gave more than was missing");
}

#[test]
fn what_a_lowered_limit_left_too_much_is_missing_too() {
    let governor = governor(100);
    let (asked, held) = (Asked::default(), Held::new(&governor, 90));
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, u64::MAX);
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
        miser(&asked, &governor, "low", order(i32::MIN)),
        miser(&asked, &governor, "middle", order(0)),
        miser(&asked, &governor, "high", order(7)),
        miser(&asked, &governor, "middle too", ReclaimOrder::new()),
        miser(&asked, &governor, "high too", order(7)),
    ];
    lease(&governor, 1).unwrap_err();
    assert_eq!(asked.names(), ["high", "high too", "middle", "middle too", "low"]);
}

#[test]
fn a_request_above_the_limit_asks_nobody() {
    let governor = governor(100);
    let asked = Asked::default();
    let held = Held::new(&governor, 60);
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held.clone(), u64::MAX);
    for bytes in [101, u64::MAX] {
        let figures = lease(&governor, bytes).unwrap_err().tier_exhausted().unwrap().clone();
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
        let _mine = miser(&asked, &governor, "mine", order.holder(mine).priority(9));
        let _theirs = miser(&asked, &governor, "theirs", order.holder(theirs));
        let _nobodys = miser(&asked, &governor, "nobody's", order);

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
    let _mine = miser(&asked, &governor, "mine", ReclaimOrder::new().holder(mine));
    let _theirs = miser(&asked, &governor, "theirs", ReclaimOrder::new());
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
        let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held.clone(), u64::MAX);
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
