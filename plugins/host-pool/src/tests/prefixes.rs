//! One prefix in many regions.

use super::memory::{fill, first_byte, holds, make_writable, mappings};
use super::*;
use rustix::io::Errno;

/// A sealed prefix whose bytes are `value`.
fn sealed(pool: &HostPool, id: u64, bytes: u64, value: u8) -> Prefix {
    let prefix = create(pool, id, bytes, ONE).unwrap();
    fill(prefix.window, 0, bytes, value);
    pool.seal(PrefixId::new(id)).unwrap();
    prefix
}

#[test]
fn sealed_memory_can_never_be_made_writable_again() {
    let (pool, _) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 1, 4 * MIB, OTHER).base;
    let window = create(&pool, 1, MIB, ONE).unwrap().window;
    fill(window, 0, MIB, 7);
    assert_eq!(mappings(window, MIB).iter().map(|mapping| mapping.permissions.as_str()).next(), Some("rw-s"));
    pool.seal(PrefixId::new(1)).unwrap();
    pool.map_prefix(&[place(1, 0, MIB, 1, MIB)]).unwrap();
    for (address, offset) in [(window, 0), (base, MIB)] {
        assert!(holds(address, offset, MIB, 7));
        assert_eq!(make_writable(address, offset, MIB), Err(Errno::ACCESS));
        let seen = mappings(address.checked_add(offset).unwrap(), MIB);
        assert!(seen.iter().all(|mapping| mapping.permissions == "r--s"), "{seen:?}");
    }
    assert_eq!(kind(pool.seal(PrefixId::new(1))), ErrorKind::WrongState);
}

#[test]
fn a_64_mib_prefix_in_32_regions_is_64_mib_of_memory() {
    let (pool, books) = pool(&HostPoolOptions::default());
    let prefix = sealed(&pool, 1, 64 * MIB, 7);
    assert_eq!((prefix.owned_bytes, pool.incremental_owned_bytes(PrefixId::new(1))), (64 * MIB, Ok(0)));
    let bases: Vec<_> = (0..32).map(|id| reserve(&pool, id, 128 * MIB, OTHER).base).collect();
    let places: Vec<_> = (0..32).map(|id| place(1, 0, 64 * MIB, id, 0)).collect();
    assert_eq!(pool.map_prefix(&places), Ok(change(2048 * MIB, 0)));
    assert!(bases.iter().all(|base| (0..64 * MIB / (4 * KIB)).all(|page| first_byte(*base, page * 4 * KIB) == 7)));
    let pss = |base, bytes| mappings(base, bytes).iter().map(|mapping| mapping.pss_bytes).sum::<u64>();
    let sum = bases.iter().map(|base| pss(*base, 128 * MIB)).sum::<u64>() + pss(prefix.window, 64 * MIB);
    assert!(sum.abs_diff(64 * MIB) <= 64 * KIB, "{sum} bytes");
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (64 * MIB, 64 * MIB));
    assert!((0..32).all(|id| committed(&pool, id) == 0));
    assert_eq!(pool.unmap(&places), Ok(change(2048 * MIB, 0)));
    release_prefix(&pool, 1);
    assert_eq!((books.charged(), pool.pool.parked_bytes()), (64 * MIB, 64 * MIB));
}

#[test]
fn a_prefix_is_charged_in_its_role() {
    let (pool, books) = pool(&HostPoolOptions::default());
    for (id, role) in (1..).zip([MemoryRole::Weights, MemoryRole::KvCache]) {
        books.refuse(1);
        let request = PrefixRequest { id: PrefixId::new(id), bytes: MIB, role, holder: ONE };
        let error = pool.create_prefix(&request).unwrap_err();
        assert_eq!(error.message(), format!("no budget for {MIB} bytes of {role}"));
    }
}

#[test]
fn memory_lives_until_handle_and_mappings_are_gone_in_whichever_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (pool, books) = pool(&parking(0));
        sealed(&pool, 1, MIB, 7);
        let bases = [1, 2].map(|id| reserve(&pool, id, 4 * MIB, OTHER).base);
        pool.map_prefix(&[place(1, 0, MIB, 1, 0), place(1, 0, MIB, 2, MIB)]).unwrap();
        for (step, part) in order.into_iter().enumerate() {
            match part {
                0 => release_prefix(&pool, 1),
                1 => drop(pool.unmap(&[place(1, 0, MIB, 1, 0)]).unwrap()),
                _ => release(&pool, 2),
            }
            let left = if step == 2 { 0 } else { MIB };
            assert_eq!((books.charged(), pool.pool.resident_bytes()), (left, left), "{order:?} at {step}");
            let still = |part| order.iter().position(|other| *other == part).unwrap() > step;
            assert!(!still(1) || holds(bases[0], 0, MIB, 7));
            assert!(!still(2) || holds(bases[1], MIB, MIB, 7));
        }
    }
}

