//! What happens at the limits of a process: no mappings left, small files only, a write to what is sealed.

use super::memory::{child, fill, holds, mappings, take_last_mappings};
use super::*;
use crate::frames::SEGMENT_STRIDE;
use crate::run::Run;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::ExitStatusExt;

#[test]
fn a_write_to_what_is_sealed_faults() {
    let Some(status) = child("limits::a_write_to_what_is_sealed_faults") else {
        let (pool, _) = pool(&HostPoolOptions::default());
        let window = create(&pool, 1, MIB, ONE).unwrap().window;
        fill(window, 0, MIB, 7);
        pool.seal(PrefixId::new(1)).unwrap();
        assert!(holds(window, 0, MIB, 7));
        fill(window, MIB / 2, 1, 8);
        return;
    };
    assert_eq!(status.signal(), Some(11), "SIGSEGV: {status}");
}

#[test]
fn a_process_that_may_write_small_files_alone_has_small_segments() {
    if let Some(status) = child("limits::a_process_that_may_write_small_files_alone_has_small_segments") {
        return assert!(status.success(), "{status}");
    }
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum }).unwrap();
    limit(3 * MIB);
    let (pool, books) = pool(&HostPoolOptions::default());
    let base = reserve(&pool, 1, 64 * MIB, ONE).base;
    commit(&pool, 1, 0, 10 * MIB).unwrap();
    fill(base, 0, 10 * MIB, 7);
    assert!(holds(base, 0, 10 * MIB, 7));
    release(&pool, 1);
    assert_eq!((pool.trim(u64::MAX), books.charged()), (Ok(10 * MIB), 0));
    limit(GRANULE - 1);
    let error = HostPool::new(&HostPoolOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.message(),
        "no pool: a file may have 65535 bytes, and one granule has 65536; raise RLIMIT_FSIZE (ulimit -f), or write a \
         smaller granule"
    );
}

#[test]
fn a_process_without_descriptors_is_told_what_the_pool_needs() {
    if let Some(status) = child("limits::a_process_without_descriptors_is_told_what_the_pool_needs") {
        return assert!(status.success(), "{status}");
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum }).unwrap();
    let error = HostPool::new(&HostPoolOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.native_code()), (ErrorKind::Unavailable, Some(24)));
    assert_eq!(
        error.message(),
        "no pool: memfd_create failed: EMFILE (24); the pool needs memfd_create (Linux 3.17), /proc mounted, and two \
         free descriptors (ulimit -n)"
    );
}

#[test]
fn freeing_works_when_the_kernel_has_no_mappings_left() {
    if let Some(status) = child("limits::freeing_works_when_the_kernel_has_no_mappings_left") {
        return assert!(status.success(), "{status}");
    }
    let (pool, books) = pool(&parking(0));
    let base = reserve(&pool, 1, 8 * MIB, ONE).base;
    commit(&pool, 1, 0, 3 * MIB).unwrap();
    fill(base, 0, 3 * MIB, 7);
    // Three neighbours, whose inaccessible space the kernel holds as one mapping.
    let others = [2, 3, 4].map(|id| reserve(&pool, id, 4 * MIB, ONE).base);
    for (id, base) in (2..).zip(others) {
        commit(&pool, id, MIB, MIB).unwrap();
        fill(base, MIB, MIB, 7);
    }
    take_last_mappings();
    let error = commit(&pool, 1, 5 * MIB, MIB).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted);
    assert_eq!(
        error.message(),
        "1048576 bytes can't be mapped: mmap(MAP_SHARED, MAP_FIXED) failed: ENOMEM (12); \
         unmap others first, or raise vm.max_map_count"
    );
    assert_eq!(books.charged(), 6 * MIB);

    // The middle of a mapping can't be cut out; its memory goes all the same.
    assert_eq!(decommit(&pool, 1, MIB, MIB), Ok(change(MIB, MIB)));
    assert_eq!((books.charged(), pool.pool.resident_bytes(), committed(&pool, 1)), (5 * MIB, 5 * MIB, 2 * MIB));
    assert!(holds(base, 0, MIB, 7) && holds(base, 2 * MIB, MIB, 7));
    for id in [3, 1, 2, 4] {
        match pool.release(ReleaseTarget::Region(RegionId::new(id))) {
            ReleaseOutcome::Complete => {}
            ReleaseOutcome::Quarantined { remaining_bytes: 0, .. } => {
                assert!(pool.committed_bytes(RegionId::new(id)).is_err())
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    assert_eq!((books.charged(), pool.pool.resident_bytes()), (0, 0));
    // What was quarantined can be released again, now that there is room.
    for id in 1..5 {
        let outcome = pool.release(ReleaseTarget::Region(RegionId::new(id)));
        let is_gone = matches!(&outcome, ReleaseOutcome::Failed(error) if error.kind() == ErrorKind::UnknownId);
        assert!(is_gone || outcome == ReleaseOutcome::Complete, "{outcome:?}");
    }
    assert_eq!(mappings(base, 8 * MIB).len(), 0);
}

/// What is mapped past the end of its file kills whoever touches it.
#[test]
fn frames_that_are_not_all_in_one_segment_are_refused() {
    let store = Store::with_segments_of(GRANULE, 4 * GRANULE).unwrap();
    store.open_another().unwrap();
    store.punch(Run::new(0, 4)).unwrap();
    for run in [Run::new(0, 5), Run::new(4, 1), Run::new(SEGMENT_STRIDE, 1)] {
        assert_eq!(store.punch(run).unwrap_err().errno, Errno::INVAL, "{run:?}");
    }
}
