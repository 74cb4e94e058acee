//! Answers that are not what was asked for, or more than can be true.

use crate::{CAPACITY, GRANULE, assert_error, with_liar};
use leasehold::{AllocationSpec, BufferSpec, ErrorKind};

#[test]
fn a_region_that_is_not_what_was_asked_for_is_refused_and_given_back() {
    for (lie, words) in [
        ("null-base", "it broke the contract: reserve answered the null address"),
        ("misaligned-base", "asked for an alignment of 4096"),
        ("wrong-region-id", "it broke the contract: reserve answered region "),
        ("wrong-region-size", "reserve answered a region of 69632 bytes, asked for 65536"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let error = scene.buffer(&liar).expect_err("the region is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!(scene.log.count("liar", "reserved"), 1);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_base_inside_a_live_region_is_refused_and_the_live_one_keeps_its_bytes() {
    with_liar("base-of-another", |scene| {
        let liar = scene.liar();
        let mut first = scene.buffer(&liar).expect("the first region is its own");
        first.grow_to(2 * GRANULE).expect("grows");
        first.as_mut_slice().expect("is memory of the host").fill(7);
        let used = scene.used();
        let error = scene.buffer(&liar).expect_err("the region is refused");
        let words = format!("inside the live range {}..", first.base());
        assert_error(&error, ErrorKind::OutOfService, &words);
        assert_eq!(scene.log.count("liar", "released region"), 1, "the refused region is given back");
        scene.assert_retired(&liar, &words);
        assert!(first.as_slice().expect("is memory of the host").iter().all(|byte| *byte == 7));
        assert_eq!(first.grow_to(CAPACITY).expect_err("no new work").kind(), ErrorKind::OutOfService);
        assert_eq!((first.len(), scene.used()), (2 * GRANULE, used));
        first.shrink_to(GRANULE).expect("what it holds is still taken back");
        first.close().expect("and given back");
        scene.assert_cleaned_up(&liar, &words);
    });
}

#[test]
fn an_allocation_that_is_not_what_was_asked_for_is_refused_and_given_back() {
    for (lie, words) in [
        ("wrong-allocation-id", "it broke the contract: allocate answered allocation "),
        ("small-allocation", "allocate answered 4095 bytes, asked for 4096"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let error = scene.host.allocate(&liar, &AllocationSpec::new(GRANULE)).expect_err("is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_commit_that_says_more_or_less_than_was_asked_is_undone() {
    for (lie, words) in [
        ("owned-more", "commit answered 12288 bytes newly owned, asked for 8192"),
        ("owned-less", "commit answered 4096 bytes newly owned, asked for 8192"),
        ("mapped-more", "commit answered 12288 bytes newly mapped, asked for 8192"),
        ("mapped-less", "commit answered 4096 bytes newly mapped, asked for 8192"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let mut buffer = scene.buffer(&liar).expect("is admitted");
            let error = buffer.grow_to(2 * GRANULE).expect_err("the answer is refused");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!((buffer.len(), buffer.committed(), scene.used()), (0, 0, 0));
            assert_eq!(scene.log.count("liar", "decommitted 8192 bytes"), 1, "what it took it gave back");
            drop(buffer);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_cost_of_more_than_was_asked_takes_the_backing_out_of_service() {
    with_liar("cost-more", |scene| {
        let liar = scene.liar();
        let buffer = scene.host.buffer_set(&liar, 1, &BufferSpec::new(CAPACITY)).expect("is admitted");
        let error = buffer.growth_cost(2 * GRANULE).expect_err("the answer is refused");
        let words = "cost answered 8192 bytes mapped, 12288 owned, asked for 8192";
        assert_error(&error, ErrorKind::OutOfService, words);
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn nonsense_about_what_is_left_after_a_failed_decommit_counts_as_everything_left() {
    with_liar("nonsense-left", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(4 * GRANULE).expect("grows");
        let error = buffer.shrink_to(GRANULE).expect_err("the decommit fails");
        assert_error(&error, ErrorKind::Backing, "told to fail; 16384 of 16384 bytes stay charged");
        // All that may be there stays charged; only what was to stay can be used.
        assert_eq!((buffer.len(), buffer.committed(), scene.used()), (GRANULE, GRANULE, 4 * GRANULE));
        buffer.close().expect("the release is right");
        let words = "committed_bytes answered 12345 after a failed decommit from 16384 to 4096 in granules of 4096";
        scene.assert_cleaned_up(&liar, words);
    });
}

#[test]
fn a_decommit_that_says_more_than_was_asked_refunds_what_is_really_gone() {
    with_liar("decommit-owned-more", |scene| {
        let liar = scene.liar();
        let mut buffer = scene.buffer(&liar).expect("is admitted");
        buffer.grow_to(4 * GRANULE).expect("grows");
        let error = buffer.shrink_to(GRANULE).expect_err("the answer is refused");
        let words = "decommit answered 16384 bytes no longer owned, asked for 12288";
        assert_error(&error, ErrorKind::OutOfService, words);
        assert_eq!((buffer.len(), buffer.committed(), scene.used()), (GRANULE, GRANULE, GRANULE));
        drop(buffer);
        scene.assert_cleaned_up(&liar, words);
    });
}
