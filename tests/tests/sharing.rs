//! One physical prefix in many caches, charged once.
//!
//! The suite runs over every way in. A backing that can't share says why, and that it still can't is checked.

use leasehold::{Buffer, BufferSet, BufferSpec, ErrorKind, HolderId, PrefixSpec, SharedPrefix};
use leasehold_tests::contents::{Contents, ContentsMut};
use leasehold_tests::is_all;
use leasehold_tests::rig::{KIB, LIMIT, MIB, TestRig, all_rigs, all_sharing_rigs};

/// A sealed prefix whose planes are filled with their number and `mark`.
fn sealed(rig: &TestRig, planes: usize, plane_bytes: u64, mark: u8) -> SharedPrefix {
    let spec = PrefixSpec::new(plane_bytes).planes(planes);
    let mut prefix = rig.host.prefix(&rig.backing, &spec).unwrap();
    for plane in 0..planes {
        assert!(is_all(&prefix.seen(plane), 0), "{}: it reads as zero", rig.name);
        prefix.paint(plane, 0, of_plane(plane, mark));
    }
    prefix.seal().unwrap()
}

fn of_plane(plane: usize, mark: u8) -> u8 {
    mark + u8::try_from(plane).unwrap()
}

fn set(rig: &TestRig, planes: usize) -> BufferSet {
    rig.host.buffer_set(&rig.backing, planes, &BufferSpec::new(64 * MIB)).unwrap()
}

fn buffer(rig: &TestRig) -> Buffer {
    rig.host.buffer(&rig.backing, &BufferSpec::new(64 * MIB)).unwrap()
}

#[test]
fn a_prefix_shows_in_every_plane_and_costs_nothing_more() {
    for rig in all_sharing_rigs() {
        let bytes = 4 * rig.granule;
        let prefix = sealed(&rig, 3, bytes, 10);
        let used = rig.used();
        assert_eq!((used, prefix.owned_bytes()), (3 * bytes, 3 * bytes), "{}", rig.name);
        let mut sets = [set(&rig, 3), set(&rig, 3)];
        for set in &mut sets {
            let bases = [set.base(0), set.base(1), set.base(2)];
            assert_eq!(set.mapping_cost(&[prefix.whole()]).unwrap().owned_bytes, 0);
            assert_eq!(set.mapping_cost(&[prefix.whole()]).unwrap().mapped_bytes, 3 * bytes);
            set.map_prefix(&prefix).unwrap();
            assert_eq!((set.len(), set.shared(), set.committed()), (bytes, bytes, bytes), "{}", rig.name);
            assert_eq!((set.owned_bytes(), set.mapped_bytes()), (0, 3 * bytes), "{}", rig.name);
            assert_eq!([set.base(0), set.base(1), set.base(2)], bases, "{}: nothing moved", rig.name);
            assert!((0..3).all(|plane| is_all(&set.seen(plane), of_plane(plane, 10))), "{}", rig.name);
        }
        assert_eq!(rig.used(), used, "{}: charged once", rig.name);
    }
}

#[test]
fn the_private_part_grows_behind_the_prefix_and_shrinks_down_to_it() {
    for rig in all_sharing_rigs() {
        let (granule, shared) = (rig.granule, 2 * rig.granule);
        let prefix = sealed(&rig, 2, shared, 20);
        let mut set = set(&rig, 2);
        set.map_prefix(&prefix).unwrap();
        set.grow_to(shared + granule + 1).unwrap();
        assert_eq!((set.committed(), set.owned_bytes()), (shared + 2 * granule, 4 * granule), "{}", rig.name);
        assert_eq!(rig.used(), 2 * shared + 4 * granule, "{}", rig.name);
        for plane in 0..2 {
            assert_eq!(set.plane_mut(plane).unwrap_err().kind(), ErrorKind::WrongState, "{}", rig.name);
            let begin = usize::try_from(shared).unwrap();
            let private = &set.seen(plane)[begin..];
            assert!(u64::try_from(private.len()).unwrap() == granule + 1 && is_all(private, 0), "{}", rig.name);
            set.paint(plane, shared, 99);
            let bytes = set.seen(plane);
            let (front, back) = bytes.split_at(begin);
            assert!(is_all(front, of_plane(plane, 20)) && is_all(back, 99), "{}", rig.name);
        }
        set.shrink_to(1).unwrap();
        assert_eq!((set.len(), set.committed(), set.owned_bytes()), (1, shared, 0), "{}", rig.name);
        set.grow_to(shared).unwrap();
        assert!(is_all(&set.seen(1), of_plane(1, 20)), "{}: it stayed mapped", rig.name);
        assert_eq!(rig.used(), 2 * shared + rig.parked(4 * granule), "{}", rig.name);
    }
}

