//! The kernel refuses the k-th range of a call, for every k: nothing has changed.

use super::memory::{holds, is_child, mappings, mark, resident, tear_out};
use super::*;
use leasehold_plugin_api::ErrorKind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PLANES: u64 = 6;

#[test]
fn a_commit_that_fails_at_plane_k_changes_nothing_for_every_k() {
    for populate in [false, true] {
        for failing in 0..PLANES {
            let backing = backing(&HostMmapOptions { populate, ..HostMmapOptions::default() });
            let bases: Vec<_> = (0..PLANES).map(|id| reserve(&backing, id, 4 * MIB).base).collect();
            let before: Vec<_> = (0..PLANES).map(|id| range(id, 0, MIB)).collect();
            backing.commit(&before).unwrap();
            bases.iter().for_each(|base| mark(*base, 0, MIB, 7));
            // A hole in the last page of the failing range: mprotect gets that far and answers ENOMEM.
            let failing_base = bases[usize::try_from(failing).unwrap()];
            tear_out(failing_base, 2 * MIB - PAGE);

            let more: Vec<_> = (0..PLANES).rev().map(|id| range(id, MIB, MIB)).collect();
            let error = backing.commit(&more).unwrap_err();
            assert_eq!((error.kind(), error.native_code()), (ErrorKind::OutOfMemory, Some(12)));
            for (id, base) in (0..).zip(&bases) {
                assert_eq!((committed(&backing, id), resident(*base, 0, 4 * MIB)), (MIB, MIB));
                assert!(holds(*base, 0, MIB, 7));
                assert!(mappings(*base, 4 * MIB) <= 2);
            }
            backing.commit(&more).unwrap();
            assert!(bases.iter().all(|base| holds(*base, MIB, MIB, 0)));
        }
    }
}

#[test]
fn a_commit_past_the_data_limit_says_out_of_memory_and_works_once_there_is_room() {
    if !is_child("failures::a_commit_past_the_data_limit_says_out_of_memory_and_works_once_there_is_room") {
        return;
    }
    let backing = in_mib();
    for id in 0..PLANES {
        reserve(&backing, id, 1 << 30);
    }
    let ranges: Vec<_> = (0..PLANES).map(|id| range(id, 0, 256 * MIB)).collect();
    let maximum = getrlimit(Resource::Data).maximum;
    let limit = |bytes| setrlimit(Resource::Data, Rlimit { current: bytes, maximum }).unwrap();
    for room in 0..PLANES {
        limit(Some(data_bytes() + room * 256 * MIB + 64 * MIB));
        let error = backing.commit(&ranges).unwrap_err();
        limit(maximum);
        assert_eq!(
            error.message(),
            "no memory for 268435456 bytes: mprotect failed: ENOMEM (12); free memory, or raise the limit: \
             vm.overcommit_memory, RLIMIT_DATA, vm.max_map_count"
        );
        assert_eq!((error.kind(), error.requested_bytes()), (ErrorKind::OutOfMemory, 256 * MIB));
        assert!((0..PLANES).all(|id| committed(&backing, id) == 0));
    }
    assert_eq!(backing.commit(&ranges), Ok(both(PLANES * 256 * MIB)));
}

/// Writable private bytes of this process, which `RLIMIT_DATA` counts.
fn data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmData:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * KIB
}

#[test]
fn a_decommit_that_names_something_uncommitted_changes_nothing() {
    let backing = in_mib();
    let base = reserve(&backing, 1, 8 * MIB).base;
    commit(&backing, 1, 0, 4 * MIB).unwrap();
    mark(base, 0, 4 * MIB, 7);
    assert_eq!(decommit(&backing, 1, 5 * MIB, MIB).unwrap_err().kind(), ErrorKind::NotCommitted);
    let mixed = [range(1, 3 * MIB, MIB), range(1, 4 * MIB, MIB)];
    assert_eq!(backing.decommit(&mixed).unwrap_err().kind(), ErrorKind::NotCommitted);
    assert_eq!((committed(&backing, 1), resident(base, 0, 8 * MIB)), (4 * MIB, 4 * MIB));
}
