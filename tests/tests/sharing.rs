//! One physical prefix in many caches, charged once.
//!
//! The suite runs over every way in. A backing that can't share says why, and that it still can't is checked.

use leasehold::{Buffer, BufferSet, BufferSpec, ErrorKind, HolderId, PrefixSpec, SharedPrefix};
use leasehold_tests::contents::{Contents, Paint};
use leasehold_tests::ground::{Ground, KIB, LIMIT, MIB, all_grounds, all_sharing_grounds};
use leasehold_tests::is_all;

/// A sealed prefix whose planes are filled with their number and `mark`.
fn sealed(ground: &Ground, planes: usize, plane_bytes: u64, mark: u8) -> SharedPrefix {
    let spec = PrefixSpec::new(plane_bytes).planes(planes);
    let mut prefix = ground.host.prefix(&ground.backing, &spec).unwrap();
    for plane in 0..planes {
        assert!(is_all(&prefix.seen(plane), 0), "{}: it reads as zero", ground.name);
        prefix.paint(plane, 0, of_plane(plane, mark));
    }
    prefix.seal().unwrap()
}

fn of_plane(plane: usize, mark: u8) -> u8 {
    mark + u8::try_from(plane).unwrap()
}

fn set(ground: &Ground, planes: usize) -> BufferSet {
    ground.host.buffer_set(&ground.backing, planes, &BufferSpec::new(64 * MIB)).unwrap()
}

fn buffer(ground: &Ground) -> Buffer {
    ground.host.buffer(&ground.backing, &BufferSpec::new(64 * MIB)).unwrap()
}

#[test]
fn a_prefix_shows_in_every_plane_and_costs_nothing_more() {
    for ground in all_sharing_grounds() {
        let bytes = 4 * ground.granule;
        let prefix = sealed(&ground, 3, bytes, 10);
        let used = ground.used();
        assert_eq!((used, prefix.owned_bytes()), (3 * bytes, 3 * bytes), "{}", ground.name);
        let mut sets = [set(&ground, 3), set(&ground, 3)];
        for set in &mut sets {
            let bases = [set.base(0), set.base(1), set.base(2)];
            assert_eq!(set.mapping_cost(&[prefix.whole()]).unwrap().owned_bytes, 0);
            assert_eq!(set.mapping_cost(&[prefix.whole()]).unwrap().mapped_bytes, 3 * bytes);
            set.map_prefix(&prefix).unwrap();
            assert_eq!((set.len(), set.shared(), set.committed()), (bytes, bytes, bytes), "{}", ground.name);
            assert_eq!((set.owned_bytes(), set.mapped_bytes()), (0, 3 * bytes), "{}", ground.name);
            assert_eq!([set.base(0), set.base(1), set.base(2)], bases, "{}: nothing moved", ground.name);
            assert!((0..3).all(|plane| is_all(&set.seen(plane), of_plane(plane, 10))), "{}", ground.name);
        }
        assert_eq!(ground.used(), used, "{}: charged once", ground.name);
    }
}

#[test]
fn the_private_part_grows_behind_the_prefix_and_shrinks_down_to_it() {
    for ground in all_sharing_grounds() {
        let (granule, shared) = (ground.granule, 2 * ground.granule);
        let prefix = sealed(&ground, 2, shared, 20);
        let mut set = set(&ground, 2);
        set.map_prefix(&prefix).unwrap();
        set.grow_to(shared + granule + 1).unwrap();
        assert_eq!((set.committed(), set.owned_bytes()), (shared + 2 * granule, 4 * granule), "{}", ground.name);
        assert_eq!(ground.used(), 2 * shared + 4 * granule, "{}", ground.name);
        for plane in 0..2 {
            assert_eq!(set.plane_mut(plane).unwrap_err().kind(), ErrorKind::WrongState, "{}", ground.name);
            let begin = usize::try_from(shared).unwrap();
            let private = &set.seen(plane)[begin..];
            assert!(u64::try_from(private.len()).unwrap() == granule + 1 && is_all(private, 0), "{}", ground.name);
            set.paint(plane, shared, 99);
            let bytes = set.seen(plane);
            let (front, back) = bytes.split_at(begin);
            assert!(is_all(front, of_plane(plane, 20)) && is_all(back, 99), "{}", ground.name);
        }
        set.shrink_to(1).unwrap();
        assert_eq!((set.len(), set.committed(), set.owned_bytes()), (1, shared, 0), "{}", ground.name);
        set.grow_to(shared).unwrap();
        assert!(is_all(&set.seen(1), of_plane(1, 20)), "{}: it stayed mapped", ground.name);
        assert_eq!(ground.used(), 2 * shared + ground.parked(4 * granule), "{}", ground.name);
    }
}

