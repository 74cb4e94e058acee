//! Buffers that grow, shrink, come and go on several threads.

use crate::PAGE;
use leasehold::{AllocationSpec, BufferSpec, PrefixSpec};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Faults, Strikes, Under};
use leasehold_tests::rig::{LIMIT, MIB, host_rigs};

#[test]
fn two_buffers_grow_and_shrink_on_two_threads() {
    for rig in host_rigs() {
        let work = |mark: u8| {
            let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(4 * MIB)).unwrap();
            for round in 1..100 {
                buffer.grow_to(round * 37 * 1000).unwrap();
                buffer.as_mut_slice().unwrap().fill(mark);
                buffer.shrink_to(round * 1000).unwrap();
                assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == mark), "{}", rig.name);
            }
            buffer
        };
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| work(1));
            let right = work(2);
            (left.join().unwrap(), right)
        });
        assert_eq!(rig.used(), left.committed() + right.committed(), "{}", rig.name);
    }
}

/// The system hands an address out again the moment that it is given back: another thread's region may have it before
/// this thread's release has returned.
#[test]
fn regions_that_threads_make_and_drop_never_count_as_overlapping() {
    for rig in host_rigs() {
        let work = |round: u64| {
            let spec = BufferSpec::new(64 * PAGE);
            let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
            buffer.grow_to((1 + round % 8) * PAGE).unwrap();
            buffer.as_mut_slice().unwrap().fill(1);
            drop(rig.host.allocate(&rig.backing, &AllocationSpec::new(PAGE)).unwrap());
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..400).for_each(work));
            }
        });
        assert_eq!(rig.host.backings()[0].state, leasehold::BackingState::Ready, "{}", rig.name);
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

/// The same when a backing ends, and unmaps what it could not release before.
#[test]
fn a_backing_that_ends_with_regions_in_quarantine_makes_nobody_elses_count_as_overlapping() {
    let end_one = |under: Under| {
        let faults = Faults::new();
        let host = under.host(&faults, LIMIT);
        let backing = host.backing("faulty").unwrap();
        let mut set = host.buffer_set(&backing, 8, &BufferSpec::new(64 * PAGE)).unwrap();
        if under.shares() {
            // Held by what is in quarantine alone.
            let prefix = host.prefix(&backing, &PrefixSpec::new(8 * PAGE).planes(8)).unwrap().seal().unwrap();
            set.map_prefix(&prefix).unwrap();
        }
        faults.plan(Call::Release, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        drop(set);
    };
    for rig in host_rigs() {
        let reserve = || drop(rig.host.buffer(&rig.backing, &BufferSpec::new(64 * PAGE)).unwrap());
        std::thread::scope(|scope| {
            for under in Under::EXACT {
                scope.spawn(move || (0..200).for_each(|_| end_one(under)));
                scope.spawn(|| (0..2000).for_each(|_| reserve()));
            }
        });
        assert_eq!(rig.host.backings()[0].state, leasehold::BackingState::Ready, "{}", rig.name);
    }
}