#[test]
fn prefixes_come_one_behind_the_other_and_only_before_what_is_private() {
    for rig in all_sharing_rigs() {
        let granule = rig.granule;
        let (one, other) = (sealed(&rig, 2, granule, 1), sealed(&rig, 2, 3 * granule, 5));
        let mut set = set(&rig, 2);
        set.map_prefix(&one).unwrap();
        set.map_prefixes(&[other.part(granule, 2 * granule).unwrap(), one.whole()]).unwrap();
        assert_eq!((set.shared(), set.len()), (4 * granule, 4 * granule), "{}", rig.name);
        for plane in 0..2 {
            let wanted = [1, 5, 5, 1].map(|mark| of_plane(plane, mark));
            let bytes = set.seen(plane);
            let seen = bytes.chunks(usize::try_from(granule).unwrap());
            assert!(seen.zip(wanted).all(|(bytes, mark)| is_all(bytes, mark)), "{}", rig.name);
        }
        set.grow_to(4 * granule + 1).unwrap();
        let error = set.map_prefix(&one).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongState, "{}: {error}", rig.name);
        assert_eq!((set.shared(), set.len()), (4 * granule, 4 * granule + 1), "{}", rig.name);
    }
}

#[test]
fn a_cleared_buffer_holds_nothing_and_serves_again_in_its_place() {
    for rig in all_sharing_rigs() {
        let bytes = 2 * rig.granule;
        let prefix = sealed(&rig, 1, bytes, 7);
        let mut buffer = buffer(&rig);
        let base = buffer.base();
        for _ in 0..3 {
            buffer.map_prefix(&prefix).unwrap();
            buffer.grow_to(3 * bytes).unwrap();
            assert_eq!(prefix.holders(), 2, "{}", rig.name);
            buffer.clear().unwrap();
            assert_eq!((buffer.len(), buffer.shared(), buffer.committed(), prefix.holders()), (0, 0, 0, 1));
            assert_eq!(rig.used(), bytes + rig.parked(2 * bytes), "{}", rig.name);
            buffer.grow_to(bytes).unwrap();
            assert!(is_all(&buffer.seen(0), 0), "{}: the prefix is gone", rig.name);
            buffer.paint(0, 0, 1);
            buffer.clear().unwrap();
        }
        assert_eq!(buffer.base(), base, "{}", rig.name);
    }
}

#[test]
fn handle_and_mappings_end_in_any_order() {
    for rig in all_sharing_rigs() {
        let bytes = 2 * rig.granule;
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let prefix = sealed(&rig, 1, bytes, 40);
            let mut buffers = [Some(buffer(&rig)), Some(buffer(&rig))];
            buffers.iter_mut().flatten().for_each(|buffer| buffer.map_prefix(&prefix).unwrap());
            let mut handle = Some(prefix);
            for what in order {
                assert!(rig.used() >= bytes, "{}: it lives while anybody holds it", rig.name);
                match what {
                    0 => handle.take().map_or(Ok(()), SharedPrefix::close).unwrap(),
                    _ => buffers[what - 1].take().map_or(Ok(()), Buffer::close).unwrap(),
                }
                let mut left = buffers.iter().flatten();
                assert!(left.all(|buffer| is_all(&buffer.seen(0), 40)), "{}: {order:?}", rig.name);
            }
            assert_eq!(rig.used(), rig.parked(bytes), "{}: {order:?}", rig.name);
            rig.host.trim(&rig.backing, u64::MAX).unwrap();
            assert_eq!(rig.used(), 0, "{}: {order:?}", rig.name);
        }
    }
}

#[test]
fn sixty_four_mebibytes_in_thirty_two_regions_own_sixty_four_mebibytes_and_map_two_gibibytes() {
    for rig in all_sharing_rigs() {
        let prefix = sealed(&rig, 1, 64 * MIB, 3);
        let mut buffers: Vec<_> = (0..32).map(|_| buffer(&rig)).collect();
        for buffer in &mut buffers {
            buffer.map_prefix(&prefix).unwrap();
            if rig.is_of_the_host() {
                assert!(is_all(&buffer.seen(0), 3), "{}: every page is touched", rig.name);
            }
            let mut last = [0; 4];
            buffer.read(64 * MIB - 4, &mut last).unwrap();
            assert_eq!(last, [3; 4], "{}", rig.name);
        }
        assert_eq!(rig.used(), 64 * MIB, "{}", rig.name);
        let windows = [(prefix.base(0).unwrap(), 64 * MIB)];
        let places = buffers.iter().map(|buffer| (buffer.base(), buffer.capacity())).chain(windows);
        let resident = rig.physical_bytes(&places.collect::<Vec<_>>());
        assert!(resident.abs_diff(64 * MIB) <= MIB, "{}: {resident} bytes resident, by their share", rig.name);
    }
}

