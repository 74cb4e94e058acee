//! Growth on one address: its bytes, its charges, and what a refusal leaves.

use leasehold::{Buffer, BufferSpec, ErrorKind};
use leasehold_plugin_api::Address;
use leasehold_tests::contents::{Contents, ContentsMut};
use leasehold_tests::is_all;
use leasehold_tests::rig::{GIB, KIB, LIMIT, MIB, TestRig, all_rigs};

/// Bytes of a buffer that can be read and written.
fn open_bytes(rig: &TestRig, buffer: &Buffer) -> u64 {
    rig.open_bytes(buffer.base(), buffer.capacity())
}

/// Bytes of a buffer that have memory behind them.
fn resident_bytes(rig: &TestRig, buffer: &Buffer) -> u64 {
    rig.resident_bytes(buffer.base(), buffer.capacity())
}

#[test]
fn the_address_does_not_change_as_the_buffer_grows() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * MIB)).unwrap();
        let base = buffer.base();
        for len in [1, 4096, 4097, MIB, 7 * MIB + 3, 64 * MIB] {
            buffer.grow_to(len).unwrap();
            assert_eq!((buffer.base(), buffer.len()), (base, len), "{}", rig.name);
            if rig.is_of_the_host() {
                assert_eq!(Address::from_pointer(buffer.as_mut_slice().unwrap().as_mut_ptr()), base, "{}", rig.name);
            }
        }
    }
}

#[test]
fn reserving_address_space_leases_nothing() {
    for rig in all_rigs() {
        let buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * GIB)).unwrap();
        assert_eq!((rig.used(), buffer.committed(), buffer.capacity()), (0, 0, 64 * GIB), "{}", rig.name);
        assert!(rig.is_taken_whole(buffer.base(), buffer.capacity()), "{}", rig.name);
        assert_eq!(open_bytes(&rig, &buffer), 0, "{}", rig.name);
    }
}

#[test]
fn growth_leases_exactly_what_it_commits() {
    for rig in all_rigs() {
        let granule = rig.granule;
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        for (len, granules) in [(1, 1), (2, 1), (granule, 1), (granule + 1, 2), (2 * granule, 2), (9 * granule - 1, 9)]
        {
            buffer.grow_to(len).unwrap();
            assert_eq!((rig.used(), buffer.committed()), (granules * granule, granules * granule), "{}", rig.name);
            assert_eq!(open_bytes(&rig, &buffer), granules * granule, "{}", rig.name);
        }
    }
}

#[test]
fn contents_survive_growth() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(16 * MIB)).unwrap();
        let mut written = 0;
        for (mark, len) in [(1_u8, 10), (2, 5000), (3, MIB), (4, 16 * MIB)] {
            buffer.grow_to(len).unwrap();
            assert!(is_all(&buffer.seen(0)[written..], 0), "{}: new bytes read as zero", rig.name);
            buffer.paint(0, u64::try_from(written).unwrap(), mark);
            written = usize::try_from(len).unwrap();
        }
        let bytes = buffer.seen(0);
        assert!(is_all(&bytes[..10], 1), "{}", rig.name);
        assert!(is_all(&bytes[10..5000], 2), "{}", rig.name);
        assert!(is_all(&bytes[5000..1 << 20], 3), "{}", rig.name);
        assert!(is_all(&bytes[1 << 20..], 4), "{}", rig.name);
    }
}

#[test]
fn shrinking_returns_committed_pages() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        buffer.grow_to(4 * MIB).unwrap();
        buffer.paint(0, 0, 7);
        assert_eq!(resident_bytes(&rig, &buffer), 4 * MIB, "{}", rig.name);
        buffer.shrink_to(MIB).unwrap();
        assert_eq!(resident_bytes(&rig, &buffer), MIB, "{}", rig.name);
        assert_eq!(open_bytes(&rig, &buffer), MIB, "{}", rig.name);
        assert_eq!((rig.used(), buffer.committed(), buffer.len()), (MIB, MIB, MIB), "{}", rig.name);
    }
}

#[test]
fn a_shrink_within_a_granule_keeps_the_page() {
    for rig in all_rigs() {
        let granule = rig.granule;
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(2 * granule).unwrap();
        buffer.paint(0, 0, 9);
        buffer.shrink_to(granule + 1).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), rig.used()), (granule + 1, 2 * granule, 2 * granule));
        assert_eq!(resident_bytes(&rig, &buffer), 2 * granule, "{}", rig.name);
        assert!(is_all(&buffer.seen(0), 9), "{}", rig.name);
    }
}

#[test]
fn growing_past_the_reservation_is_refused_and_names_the_capacity() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * KIB)).unwrap();
        buffer.grow_to(100).unwrap();
        let error = buffer.grow_to(64 * KIB + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CapacityExceeded, "{}: {error}", rig.name);
        assert!(error.to_string().contains("asks 65537 bytes a plane, the capacity is 65536"), "{}: {error}", rig.name);
        assert_eq!((buffer.len(), rig.used()), (100, rig.granule), "{}", rig.name);
        buffer.grow_to(64 * KIB).unwrap();
    }
}

#[test]
fn a_refused_lease_leaves_the_buffer_untouched() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(2 * LIMIT)).unwrap();
        buffer.grow_to(5000).unwrap();
        buffer.paint(0, 0, 3);
        let seen = |buffer: &Buffer| (buffer.len(), buffer.committed(), rig.used(), open_bytes(&rig, buffer));
        let before = seen(&buffer);
        let error = buffer.grow_to(LIMIT + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{}: {error}", rig.name);
        assert!(error.is_exhausted(), "{}", rig.name);
        assert_eq!(seen(&buffer), before, "{}", rig.name);
        assert!(is_all(&buffer.seen(0), 3), "{}", rig.name);
        buffer.grow_to(MIB).unwrap();
        assert_eq!(rig.used(), MIB, "{}: what fits is granted after a refusal", rig.name);
    }
}

#[test]
fn dropping_the_buffer_returns_its_budget() {
    for rig in all_rigs() {
        // So large that the tests beside this one can't take all of it once it was given back.
        let spec = BufferSpec::new(512 * GIB);
        let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
        buffer.grow_to(MIB).unwrap();
        buffer.paint(0, 0, 1);
        let (base, capacity) = (buffer.base(), buffer.capacity());
        assert_eq!(rig.used(), MIB, "{}", rig.name);
        drop(buffer);
        assert_eq!(rig.used(), 0, "{}", rig.name);
        assert!(!rig.is_taken_whole(base, capacity), "{}: the addresses are given back", rig.name);
    }
}
