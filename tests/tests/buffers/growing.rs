//! Growing and shrinking: addresses, bytes and charges stay right, whatever the steps.

use crate::{PAGE, faulty, used};
use leasehold::{AllocationSpec, BufferSpec, ErrorKind, GrowthPolicy};
use leasehold_tests::fault::Call;
use leasehold_tests::observe::{mappings_in, resident_bytes};
use leasehold_tests::rig::{KIB, LIMIT, MIB, host_rigs};

#[test]
fn a_buffer_grown_in_one_step_shrinks_and_grows_again() {
    for rig in host_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        let base = buffer.base();
        buffer.grow_to(4 * MIB).unwrap();
        buffer.as_mut_slice().unwrap().fill(0xAB);
        buffer.shrink_to(MIB).unwrap();
        assert_eq!((resident_bytes(base, 8 * MIB), rig.used()), (MIB, MIB), "{}: 3 MiB left", rig.name);
        buffer.grow_to(4 * MIB).unwrap();
        assert_eq!((buffer.base(), rig.used()), (base, 4 * MIB), "{}", rig.name);
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(1 << 20);
        assert!(kept.iter().all(|byte| *byte == 0xAB), "{}: what stayed is as it was", rig.name);
        assert!(fresh.iter().all(|byte| *byte == 0), "{}: what came back reads as zero", rig.name);
    }
}

#[test]
fn a_buffer_grown_in_steps_shrinks_across_their_edges() {
    for rig in host_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        for mib in [1, 2, 4, 8] {
            buffer.grow_to(mib * MIB).unwrap();
            buffer.as_mut_slice().unwrap().fill(1);
        }
        buffer.shrink_to(3 * MIB).unwrap();
        let left = (buffer.committed(), rig.used(), resident_bytes(buffer.base(), 8 * MIB));
        assert_eq!(left, (3 * MIB, 3 * MIB, 3 * MIB), "{}", rig.name);
        buffer.grow_to(8 * MIB).unwrap();
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(3 << 20);
        assert!(kept.iter().all(|byte| *byte == 1) && fresh.iter().all(|byte| *byte == 0), "{}", rig.name);
    }
}

#[test]
fn growing_a_token_at_a_time_costs_the_same_at_every_step() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(500 * MIB)).unwrap();
        let before = faults.counts();
        let steps = 500 * MIB / PAGE;
        for step in 1..=steps {
            buffer.grow_to(step * PAGE).unwrap();
            assert_eq!(faults.count(Call::Commit), step, "one call a step");
        }
        let mut expected = before;
        expected.insert(Call::Commit, steps);
        assert_eq!(faults.counts(), expected, "no other call, whatever the length");
        assert_eq!(
            mappings_in(buffer.base(), buffer.capacity()).len(),
            1,
            "and the kernel's list is as short as at first"
        );
    }
}

#[test]
fn growing_within_what_is_committed_calls_nobody() {
    for (faults, host, backing) in faulty(LIMIT) {
        let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(64 * KIB));
        let mut buffer = host.buffer(&backing, &spec).unwrap();
        buffer.grow_to(1).unwrap();
        let before = faults.counts();
        for len in [2, PAGE, PAGE + 1, 64 * KIB] {
            buffer.grow_to(len).unwrap();
        }
        assert_eq!((faults.counts(), buffer.len(), used(&host)), (before, 64 * KIB, 64 * KIB));
    }
}

#[test]
fn a_size_that_is_no_multiple_of_the_granule_keeps_logical_and_physical_apart() {
    for rig in host_rigs() {
        let (granule, size) = (rig.granule, rig.granule + 2816);
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(size)).unwrap();
        buffer.grow_to(size).unwrap();
        let seen = (buffer.len(), buffer.committed(), buffer.capacity());
        assert_eq!(seen, (size, 2 * granule, 2 * granule), "{}", rig.name);
        assert_eq!(buffer.as_slice().unwrap().len(), usize::try_from(size).unwrap(), "{}", rig.name);
        let allocation = rig.host.allocate(&rig.backing, &AllocationSpec::new(size)).unwrap();
        let seen = (allocation.len(), allocation.owned_bytes(), rig.used());
        assert_eq!(seen, (size, 2 * granule, 4 * granule), "{}", rig.name);
        drop((buffer, allocation));
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

#[test]
fn the_planes_of_a_set_grow_together_and_keep_their_own_bytes() {
    for rig in host_rigs() {
        let mut set = rig.host.buffer_set(&rig.backing, 5, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(3 * rig.granule).unwrap();
        for plane in 0..5 {
            set.plane_mut(plane).unwrap().fill(u8::try_from(plane).unwrap() + 1);
        }
        set.grow_to(4 * rig.granule).unwrap();
        assert_eq!((set.owned_bytes(), rig.used()), (20 * rig.granule, 20 * rig.granule), "{}", rig.name);
        for plane in 0..5 {
            let (old, new) = set.plane(plane).unwrap().split_at(usize::try_from(3 * rig.granule).unwrap());
            assert!(old.iter().all(|byte| usize::from(*byte) == plane + 1), "{}", rig.name);
            assert!(new.iter().all(|byte| *byte == 0), "{}", rig.name);
        }
        assert_eq!(set.plane(5).unwrap_err().kind(), ErrorKind::InvalidRequest, "{}", rig.name);
        assert_eq!(set.base(5), None, "{}", rig.name);
    }
}

#[test]
fn a_buffer_that_shrinks_leaves_its_neighbours_bytes() {
    for rig in host_rigs() {
        let make = || rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        let mut buffers = [make(), make(), make()];
        for buffer in &mut buffers {
            buffer.grow_to(MIB).unwrap();
            buffer.as_mut_slice().unwrap().fill(4);
        }
        buffers[1].shrink_to(1).unwrap();
        for buffer in &buffers {
            assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 4), "{}", rig.name);
        }
    }
}
