//! What a buffer may be asked for: sizes, alignments and lengths that overflow.

use crate::{PAGE, faulty, used};
use leasehold::{BufferSpec, ErrorKind, GrowthPolicy};
use leasehold_tests::rig::{LIMIT, MIB, host_rigs};

#[test]
fn a_spec_that_could_never_be_granted_is_refused_and_leaves_nothing() {
    for (faults, host, backing) in faulty(LIMIT) {
        for (spec, planes, kind) in hopeless(PAGE) {
            let error = host.buffer_set(&backing, planes, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{spec:?}, {planes} planes: {error}");
            assert_eq!((faults.held().regions, used(&host)), (0, 0), "{spec:?}");
        }
    }
    for rig in host_rigs() {
        for (spec, planes, kind) in hopeless(rig.granule) {
            let error = rig.host.buffer_set(&rig.backing, planes, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{}: {spec:?}, {planes} planes: {error}", rig.name);
        }
    }
}

/// Specs that could never be granted, with their planes.
fn hopeless(granule: u64) -> [(BufferSpec, usize, ErrorKind); 13] {
    let spec = |capacity| BufferSpec::new(capacity);
    let step = |bytes| spec(MIB).growth(GrowthPolicy::Step(bytes));
    [
        (spec(0), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX - granule + 2), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX - granule + 1), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 63), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 47), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 46), 3, ErrorKind::AddressSpaceExhausted),
        (spec(MIB).align(0), 1, ErrorKind::InvalidRequest),
        (spec(MIB).align(3), 1, ErrorKind::InvalidRequest),
        (spec(MIB).align(1 << 47), 1, ErrorKind::AddressSpaceExhausted),
        (spec(MIB).align(1 << 63), 1, ErrorKind::AddressSpaceExhausted),
        (spec(MIB), 0, ErrorKind::InvalidRequest),
        (step(0), 1, ErrorKind::InvalidRequest),
    ]
}

#[test]
fn a_large_alignment_is_kept() {
    for rig in host_rigs() {
        let spec = BufferSpec::new(MIB).align(1 << 40);
        let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
        assert!(buffer.base().is_aligned_to(1 << 40), "{}: {}", rig.name, buffer.base());
        buffer.grow_to(MIB).unwrap();
    }
}

#[test]
fn lengths_that_overflow_are_refused_by_the_capacity() {
    for policy in [GrowthPolicy::Exact, GrowthPolicy::Step(u64::MAX), GrowthPolicy::Geometric] {
        for (_, host, backing) in faulty(LIMIT) {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(policy)).unwrap();
            for len in [MIB + 1, u64::MAX - PAGE, u64::MAX] {
                let error = buffer.grow_to(len).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::CapacityExceeded, "{policy:?}, {len}: {error}");
            }
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (0, 0, 0), "{policy:?}");
            buffer.grow_to(1).unwrap();
            buffer.shrink_to(u64::MAX).unwrap();
            assert_eq!(buffer.len(), 1, "{policy:?}: shrinking never grows");
        }
    }
}
