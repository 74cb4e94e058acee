//! Random operations on several sets and allocations, against a plain model of what they hold.

use leasehold_tests::fault::Under;
use leasehold_tests::model::{broken, play, sound};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_agree_with_a_plain_model(operations in prop::collection::vec(sound(), 1..60)) {
        play(Under::MMAP, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_where_the_backing_charges(operations in prop::collection::vec(sound(), 1..60)) {
        play(Under::CHARGING_MMAP, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_over_a_pool(operations in prop::collection::vec(sound(), 1..60)) {
        play(Under::POOL, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails(operations in prop::collection::vec(broken(sound()), 1..60)) {
        play(Under::MMAP, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails_where_the_backing_charges(
        operations in prop::collection::vec(broken(sound()), 1..60),
    ) {
        play(Under::CHARGING_MMAP, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails_over_a_pool(
        operations in prop::collection::vec(broken(sound()), 1..60),
    ) {
        play(Under::POOL, &operations);
    }
}