#[test]
fn prefixes_come_one_behind_the_other_and_only_before_what_is_private() {
    for ground in all_sharing_grounds() {
        let granule = ground.granule;
        let (one, other) = (sealed(&ground, 2, granule, 1), sealed(&ground, 2, 3 * granule, 5));
        let mut set = set(&ground, 2);
        set.map_prefix(&one).unwrap();
        set.map_prefixes(&[other.part(granule, 2 * granule).unwrap(), one.whole()]).unwrap();
        assert_eq!((set.shared(), set.len()), (4 * granule, 4 * granule), "{}", ground.name);
        for plane in 0..2 {
            let wanted = [1, 5, 5, 1].map(|mark| of_plane(plane, mark));
            let bytes = set.seen(plane);
            let seen = bytes.chunks(usize::try_from(granule).unwrap());
            assert!(seen.zip(wanted).all(|(bytes, mark)| is_all(bytes, mark)), "{}", ground.name);
        }
        set.grow_to(4 * granule + 1).unwrap();
        let error = set.map_prefix(&one).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongState, "{}: {error}", ground.name);
        assert_eq!((set.shared(), set.len()), (4 * granule, 4 * granule + 1), "{}", ground.name);
    }
}

#[test]
fn a_cleared_buffer_holds_nothing_and_serves_again_in_its_place() {
    for ground in all_sharing_grounds() {
        let bytes = 2 * ground.granule;
        let prefix = sealed(&ground, 1, bytes, 7);
        let mut buffer = buffer(&ground);
        let base = buffer.base();
        for _ in 0..3 {
            buffer.map_prefix(&prefix).unwrap();
            buffer.grow_to(3 * bytes).unwrap();
            assert_eq!(prefix.holders(), 2, "{}", ground.name);
            buffer.clear().unwrap();
            assert_eq!((buffer.len(), buffer.shared(), buffer.committed(), prefix.holders()), (0, 0, 0, 1));
            assert_eq!(ground.used(), bytes + ground.parked(2 * bytes), "{}", ground.name);
            buffer.grow_to(bytes).unwrap();
            assert!(is_all(&buffer.seen(0), 0), "{}: the prefix is gone", ground.name);
            buffer.paint(0, 0, 1);
            buffer.clear().unwrap();
        }
        assert_eq!(buffer.base(), base, "{}", ground.name);
    }
}

#[test]
fn handle_and_mappings_end_in_any_order() {
    for ground in all_sharing_grounds() {
        let bytes = 2 * ground.granule;
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let prefix = sealed(&ground, 1, bytes, 40);
            let mut buffers = [Some(buffer(&ground)), Some(buffer(&ground))];
            buffers.iter_mut().flatten().for_each(|buffer| buffer.map_prefix(&prefix).unwrap());
            let mut handle = Some(prefix);
            for what in order {
                assert!(ground.used() >= bytes, "{}: it lives while anybody holds it", ground.name);
                match what {
                    0 => handle.take().map_or(Ok(()), SharedPrefix::close).unwrap(),
                    _ => buffers[what - 1].take().map_or(Ok(()), Buffer::close).unwrap(),
                }
                let mut left = buffers.iter().flatten();
                assert!(left.all(|buffer| is_all(&buffer.seen(0), 40)), "{}: {order:?}", ground.name);
            }
            assert_eq!(ground.used(), ground.parked(bytes), "{}: {order:?}", ground.name);
            ground.host.trim(&ground.backing, u64::MAX).unwrap();
            assert_eq!(ground.used(), 0, "{}: {order:?}", ground.name);
        }
    }
}

#[test]
fn sixty_four_mebibytes_in_thirty_two_regions_own_sixty_four_mebibytes_and_map_two_gibibytes() {
    for ground in all_sharing_grounds() {
        let prefix = sealed(&ground, 1, 64 * MIB, 3);
        let mut buffers: Vec<_> = (0..32).map(|_| buffer(&ground)).collect();
        for buffer in &mut buffers {
            buffer.map_prefix(&prefix).unwrap();
            if ground.is_of_the_host() {
                assert!(is_all(&buffer.seen(0), 3), "{}: every page is touched", ground.name);
            }
            let mut last = [0; 4];
            buffer.read(64 * MIB - 4, &mut last).unwrap();
            assert_eq!(last, [3; 4], "{}", ground.name);
        }
        assert_eq!(ground.used(), 64 * MIB, "{}", ground.name);
        let windows = [(prefix.base(0).unwrap(), 64 * MIB)];
        let places = buffers.iter().map(|buffer| (buffer.base(), buffer.capacity())).chain(windows);
        let resident = ground.physical_bytes(&places.collect::<Vec<_>>());
        assert!(resident.abs_diff(64 * MIB) <= MIB, "{}: {resident} bytes resident, by their share", ground.name);
    }
}

