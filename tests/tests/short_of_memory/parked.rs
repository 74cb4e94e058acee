//! Backings that own memory which nobody uses.

use crate::{MIB, NO_MEMORY, PAGE, buffer, miser, used};
use leasehold::{BufferSpec, Domain, ErrorKind, GrowthPolicy, Host, ReclaimOrder};
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Call, Faults, FaultyBacking, Strikes, Under};
use leasehold_tests::parking::parking_mmap;
use std::sync::Mutex;

/// A host with a backing that parks what is decommitted, and one that finds no memory where it is told to.
fn parking() -> (Faults, Faults, Host) {
    let (parks, lacks) = (Faults::new(), Faults::new());
    let host = Host::builder()
        .limit(Domain::Host, MIB)
        .with_accessible_backing("parking", FaultyBacking::ACCESS, parking_mmap(&parks))
        .with_accessible_backing("lacking", FaultyBacking::ACCESS, Under::MMAP.create(&lacks))
        .load()
        .unwrap();
    (parks, lacks, host)
}

#[test]
fn parked_memory_goes_before_anybody_gives() {
    let (parks, lacks, host) = parking();
    let asked = Asked::default();
    let mut parked = buffer(&host, &host.backing("parking").unwrap());
    parked.grow_to(5 * PAGE).unwrap();
    parked.shrink_to(0).unwrap();
    let _miser = miser(&asked, &host, "miser", ReclaimOrder::new().priority(i32::MAX));
    let mut grows = buffer(&host, &host.backing("lacking").unwrap());
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(3 * PAGE).expect("parked memory was given up");
    assert_eq!((parks.count(Call::Trim), asked.take(), used(&host)), (1, vec![], 5 * PAGE));
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(6 * PAGE).expect("the rest of it was given up, and that is worth trying");
    assert_eq!((asked.take(), used(&host)), (vec![("miser", PAGE)], 6 * PAGE));
}

#[test]
fn what_is_committed_ahead_leaves_parked_memory_where_it_is() {
    let (parks, lacks, host) = parking();
    let mut parked = buffer(&host, &host.backing("parking").unwrap());
    parked.grow_to(5 * PAGE).unwrap();
    parked.shrink_to(0).unwrap();
    let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE));
    let mut ahead = host.buffer(&host.backing("lacking").unwrap(), &spec).unwrap();
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    ahead.grow_to(3 * PAGE).unwrap();
    assert_eq!((ahead.committed(), lacks.count(Call::Commit), parks.count(Call::Trim)), (3 * PAGE, 2, 0));
    assert_eq!(used(&host), 8 * PAGE);
}

/// It has used what it has parked for the call already.
#[test]
fn a_backing_that_pays_is_not_trimmed_for_its_own_call() {
    let (parks, _, host) = parking();
    let mut grows = buffer(&host, &host.backing("parking").unwrap());
    grows.grow_to(5 * PAGE).unwrap();
    grows.shrink_to(PAGE).unwrap();
    parks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    assert_eq!(grows.grow_to(6 * PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!((parks.count(Call::Commit), parks.count(Call::Trim), used(&host)), (2, 0, 5 * PAGE));
}

#[test]
fn what_a_reclaimer_leaves_parked_is_given_up_at_once() {
    for lacking in ["parking", "lacking"] {
        let (parks, lacks, host) = parking();
        let asked = Asked::default();
        let mut victim = buffer(&host, &host.backing("parking").unwrap());
        victim.grow_to(5 * PAGE).unwrap();
        let victim = Mutex::new(victim);
        let _victim = asked.register(&host.governor(), "victim", ReclaimOrder::new().priority(1), move |shortfall| {
            let mut victim = victim.lock().unwrap();
            let len = victim.len() - shortfall.bytes;
            victim.shrink_to(len).unwrap();
            0
        });
        let _miser = miser(&asked, &host, "miser", ReclaimOrder::new());
        let mut grows = buffer(&host, &host.backing(lacking).unwrap());
        let faults = if lacking == "parking" { &parks } else { &lacks };
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        grows.grow_to(3 * PAGE).expect("what was parked was given up");
        assert_eq!((asked.take(), used(&host)), (vec![("victim", 3 * PAGE)], 5 * PAGE), "{lacking}");
        let trims = if lacking == "parking" { 1 } else { 2 };
        assert_eq!(parks.count(Call::Trim), trims, "{lacking}: whoever pays has looked into what it has parked before");
    }
}
