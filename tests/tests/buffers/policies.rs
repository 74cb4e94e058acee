//! Policies of growth: what each commits ahead, gives back, and costs.

use crate::{PAGE, faulty, used};
use leasehold::{BufferSpec, ErrorKind, GrowthPolicy};
use leasehold_tests::fault::Call;
use leasehold_tests::rig::{LIMIT, MIB, host_rigs};

#[test]
fn each_policy_commits_what_it_says() {
    for (faults, host, backing) in faulty(LIMIT) {
        let lens = [1, 4, 5, 9, 17, 30].map(|granules| granules * PAGE);
        let cases = [
            (GrowthPolicy::Exact, [1, 4, 5, 9, 17, 30], 6),
            (GrowthPolicy::Step(8 * PAGE), [8, 8, 8, 16, 24, 32], 4),
            (GrowthPolicy::Step(7 * PAGE + 1), [8, 8, 8, 16, 24, 32], 4),
            (GrowthPolicy::Geometric, [1, 4, 8, 16, 32, 32], 5),
        ];
        for (policy, committed, calls) in cases {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(32 * PAGE).growth(policy)).unwrap();
            let before = faults.count(Call::Commit);
            for (len, granules) in lens.into_iter().zip(committed) {
                buffer.grow_to(len).unwrap();
                assert_eq!((buffer.committed(), used(&host)), (granules * PAGE, granules * PAGE), "{policy:?}, {len}");
            }
            assert_eq!(faults.count(Call::Commit) - before, calls, "{policy:?}");
        }
    }
}

#[test]
fn a_step_that_does_not_fit_the_budget_falls_back_to_what_is_needed() {
    for policy in [GrowthPolicy::Step(8 * PAGE), GrowthPolicy::Geometric] {
        for (_, host, backing) in faulty(10 * PAGE) {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(64 * PAGE).growth(policy)).unwrap();
            buffer.grow_to(8 * PAGE).unwrap();
            buffer.grow_to(9 * PAGE).unwrap();
            assert_eq!((buffer.committed(), used(&host)), (9 * PAGE, 9 * PAGE), "{policy:?}");
            let error = buffer.grow_to(11 * PAGE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TierExhausted, "{policy:?}: {error}");
            let figures = error.tier_exhausted().unwrap_or_else(|| panic!("{policy:?}: no figures: {error}"));
            let seen = (figures.requested_bytes, figures.used_bytes, figures.limit_bytes);
            assert_eq!(seen, (2 * PAGE, 9 * PAGE, 10 * PAGE), "{policy:?}: the figures of what is needed");
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (9 * PAGE, 9 * PAGE, 9 * PAGE), "{policy:?}");
        }
    }
}

#[test]
fn shrinking_to_the_length_gives_back_what_a_policy_doubled_ahead() {
    for (_, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(GrowthPolicy::Geometric)).unwrap();
        buffer.grow_to(8 * PAGE).unwrap();
        buffer.grow_to(8 * PAGE + 1).unwrap();
        assert_eq!((buffer.committed(), used(&host)), (16 * PAGE, 16 * PAGE));
        buffer.shrink_to(12 * PAGE).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (8 * PAGE + 1, 12 * PAGE, 12 * PAGE));
        buffer.shrink_to(8 * PAGE + 1).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (8 * PAGE + 1, 9 * PAGE, 9 * PAGE));
    }
}

#[test]
fn a_buffer_that_grows_in_steps_shrinks_in_steps_and_keeps_nothing_when_empty() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE))).unwrap();
        buffer.grow_to(17 * PAGE).unwrap();
        let calls = faults.count(Call::Decommit);
        for (len, kept) in [(16 * PAGE + 1, 24), (16 * PAGE, 16), (9 * PAGE, 16), (8 * PAGE, 8), (1, 8), (0, 0)] {
            buffer.shrink_to(len).unwrap();
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (len, kept * PAGE, kept * PAGE));
        }
        assert_eq!(faults.count(Call::Decommit) - calls, 3, "one call a step, none within one");
    }
}

#[test]
fn what_a_growth_would_cost_is_what_it_then_costs() {
    for rig in host_rigs() {
        for policy in [GrowthPolicy::Exact, GrowthPolicy::Step(8 * PAGE), GrowthPolicy::Geometric] {
            let spec = BufferSpec::new(MIB).growth(policy);
            let mut set = rig.host.buffer_set(&rig.backing, 3, &spec).unwrap();
            for len in [0, 1, PAGE, PAGE + 1, 40 * PAGE, 1] {
                let before = rig.used();
                let cost = set.growth_cost(len).unwrap();
                assert_eq!(rig.used(), before, "{}, {policy:?}: asking charges nothing", rig.name);
                set.grow_to(len).unwrap();
                let grown = rig.used() - before;
                assert_eq!((cost.owned_bytes, cost.mapped_bytes), (grown, grown), "{policy:?}, {len}");
            }
            assert_eq!(set.growth_cost(MIB + 1).unwrap_err().kind(), ErrorKind::CapacityExceeded, "{}", rig.name);
        }
    }
}