#[test]
fn a_sealed_prefix_can_be_written_nowhere() {
    for ground in all_sharing_grounds() {
        let bytes = 2 * ground.granule;
        let mut prefix = ground.host.prefix(&ground.backing, &PrefixSpec::new(bytes)).unwrap();
        let window = prefix.base(0).unwrap();
        prefix.paint(0, 0, 8);
        assert_eq!(ground.open_bytes(window, bytes), bytes, "{}", ground.name);
        let prefix = prefix.seal().unwrap();
        let mut buffer = buffer(&ground);
        buffer.map_prefix(&prefix).unwrap();
        assert_eq!(prefix.base(0), Some(window), "{}: the window stays", ground.name);
        let open = ground.open_bytes(window, bytes) + ground.open_bytes(buffer.base(), bytes);
        assert_eq!(open, 0, "{}", ground.name);
        assert!(is_all(&prefix.seen(0), 8) && is_all(&buffer.seen(0), 8), "{}", ground.name);
    }
}

#[test]
fn a_prefix_of_another_backing_or_host_is_refused_and_nothing_is_mapped() {
    for (ground, other) in all_sharing_grounds().zip(all_sharing_grounds()) {
        let foreign = sealed(&other, 1, ground.granule, 1);
        let mut buffer = ground.host.buffer_set(&ground.backing, 1, &BufferSpec::new(MIB)).unwrap();
        for error in [buffer.mapping_cost(&[foreign.whole()]).unwrap_err(), buffer.map_prefix(&foreign).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::ForeignPrefix, "{}: {error}", ground.name);
            assert!(error.to_string().contains("of another host made it"), "{}: {error}", ground.name);
        }
        assert_eq!((buffer.len(), buffer.shared(), foreign.holders()), (0, 0, 1), "{}", ground.name);
    }
}

#[test]
fn a_prefix_that_does_not_fit_the_buffer_is_refused_and_the_buffer_still_grows() {
    for ground in all_sharing_grounds() {
        let granule = ground.granule;
        let pair = sealed(&ground, 2, 2 * granule, 1);
        let mut single = ground.host.buffer_set(&ground.backing, 1, &BufferSpec::new(MIB)).unwrap();
        assert_eq!(single.map_prefix(&pair).unwrap_err().kind(), ErrorKind::InvalidRequest, "{}", ground.name);
        let mut small = ground.host.buffer_set(&ground.backing, 2, &BufferSpec::new(granule)).unwrap();
        assert_eq!(small.map_prefix(&pair).unwrap_err().kind(), ErrorKind::CapacityExceeded, "{}", ground.name);
        for set in [&mut single, &mut small] {
            set.grow_to(granule).unwrap();
            assert!(is_all(&set.seen(0), 0), "{}", ground.name);
        }
        for (offset, bytes) in [(0, 0), (1, granule), (0, granule + 1), (granule, 2 * granule), (u64::MAX, granule)] {
            assert_eq!(pair.part(offset, bytes).unwrap_err().kind(), ErrorKind::InvalidRequest, "{offset} {bytes}");
        }
    }
}

