//! Backings that own memory which nobody uses.

use crate::{Held, MIB, PAGE, giver, lease, miser, parking, used};
use leasehold::{BufferSpec, Domain, ErrorKind, GrowthPolicy, Host, ReclaimOrder};
use leasehold_plugin_api as api;
use leasehold_tests::asked::Asked;
use leasehold_tests::fault::{Books, Call, Fault, Faults, FaultyBacking, HostMemory, Strikes, host_mmap};
use std::sync::Mutex;

#[test]
fn parked_memory_is_taken_before_anybody_gives() {
    let (faults, host, backing) = parking(8 * PAGE);
    let (governor, asked) = (host.governor(), Asked::default());
    let held = Held::new(&governor, 2 * PAGE);
    let _held = giver(&asked, &governor, "held", ReclaimOrder::new().priority(i32::MAX), held.clone(), u64::MAX);
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
    let victim = Mutex::new(victim);
    let _victim = asked.register(&governor, "victim", ReclaimOrder::new().priority(1), move |shortfall| {
        let mut victim = victim.lock().unwrap();
        let len = victim.len() - shortfall.bytes;
        victim.shrink_to(len).unwrap();
        0
    });
    let _miser = miser(&asked, &governor, "miser", ReclaimOrder::new());
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
    let create = |services: api::HostServices| {
        let parking = HostMemory::from(host_mmap(services)?).parking(4 * PAGE);
        Ok(FaultyBacking::new(parking, &Faults::new(), Books::OfTheBuffers))
    };
    let builder = Host::builder().limit(Domain::Host, MIB);
    let host = builder.with_accessible_backing("says-so", FaultyBacking::ACCESS, create).load().unwrap();
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
        let _held = giver(&asked, &governor, "held", ReclaimOrder::new(), held, u64::MAX);
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
