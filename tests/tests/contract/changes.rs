//! Answers and capabilities that change after creation.

use crate::{GRANULE, assert_error, with_liar};
use leasehold::ErrorKind;

#[test]
fn an_answer_that_changes_after_creation_takes_the_backing_out_of_service() {
    for (lie, words) in [
        ("granularity-changes", "its capabilities or granularity changed after creation"),
        ("capability-goes", "its capabilities or granularity changed after creation"),
        ("description-changes", "its description changed after creation"),
        ("accounting-changes", "its accounting changed after creation"),
        ("describe-panics-later", "the plugin panicked: told to: DescribePanicsLater"),
        ("discovery-panics-later", "the plugin panicked: told to: DiscoveryPanicsLater"),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let first = scene.buffer(&liar).expect("the answers change with the first region");
            let error = scene.buffer(&liar).expect_err("the second is not admitted");
            assert_error(&error, ErrorKind::OutOfService, words);
            assert_eq!(scene.log.count("liar", "reserved"), 1, "refused before anything is reserved");
            assert_eq!(scene.host.snapshot().domains.len(), 1, "no books are opened for what it says now");
            drop(first);
            scene.assert_cleaned_up(&liar, words);
        });
    }
}

#[test]
fn a_capability_that_goes_under_a_live_buffer_refuses_the_growth() {
    // Where it is missing, nothing was tried and nothing is charged. After a panic nobody can tell what was committed, so
    // it stays charged until the release.
    for (lie, words, used) in [
        ("capability-goes", "it no longer offers virtual-backing, as it did at first", 0),
        ("discovery-panics-later", "commit: the plugin panicked: told to: DiscoveryPanicsLater", GRANULE),
    ] {
        with_liar(lie, |scene| {
            let liar = scene.liar();
            let mut buffer = scene.buffer(&liar).expect("it goes with the first region");
            let error = buffer.grow_to(GRANULE).expect_err("can't grow");
            assert_eq!(error.kind(), ErrorKind::OutOfService, "{error}");
            assert_eq!((buffer.len(), buffer.committed(), scene.used()), (0, 0, used));
            buffer.close().expect("release is no capability's");
            scene.assert_cleaned_up(&liar, words);
        });
    }
}
