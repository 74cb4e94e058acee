//! Who keeps the books: charged once, by this host, or refused.

use leasehold::{Accounting, AuthorityId, BufferSpec, Domain, ErrorKind};
use leasehold_tests::fault::{Books, Call, Faults};
use leasehold_tests::rig::{LIMIT, MIB};

#[test]
fn backing_accounting_with_the_same_authority_is_not_charged_twice() {
    let faults = Faults::new();
    let host = faults.host_with(MIB, Books::OfItsHost).unwrap();
    let backing = host.backing("faulty").unwrap();
    let books = host.governor().authority(Domain::Host).unwrap();
    assert_eq!(backing.accounting(), Accounting::Backing { authority: books });
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    buffer.grow_to(MIB).expect("the budget holds it once, not twice");
    assert_eq!(used(), MIB);
    buffer.shrink_to(MIB / 2).unwrap();
    assert_eq!(used(), MIB / 2);
    drop(buffer);
    assert_eq!(used(), 0);
}

#[test]
fn a_different_authority_is_refused_before_reservation() {
    let faults = Faults::new();
    let elsewhere = AuthorityId::from_bytes([7; 16]);
    let host = faults.host_with(LIMIT, move |_| Books::Elsewhere(elsewhere)).unwrap();
    let backing = host.backing("faulty").unwrap();
    let before = (faults.counts(), host.snapshot());
    let error = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthorityMismatch, "{error}");
    let ours = host.governor().authority(Domain::Host).unwrap();
    let words = error.to_string();
    assert!(words.contains(&ours.to_string()) && words.contains(&elsewhere.to_string()), "names both: {words}");
    assert_eq!((faults.counts(), host.snapshot()), before, "the backing was not called, the books are as they were");
    assert_eq!(faults.count(Call::Reserve), 0);
}

#[test]
fn a_backing_of_another_host_is_refused_before_reservation() {
    let (faults, other) = (Faults::new(), Faults::new());
    let host = faults.host(LIMIT).unwrap();
    let foreign = other.host(LIMIT).unwrap().backing("faulty").unwrap();
    let before = other.counts();
    let error = host.buffer(&foreign, &BufferSpec::new(MIB)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthorityMismatch, "{error}");
    assert_eq!(other.counts(), before);
}
