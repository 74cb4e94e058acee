//! Limits that are reached, lowered and raised, and the figures of a refusal.

use crate::{MIB, PAGE, faulty, used};
use leasehold::{AllocationSpec, BufferSpec, Domain, ErrorKind, Governor, Host, MemoryRole, StepScope, Tier};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Strikes};
use std::sync::{Arc, OnceLock};

#[test]
fn a_failed_commit_leaves_nothing_charged() {
    let (faults, host, backing) = faulty(8 * PAGE);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    buffer.grow_to(5 * PAGE).unwrap_err();
    assert_eq!(used(&host.governor()), 0);
    buffer.grow_to(5 * PAGE).expect("the budget holds it once");
    let rest = host.governor().lease(Domain::Host, 3 * PAGE, MemoryRole::KvCache);
    assert_eq!(rest.expect("all the rest is there").bytes(), 3 * PAGE);
}

#[test]
fn memory_that_the_system_lacks_is_a_capacity_error_and_no_invalid_request() {
    let (faults, host, backing) = faulty(MIB);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    let error = buffer.grow_to(PAGE).unwrap_err();
    assert_eq!((error.kind(), error.is_exhausted()), (ErrorKind::OutOfMemory, true), "{error}");
    assert_eq!(error.backing_error().unwrap().native_code(), Some(12));
}

#[test]
fn a_limit_lowered_below_what_is_in_use_takes_nothing_and_grants_nothing() {
    for books in [(|_| Books::OfTheBuffers) as fn(_) -> _, Books::OfItsHost] {
        let faults = Faults::new();
        let host = faults.host_with(16 * PAGE, books).unwrap();
        let backing = host.backing("faulty").unwrap();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(10 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(3);
        host.governor().set_limit(Domain::Host, 4 * PAGE).unwrap();

        let snapshot = host.snapshot().domain(Domain::Host).unwrap().clone();
        assert_eq!((snapshot.used_bytes, snapshot.limit_bytes), (10 * PAGE, 4 * PAGE), "nothing is taken");
        assert_eq!((snapshot.oversubscribed_bytes(), snapshot.available_bytes()), (6 * PAGE, 0));
        assert_eq!(snapshot.to_string(), "host: 40960 of 16384 bytes used, at most 40960, oversubscribed by 24576");

        let error = buffer.grow_to(11 * PAGE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
        assert_eq!(host.allocate(&backing, &AllocationSpec::new(1)).unwrap_err().kind(), ErrorKind::TierExhausted);
        let figures =
            host.governor().lease(Domain::Host, 1, MemoryRole::KvCache).unwrap_err().tier_exhausted().unwrap().clone();
        assert_eq!(figures.available_bytes(), 0, "and not 18 exabytes");

        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 3));
        buffer.shrink_to(9 * PAGE + 1).unwrap();
        buffer.grow_to(10 * PAGE).expect("within what is committed");
        host.buffer(&backing, &BufferSpec::new(MIB)).expect("address space is not budget");
        buffer.shrink_to(3 * PAGE).unwrap();
        assert_eq!(host.snapshot().domain(Domain::Host).unwrap().oversubscribed_bytes(), 0);
        buffer.grow_to(4 * PAGE).expect("there is room again");
        buffer.grow_to(5 * PAGE).unwrap_err();
    }
}

#[test]
fn a_refusal_tells_the_figures_that_it_was_made_on() {
    let (_, host, backing) = faulty(8 * PAGE);
    let spec = BufferSpec::new(MIB).role(MemoryRole::Workspace(StepScope::OneStep));
    let mut set = host.buffer_set(&backing, 2, &spec).unwrap();
    set.grow_to(3 * PAGE).unwrap();
    let figures = set.grow_to(5 * PAGE).unwrap_err().tier_exhausted().unwrap().clone();
    assert_eq!((figures.domain, figures.tier()), (Domain::Host, Tier::Host));
    assert_eq!(figures.role, MemoryRole::Workspace(StepScope::OneStep));
    assert_eq!((figures.requested_bytes, figures.used_bytes, figures.limit_bytes), (4 * PAGE, 6 * PAGE, 8 * PAGE));
    assert_eq!(figures.available_bytes(), 2 * PAGE);
}

#[test]
fn a_limit_that_is_raised_grants_what_was_refused() {
    let (_, host, backing) = faulty(PAGE);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(2 * PAGE).unwrap_err();
    host.governor().set_limit(Domain::Host, 2 * PAGE).unwrap();
    buffer.grow_to(2 * PAGE).unwrap();
}

#[test]
fn domains_are_charged_apart() {
    let governor = Governor::with_limits([(Domain::Host, 10), (Domain::Device(0), 20)]).unwrap();
    let _all = governor.lease(Domain::Host, 10, MemoryRole::KvCache).unwrap();
    let device = governor.lease(Domain::Device(0), 20, MemoryRole::KvCache).unwrap();
    assert_eq!((device.domain(), device.bytes()), (Domain::Device(0), 20));
    assert_ne!(governor.authority(Domain::Host), governor.authority(Domain::Device(0)));
    assert_eq!(governor.authority(Domain::Device(1)), None);
}

#[test]
fn of_two_limits_of_a_domain_the_later_one_holds() {
    let both = [(Domain::Host, 10), (Domain::Host, 20)];
    let governor = Governor::with_limits(both).unwrap();
    assert_eq!(governor.snapshot().domain(Domain::Host).unwrap().limit_bytes, 20);
    let host = both.iter().fold(Host::builder(), |builder, (domain, bytes)| builder.limit(*domain, *bytes));
    assert_eq!(host.load().unwrap().snapshot().domain(Domain::Host).unwrap().limit_bytes, 20);
}

#[test]
fn a_refusal_that_the_backing_swallowed_lends_its_figures_to_no_other() {
    let (faults, services) = (Faults::new(), Arc::new(OnceLock::new()));
    let kept = Arc::clone(&services);
    let host = faults.host_with(8 * PAGE, move |services| Books::OfItsHost(*kept.get_or_init(|| services))).unwrap();
    let backing = host.backing("faulty").unwrap();
    services.get().unwrap().charge(Domain::Host, MIB, MemoryRole::Weights).unwrap_err();
    faults.plan(Call::Allocate, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::BudgetRefused));
    let refused = host.allocate(&backing, &AllocationSpec::new(20)).unwrap_err();
    assert_eq!(refused.tier_exhausted(), None, "{refused}");
}
