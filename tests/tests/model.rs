//! Random operations on several sets and allocations, against a plain model of what they hold.

use leasehold_tests::fault::Books;
use leasehold_tests::model::{Under, broken, play, sound};
use proptest::prelude::*;

const BUFFERS_PAY: Under = Under::Mmap(|_| Books::OfTheBuffers);
const BACKING_PAYS: Under = Under::Mmap(Books::OfItsHost);
const POOL: Under = Under::Pool { park: 0 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_agree_with_a_plain_model(operations in prop::collection::vec(sound(), 1..60)) {
        play(BUFFERS_PAY, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_where_the_backing_charges(operations in prop::collection::vec(sound(), 1..60)) {
        play(BACKING_PAYS, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_over_a_pool(operations in prop::collection::vec(sound(), 1..60)) {
        play(POOL, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails(operations in prop::collection::vec(broken(sound()), 1..60)) {
        play(BUFFERS_PAY, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails_where_the_backing_charges(
        operations in prop::collection::vec(broken(sound()), 1..60),
    ) {
        play(BACKING_PAYS, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails_over_a_pool(
        operations in prop::collection::vec(broken(sound()), 1..60),
    ) {
        play(POOL, &operations);
    }
}