#[test]
fn a_sealed_prefix_can_be_written_nowhere() {
    for rig in all_sharing_rigs() {
        let bytes = 2 * rig.granule;
        let mut prefix = rig.host.prefix(&rig.backing, &PrefixSpec::new(bytes)).unwrap();
        let window = prefix.base(0).unwrap();
        prefix.paint(0, 0, 8);
        assert_eq!(rig.open_bytes(window, bytes), bytes, "{}", rig.name);
        let prefix = prefix.seal().unwrap();
        let mut buffer = buffer(&rig);
        buffer.map_prefix(&prefix).unwrap();
        assert_eq!(prefix.base(0), Some(window), "{}: the window stays", rig.name);
        let open = rig.open_bytes(window, bytes) + rig.open_bytes(buffer.base(), bytes);
        assert_eq!(open, 0, "{}", rig.name);
        assert!(is_all(&prefix.seen(0), 8) && is_all(&buffer.seen(0), 8), "{}", rig.name);
    }
}

#[test]
fn a_prefix_of_another_backing_or_host_is_refused_and_nothing_is_mapped() {
    for (rig, other) in all_sharing_rigs().zip(all_sharing_rigs()) {
        let foreign = sealed(&other, 1, rig.granule, 1);
        let mut buffer = rig.host.buffer_set(&rig.backing, 1, &BufferSpec::new(MIB)).unwrap();
        for error in [buffer.mapping_cost(&[foreign.whole()]).unwrap_err(), buffer.map_prefix(&foreign).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::ForeignPrefix, "{}: {error}", rig.name);
            assert!(error.to_string().contains("of another host made it"), "{}: {error}", rig.name);
        }
        assert_eq!((buffer.len(), buffer.shared(), foreign.holders()), (0, 0, 1), "{}", rig.name);
    }
}

#[test]
fn a_prefix_that_does_not_fit_the_buffer_is_refused_and_the_buffer_still_grows() {
    for rig in all_sharing_rigs() {
        let granule = rig.granule;
        let pair = sealed(&rig, 2, 2 * granule, 1);
        let mut single = rig.host.buffer_set(&rig.backing, 1, &BufferSpec::new(MIB)).unwrap();
        assert_eq!(single.map_prefix(&pair).unwrap_err().kind(), ErrorKind::InvalidRequest, "{}", rig.name);
        let mut small = rig.host.buffer_set(&rig.backing, 2, &BufferSpec::new(granule)).unwrap();
        assert_eq!(small.map_prefix(&pair).unwrap_err().kind(), ErrorKind::CapacityExceeded, "{}", rig.name);
        for set in [&mut single, &mut small] {
            set.grow_to(granule).unwrap();
            assert!(is_all(&set.seen(0), 0), "{}", rig.name);
        }
        for (offset, bytes) in [(0, 0), (1, granule), (0, granule + 1), (granule, 2 * granule), (u64::MAX, granule)] {
            assert_eq!(pair.part(offset, bytes).unwrap_err().kind(), ErrorKind::InvalidRequest, "{offset} {bytes}");
        }
    }
}