#[test]
fn parts_go_to_their_places_and_back_as_they_were_made() {
    let (pool, _) = pool(&HostPoolOptions::default());
    let window = create(&pool, 1, 4 * MIB, ONE).unwrap().window;
    (0..4).for_each(|part| fill(window, part * MIB, MIB, u8::try_from(part).unwrap() + 1));
    pool.seal(PrefixId::new(1)).unwrap();
    let bases = [1, 2].map(|id| reserve(&pool, id, 8 * MIB, ONE).base);
    commit(&pool, 1, 0, MIB).unwrap();
    let places = [place(1, 3 * MIB, MIB, 2, MIB), place(1, MIB, 2 * MIB, 1, MIB), place(1, MIB, MIB, 1, 4 * MIB)];
    assert_eq!(pool.map_prefix(&places), Ok(change(4 * MIB, 0)));
    assert!(holds(bases[0], MIB, MIB, 2) && holds(bases[0], 2 * MIB, MIB, 3) && holds(bases[0], 4 * MIB, MIB, 2));
    assert!(holds(bases[1], MIB, MIB, 4));
    assert_eq!(committed(&pool, 1), MIB);
    assert_eq!(kind(decommit(&pool, 1, 0, 2 * MIB)), ErrorKind::NotCommitted);
    assert_eq!(kind(decommit(&pool, 1, MIB, MIB)), ErrorKind::NotCommitted);
    assert_eq!(kind(commit(&pool, 1, 3 * MIB - GRANULE, GRANULE)), ErrorKind::AlreadyCommitted);
    for wrong in [
        place(1, MIB, MIB, 1, MIB),
        place(1, 2 * MIB, MIB, 1, 2 * MIB),
        place(1, 0, 2 * MIB, 1, MIB),
        place(2, MIB, 2 * MIB, 1, MIB),
        place(1, MIB, 2 * MIB, 2, MIB),
        place(1, 0, MIB, 1, 0),
        place(1, MIB + 1, 2 * MIB, 1, MIB),
    ] {
        assert_eq!(kind(pool.unmap(&[places[2], wrong])), ErrorKind::NotCommitted, "{wrong:?}");
    }
    assert_eq!(pool.unmap(&places), Ok(change(4 * MIB, 0)));
    assert_eq!(kind(pool.unmap(&places)), ErrorKind::NotCommitted);
    commit(&pool, 1, MIB, 4 * MIB).unwrap();
}

#[test]
fn mappings_that_may_not_be_are_refused_and_nothing_is_mapped() {
    let (pool, _) = pool(&HostPoolOptions::default());
    sealed(&pool, 1, 2 * MIB, 7);
    create(&pool, 2, MIB, ONE).unwrap();
    let base = reserve(&pool, 1, 4 * MIB, ONE).base;
    commit(&pool, 1, 3 * MIB, MIB).unwrap();
    let good = place(1, 0, MIB, 1, 0);
    for (wrong, wanted) in [
        (place(9, 1, 1, 9, 1), ErrorKind::UnknownId),
        (place(2, 0, MIB, 1, MIB), ErrorKind::WrongState),
        (place(1, 0, 6912, 1, MIB), ErrorKind::InvalidRequest),
        (place(1, 6912, MIB, 1, MIB), ErrorKind::InvalidRequest),
        (place(1, 0, 0, 1, MIB), ErrorKind::InvalidRequest),
        (place(1, MIB + GRANULE, MIB, 1, MIB), ErrorKind::InvalidRequest),
        (place(1, 0, MIB, 1, MIB / 2), ErrorKind::InvalidRequest),
        (place(1, MIB, MIB, 1, 0), ErrorKind::InvalidRequest),
        (place(1, 0, MIB, 1, MIB + 1), ErrorKind::InvalidRequest),
        (place(1, 0, 2 * MIB, 1, 3 * MIB), ErrorKind::InvalidRequest),
        (place(1, 0, MIB, 9, MIB), ErrorKind::UnknownId),
        (place(1, 0, 2 * MIB, 1, 2 * MIB), ErrorKind::AlreadyCommitted),
    ] {
        assert_eq!(kind(pool.map_prefix(&[good, wrong])), wanted, "{wrong:?}");
        assert_eq!(kind(pool.unmap(&[good])), ErrorKind::NotCommitted);
    }
    assert_eq!(mappings(base, 3 * MIB).len(), 1);
    pool.map_prefix(&[good]).unwrap();
}

#[test]
fn an_unknown_prefix_is_refused_before_anything_else_that_is_wrong() {
    let (pool, _) = pool(&HostPoolOptions::default());
    sealed(&pool, 1, MIB, 7);
    let wrong = [place(1, 1, 1, 9, 1), place(9, 0, MIB, 1, 0)];
    let error = pool.map_prefix(&wrong).unwrap_err();
    assert_eq!(error.message(), "prefix 9 is not live here: it was never made, or was released");
}
