//! What runs on the device by itself: zeroing and copies, which must be over before their memory goes, and graphs that others
//! capture, which must not notice.

use super::setup::{NAMES, UNIT, host, simulator, used};
use leasehold::{BufferSpec, ErrorKind, HolderId, PrefixSpec};
use leasehold_tests::cuda::Lasting;

#[test]
fn a_growth_that_fails_takes_nothing_away_while_it_is_being_zeroed() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        // The third plane fails, once two are being zeroed; and the wait for all of them.
        for (function, nth) in [("cuMemMap", 7), ("cuMemSetAccess", 3), ("cuStreamSynchronize", 1)] {
            let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(16 * UNIT)).unwrap();
            simulator.plan(function, nth, Lasting::Once, 2);
            let error = set.grow_to(3 * UNIT).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{name}, {function}: {error}");
            assert_eq!((set.owned_bytes(), simulator.books().mappings.len()), (0, 0), "{name}, {function}");
            set.grow_to(3 * UNIT).unwrap();
            set.close().unwrap();
        }
        // Nobody can tell whether the zeroing is over: what it may write to stays, until that is known.
        let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(16 * UNIT)).unwrap();
        simulator.plan("cuStreamSynchronize", 1, Lasting::ForEver, 2);
        set.grow_to(3 * UNIT).unwrap_err();
        assert_eq!(simulator.books().mappings.len(), 12, "{name}");
        assert!(used(&host) >= 12 * UNIT, "{name}: and it stays charged");
        simulator.heal();
        set.grow_to(3 * UNIT).unwrap();
        drop(set);
        assert_eq!(host.reap().remaining, 0, "{name}");
        host.trim(&backing, u64::MAX).unwrap();
        assert_eq!(used(&host), 0, "{name}");
    }
    simulator.finish();
}

#[test]
fn memory_whose_copy_may_still_run_is_not_unmapped_before_that_is_over() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(4 * UNIT)).unwrap();
        set.grow_to(2 * UNIT).unwrap();
        for lasting in [Lasting::Once, Lasting::ForEver] {
            simulator.plan("cuStreamSynchronize", 1, lasting, 2);
            let error = set.fill(0, 0, 2 * UNIT, 1).unwrap_err();
            assert!(error.to_string().contains("not copied, or not all of them"), "{error}");
            assert_eq!(set.shrink_to(UNIT).is_ok(), lasting == Lasting::Once, "{name}");
            simulator.heal();
            set.grow_to(2 * UNIT).unwrap();
        }
        set.write(0, 0, &[]).unwrap();
        set.close().unwrap();
    }
    simulator.finish();
}

#[test]
fn whoever_captures_a_graph_does_not_notice_growth_sharing_and_copies_beside_it() {
    let simulator = simulator();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        let spec = BufferSpec::new(16 * UNIT).holder(HolderId::new(1));
        let mut set = host.buffer_set(&backing, 2, &spec).unwrap();
        let prefix = (name == "cuda-pool").then(|| {
            let mut prefix = host.prefix(&backing, &PrefixSpec::new(2 * UNIT).planes(2)).unwrap();
            prefix.write(1, 0, b"shared").unwrap();
            prefix.seal().unwrap()
        });
        simulator.while_capturing(|| {
            if let Some(prefix) = &prefix {
                set.map_prefix(prefix).unwrap();
            }
            let front = set.shared();
            set.grow_to(front + 3 * UNIT).unwrap();
            set.fill(0, front, UNIT, 7).unwrap();
            set.write(1, front + UNIT, b"private").unwrap();
            let mut seen = [0; 7];
            set.read(1, front + UNIT, &mut seen).unwrap();
            assert_eq!(&seen, b"private");
            set.shrink_to(front + UNIT).unwrap();
            set.clear().unwrap();
            set.close().unwrap();
            drop(prefix);
            drop((backing, host));
        });
    }
    simulator.finish();
}

#[test]
fn a_prefix_is_not_sealed_under_a_graph_that_is_captured() {
    let simulator = simulator();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = host.prefix(&backing, &PrefixSpec::new(UNIT)).unwrap();
    simulator.plan("cuCtxSynchronize", 1, Lasting::Once, 900);
    let refused = prefix.seal().unwrap_err();
    assert!(refused.to_string().contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"), "{refused}");
    refused.prefix.seal().unwrap().close().unwrap();
    drop((host, backing));
    simulator.finish();
}
