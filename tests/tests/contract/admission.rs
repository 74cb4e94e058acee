//! Which backings are let in: one that keeps the contract, one that could never be used, one that offers a part.

use crate::{CAPACITY, GRANULE, assert_error, with_liar};
use leasehold::{AllocationSpec, BackingState, BufferSpec, ErrorKind, Stage};
use leasehold_tests::plugins::{self, Registry};

#[test]
fn a_liar_that_tells_no_lie_serves_like_any_other() {
    with_liar("none", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(3 * GRANULE).expect("grows");
        buffer.as_mut_slice().expect("is memory of the host").fill(7);
        buffer.shrink_to(GRANULE).expect("shrinks");
        buffer.grow_to(2 * GRANULE).expect("grows");
        let bytes = buffer.as_slice().expect("is memory of the host");
        let (kept, fresh) = bytes.split_at(4096);
        assert!(kept.iter().all(|byte| *byte == 7) && fresh.iter().all(|byte| *byte == 0));
        let allocation = scene.host.allocate(&liar, &AllocationSpec::new(100)).expect("allocates");
        assert_eq!(scene.used(), 3 * GRANULE);
        drop((buffer, allocation));
        assert_eq!((scene.used(), scene.state()), (0, BackingState::Ready));
        scene.assert_all_given_back();
        scene.assert_others_work();
    });
}

#[test]
fn a_backing_that_could_never_be_used_is_rejected_and_destroyed() {
    for (lie, stage, words) in [
        ("panic-in-create", Stage::Create, "the plugin panicked: told to: PanicInCreate"),
        ("panic-in-describe", Stage::Discover, "the plugin panicked: told to: PanicInDescribe; report this"),
        ("panic-in-discovery", Stage::Discover, "the plugin panicked: told to: PanicInDiscovery; report this"),
        ("panic-in-granularity", Stage::Discover, "the plugin panicked: told to: PanicInGranularity; report this"),
        ("granularity-zero", Stage::Discover, "its granularity is 0, which is not a power of two; report this"),
        ("granularity-three", Stage::Discover, "its granularity is 3, which is not a power of two; report this"),
    ] {
        with_liar(lie, |scene| {
            let BackingState::Rejected { stage: at, reason } = scene.state() else { panic!("{:?}", scene.state()) };
            assert_eq!(at, stage, "{reason}");
            assert!(reason.starts_with(words), "{reason}");
            assert_eq!((scene.log.count("liar", "created"), scene.log.count("liar", "destroyed")), (1, 1));
            let error = scene.host.backing("liar").expect_err("it is not handed out");
            assert_error(&error, ErrorKind::NoBackingFits, &format!("backing \"liar\" is rejected: {reason}"));
            assert_eq!(scene.host.snapshot().domains.len(), 1, "no books are opened for what was rejected");
            scene.assert_others_work();
        });
    }
}

#[test]
fn a_backing_that_shares_but_does_not_reserve_serves_what_it_can() {
    for (door, library) in plugins::doors("leasehold_rogue") {
        println!("over the door {door}");
        let host = Registry::new().backing("sharing", &library, "backing = \"shared-only\"").host();
        let sharing = host.backing("sharing").expect("is ready");
        assert_eq!(sharing.capabilities().names(), ["allocate", "shared-mapping"]);
        let error = host.buffer(&sharing, &BufferSpec::new(CAPACITY)).expect_err("it can't reserve");
        assert_error(&error, ErrorKind::Unsupported, "offers no virtual-backing; choose a backing that does");
        let allocation = host.allocate(&sharing, &AllocationSpec::new(100)).expect("allocates");
        assert_eq!(allocation.as_slice().expect("is memory of the host"), [0; 100]);
        let state = host.backings().into_iter().next().expect("is reported").state;
        assert_eq!(state, BackingState::Ready, "what it does not offer is no fault");
    }
}
