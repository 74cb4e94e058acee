//! Random operations on sets, allocations, prefixes and a prefix cache, against a plain model of what they hold and who
//! holds it: over a pool that parks nothing, and over one that parks.

use leasehold_tests::fault::Under;
use leasehold_tests::model::{broken_sharing, play, sharing};
use proptest::prelude::*;

/// What the pool parks: less than the most that is in use, so that parked memory sometimes suffices and sometimes doesn't.
const PARKING_POOL: Under = Under::Pool { park: 64 << 10 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 320, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sharing_agrees_with_a_plain_model(operations in prop::collection::vec(sharing(), 1..60)) {
        play(Under::POOL, &operations.concat());
    }

    #[test]
    fn sharing_agrees_with_a_plain_model_where_memory_is_parked(operations in prop::collection::vec(sharing(), 1..60)) {
        play(PARKING_POOL, &operations.concat());
    }

    #[test]
    fn sharing_agrees_with_a_plain_model_whatever_fails(
        operations in prop::collection::vec(broken_sharing(), 1..60),
    ) {
        play(Under::POOL, &operations.concat());
    }

    #[test]
    fn sharing_agrees_with_a_plain_model_whatever_fails_where_memory_is_parked(
        operations in prop::collection::vec(broken_sharing(), 1..60),
    ) {
        play(PARKING_POOL, &operations.concat());
    }
}