#[test]
fn a_prefix_that_could_never_be_made_is_refused_and_charges_nothing() {
    for rig in all_sharing_rigs() {
        for (planes, bytes) in [(0, MIB), (1, 0), (1, rig.granule + 1), (usize::MAX, MIB), (2, u64::MAX / 2 + 1)] {
            let spec = PrefixSpec::new(bytes).planes(planes);
            let error = rig.host.prefix(&rig.backing, &spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{}: {planes} {bytes}: {error}", rig.name);
        }
        let error = rig.host.prefix(&rig.backing, &PrefixSpec::new(LIMIT + MIB)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{}: {error}", rig.name);
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

/// Seen elsewhere: a prefix that was built from recycled memory reported that it owned nothing.
#[test]
fn a_prefix_of_recycled_memory_owns_what_it_holds_and_shows_nothing_of_it() {
    for rig in all_sharing_rigs() {
        let bytes = 4 * rig.granule;
        let spec = BufferSpec::new(MIB).holder(HolderId::new(1));
        let mut before = rig.host.buffer(&rig.backing, &spec).unwrap();
        before.grow_to(bytes).unwrap();
        before.paint(0, 0, 0xaa);
        drop(before);
        let parked = rig.used();
        let spec = PrefixSpec::new(bytes).holder(HolderId::new(2));
        let prefix = rig.host.prefix(&rig.backing, &spec).unwrap();
        assert!(is_all(&prefix.seen(0), 0), "{}: another holder's bytes", rig.name);
        assert_eq!(prefix.owned_bytes(), bytes, "{}", rig.name);
        assert_eq!(prefix.newly_owned_bytes(), bytes - parked, "{}", rig.name);
        assert_eq!(rig.used(), bytes, "{}", rig.name);
    }
}

#[test]
fn a_granule_never_shows_one_holders_bytes_to_another() {
    for rig in all_rigs() {
        let (granule, granules) = (rig.granule, 16);
        let of = |holder: u64| BufferSpec::new(4 * MIB).holder(HolderId::new(holder));
        for holder in 1..6 {
            let mut buffer = rig.host.buffer(&rig.backing, &of(holder)).unwrap();
            for granules in [3, granules, 5, granules] {
                buffer.shrink_to(0).unwrap();
                buffer.grow_to(granules * granule).unwrap();
                let mark = u8::try_from(holder).unwrap();
                let own = |bytes: &[u8]| is_all(bytes, 0) || is_all(bytes, mark);
                let bytes = buffer.seen(0);
                assert!(
                    bytes.chunks(usize::try_from(granule).unwrap()).all(own),
                    "{}: another holder's bytes",
                    rig.name
                );
                buffer.paint(0, 0, mark);
            }
        }
        // What belonged to nobody in particular is shown to nobody.
        for _ in 0..2 {
            let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(4 * MIB)).unwrap();
            buffer.grow_to(granules * granule).unwrap();
            assert!(is_all(&buffer.seen(0), 0), "{}", rig.name);
            buffer.paint(0, 0, 0xff);
        }
    }
}

#[test]
fn a_backing_that_can_not_share_says_so_before_it_is_asked() {
    for rig in all_rigs().filter(|rig| !rig.shares()) {
        let error = rig.host.prefix(&rig.backing, &PrefixSpec::new(64 * KIB)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error}", rig.name);
        assert!(error.to_string().contains("offers no shared-mapping"), "{error}");
    }
}

#[test]
fn bytes_are_copied_in_and_out_and_never_into_a_prefix_or_past_the_end() {
    for rig in all_sharing_rigs() {
        let granule = rig.granule;
        let mut prefix = rig.host.prefix(&rig.backing, &PrefixSpec::new(granule).planes(2)).unwrap();
        prefix.write(1, 5, b"shared").unwrap();
        let prefix = prefix.seal().unwrap();
        let mut set = set(&rig, 2);
        set.map_prefix(&prefix).unwrap();
        set.grow_to(granule + 10).unwrap();
        set.write(1, granule + 1, b"private").unwrap();
        set.fill(0, granule, 10, 3).unwrap();
        let mut seen = [0; 8];
        set.read(1, 5, &mut seen[..6]).unwrap();
        assert_eq!(&seen[..6], b"shared", "{}", rig.name);
        set.read(1, granule + 1, &mut seen[..7]).unwrap();
        assert_eq!(&seen[..7], b"private", "{}", rig.name);
        prefix.read(1, 5, &mut seen[..6]).unwrap();
        set.read(0, granule + 9, &mut seen[..1]).unwrap();
        assert_eq!(&seen[..6], &[3, b'h', b'a', b'r', b'e', b'd'], "{}", rig.name);
        for (plane, offset, kind) in [
            (1, 5, ErrorKind::WrongState),
            (1, granule - 1, ErrorKind::WrongState),
            (1, granule + 4, ErrorKind::InvalidRequest),
            (1, u64::MAX, ErrorKind::InvalidRequest),
            (2, granule, ErrorKind::InvalidRequest),
        ] {
            let error = set.write(plane, offset, b"private").unwrap_err();
            assert_eq!(error.kind(), kind, "{}: {plane} {offset}: {error}", rig.name);
        }
        assert_eq!(set.read(0, granule + 4, &mut seen).unwrap_err().kind(), ErrorKind::InvalidRequest);
        assert_eq!(prefix.read(0, granule, &mut seen).unwrap_err().kind(), ErrorKind::InvalidRequest);
    }
}

#[test]
fn a_budget_that_is_used_up_is_told_in_figures_whoever_pays() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(2 * LIMIT)).unwrap();
        buffer.grow_to(rig.granule).unwrap();
        let error = buffer.grow_to(LIMIT + 1).unwrap_err();
        let figures = error.tier_exhausted().unwrap_or_else(|| panic!("{}: no figures: {error}", rig.name));
        assert_eq!((figures.used_bytes, figures.limit_bytes), (rig.granule, LIMIT), "{}", rig.name);
        assert_eq!(figures.requested_bytes, LIMIT, "{}", rig.name);
    }
}