#[test]
fn a_prefix_that_could_never_be_made_is_refused_and_charges_nothing() {
    for ground in all_sharing_grounds() {
        for (planes, bytes) in [(0, MIB), (1, 0), (1, ground.granule + 1), (usize::MAX, MIB), (2, u64::MAX / 2 + 1)] {
            let spec = PrefixSpec::new(bytes).planes(planes);
            let error = ground.host.prefix(&ground.backing, &spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{}: {planes} {bytes}: {error}", ground.name);
        }
        let error = ground.host.prefix(&ground.backing, &PrefixSpec::new(LIMIT + MIB)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{}: {error}", ground.name);
        assert_eq!(ground.used(), 0, "{}", ground.name);
    }
}

/// Seen elsewhere: a prefix that was built from recycled memory reported that it owned nothing.
#[test]
fn a_prefix_of_recycled_memory_owns_what_it_holds_and_shows_nothing_of_it() {
    for ground in all_sharing_grounds() {
        let bytes = 4 * ground.granule;
        let spec = BufferSpec::new(MIB).holder(HolderId::new(1));
        let mut before = ground.host.buffer(&ground.backing, &spec).unwrap();
        before.grow_to(bytes).unwrap();
        before.paint(0, 0, 0xaa);
        drop(before);
        let parked = ground.used();
        let spec = PrefixSpec::new(bytes).holder(HolderId::new(2));
        let prefix = ground.host.prefix(&ground.backing, &spec).unwrap();
        assert!(is_all(&prefix.seen(0), 0), "{}: another holder's bytes", ground.name);
        assert_eq!(prefix.owned_bytes(), bytes, "{}", ground.name);
        assert_eq!(prefix.newly_owned_bytes(), bytes - parked, "{}", ground.name);
        assert_eq!(ground.used(), bytes, "{}", ground.name);
    }
}

#[test]
fn a_granule_never_shows_one_holders_bytes_to_another() {
    for ground in all_grounds() {
        let (granule, granules) = (ground.granule, 16);
        let of = |holder: u64| BufferSpec::new(4 * MIB).holder(HolderId::new(holder));
        for holder in 1..6 {
            let mut buffer = ground.host.buffer(&ground.backing, &of(holder)).unwrap();
            for granules in [3, granules, 5, granules] {
                buffer.shrink_to(0).unwrap();
                buffer.grow_to(granules * granule).unwrap();
                let mark = u8::try_from(holder).unwrap();
                let own = |bytes: &[u8]| is_all(bytes, 0) || is_all(bytes, mark);
                let bytes = buffer.seen(0);
                assert!(
                    bytes.chunks(usize::try_from(granule).unwrap()).all(own),
                    "{}: another holder's bytes",
                    ground.name
                );
                buffer.paint(0, 0, mark);
            }
        }
        // Of nobody in particular, nobody sees anything.
        for _ in 0..2 {
            let mut buffer = ground.host.buffer(&ground.backing, &BufferSpec::new(4 * MIB)).unwrap();
            buffer.grow_to(granules * granule).unwrap();
            assert!(is_all(&buffer.seen(0), 0), "{}", ground.name);
            buffer.paint(0, 0, 0xff);
        }
    }
}

#[test]
fn a_backing_that_can_not_share_says_so_before_it_is_asked() {
    for ground in all_grounds().filter(|ground| !ground.shares()) {
        let error = ground.host.prefix(&ground.backing, &PrefixSpec::new(64 * KIB)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error}", ground.name);
        assert!(error.to_string().contains("offers no shared-mapping"), "{error}");
    }
}

#[test]
fn bytes_are_copied_in_and_out_and_never_into_a_prefix_or_past_the_end() {
    for ground in all_sharing_grounds() {
        let granule = ground.granule;
        let mut prefix = ground.host.prefix(&ground.backing, &PrefixSpec::new(granule).planes(2)).unwrap();
        prefix.write(1, 5, b"shared").unwrap();
        let prefix = prefix.seal().unwrap();
        let mut set = set(&ground, 2);
        set.map_prefix(&prefix).unwrap();
        set.grow_to(granule + 10).unwrap();
        set.write(1, granule + 1, b"private").unwrap();
        set.fill(0, granule, 10, 3).unwrap();
        let mut seen = [0; 8];
        set.read(1, 5, &mut seen[..6]).unwrap();
        assert_eq!(&seen[..6], b"shared", "{}", ground.name);
        set.read(1, granule + 1, &mut seen[..7]).unwrap();
        assert_eq!(&seen[..7], b"private", "{}", ground.name);
        prefix.read(1, 5, &mut seen[..6]).unwrap();
        set.read(0, granule + 9, &mut seen[..1]).unwrap();
        assert_eq!(&seen[..6], &[3, b'h', b'a', b'r', b'e', b'd'], "{}", ground.name);
        for (plane, offset, kind) in [
            (1, 5, ErrorKind::WrongState),
            (1, granule - 1, ErrorKind::WrongState),
            (1, granule + 4, ErrorKind::InvalidRequest),
            (1, u64::MAX, ErrorKind::InvalidRequest),
            (2, granule, ErrorKind::InvalidRequest),
        ] {
            let error = set.write(plane, offset, b"private").unwrap_err();
            assert_eq!(error.kind(), kind, "{}: {plane} {offset}: {error}", ground.name);
        }
        assert_eq!(set.read(0, granule + 4, &mut seen).unwrap_err().kind(), ErrorKind::InvalidRequest);
        assert_eq!(prefix.read(0, granule, &mut seen).unwrap_err().kind(), ErrorKind::InvalidRequest);
    }
}

#[test]
fn a_budget_that_is_used_up_is_told_in_figures_whoever_pays() {
    for ground in all_grounds() {
        let mut buffer = ground.host.buffer(&ground.backing, &BufferSpec::new(2 * LIMIT)).unwrap();
        buffer.grow_to(ground.granule).unwrap();
        let error = buffer.grow_to(LIMIT + 1).unwrap_err();
        let figures = error.tier_exhausted().unwrap_or_else(|| panic!("{}: no figures: {error}", ground.name));
        assert_eq!((figures.used_bytes, figures.limit_bytes), (ground.granule, LIMIT), "{}", ground.name);
        assert_eq!(figures.requested_bytes, LIMIT, "{}", ground.name);
    }
}
