//! How far a growth commits. Pure arithmetic on granules.

/// How much a buffer commits when it grows past what is committed.
///
/// A growth that the policy's own step would push over the budget is tried again with exactly what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrowthPolicy {
    /// What the length needs, in whole granules: the lease is exactly what is committed.
    #[default]
    Exact,
    /// In steps of so many bytes, rounded up to granules, and back in the same steps. Fewer calls, at most one step of
    /// slack a plane.
    Step(u64),
    /// At least twice what is committed. The fewest commits, up to half of slack.
    Geometric,
}

/// The smallest multiple of a granule that holds `bytes`.
pub(super) fn round_up(bytes: u64, granule: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(granule)
}

impl GrowthPolicy {
    /// What to commit so that `len` bytes fit: a multiple of the granule, at least `len`, within the capacity.
    ///
    /// `len ≤ capacity`, and `capacity` and `committed` are multiples of `granule`.
    pub(super) fn target(self, len: u64, committed: u64, capacity: u64, granule: u64) -> u64 {
        let exact = round_up(len, granule).unwrap_or(capacity);
        let wanted = match self {
            GrowthPolicy::Exact => exact,
            GrowthPolicy::Step(step) => {
                step_granules(step, granule).and_then(|step| round_up(len, step)).unwrap_or(capacity)
            }
            GrowthPolicy::Geometric => exact.max(committed.saturating_mul(2)),
        };
        wanted.min(capacity).max(exact.min(capacity))
    }

    /// What stays committed when a buffer shrinks to `len` bytes: what it would have committed to grow there, so that a
    /// length that goes back and forth within one step makes no call. Slack that doubles is never kept.
    pub(super) fn kept(self, len: u64, capacity: u64, granule: u64) -> u64 {
        self.target(len, 0, capacity, granule)
    }
}

/// A step in whole granules, at least one.
fn step_granules(step: u64, granule: u64) -> Option<u64> {
    round_up(step.max(1), granule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_commits_whole_granules_and_no_more() {
        let exact = |len| GrowthPolicy::Exact.target(len, 0, 1 << 20, 4096);
        assert_eq!([exact(1), exact(4096), exact(4097), exact(6912)], [4096, 4096, 8192, 8192]);
    }

    #[test]
    fn a_step_that_is_no_multiple_of_the_granule_is_rounded_up() {
        assert_eq!(GrowthPolicy::Step(5000).target(1, 0, 1 << 20, 4096), 8192);
        assert_eq!(GrowthPolicy::Step(5000).target(8193, 8192, 1 << 20, 4096), 16384);
    }

    #[test]
    fn geometric_growth_doubles_up_to_the_capacity() {
        assert_eq!(GrowthPolicy::Geometric.target(8193, 8192, 1 << 20, 4096), 16384);
        assert_eq!(GrowthPolicy::Geometric.target(65537, 65536, 131_072, 4096), 131_072);
        assert_eq!(GrowthPolicy::Geometric.target(90_000, 81_920, 98_304, 4096), 98_304);
    }

    #[test]
    fn shrinking_keeps_what_growing_there_would_have_committed_and_nothing_of_an_empty_buffer() {
        let kept = |policy: GrowthPolicy| [0, 1, 4097, 8193].map(|len| policy.kept(len, 1 << 20, 4096));
        assert_eq!(kept(GrowthPolicy::Exact), [0, 4096, 8192, 12288]);
        assert_eq!(kept(GrowthPolicy::Step(8192)), [0, 8192, 8192, 16384]);
        assert_eq!(kept(GrowthPolicy::Geometric), [0, 4096, 8192, 12288]);
    }

    fn policies() -> impl Strategy<Value = GrowthPolicy> {
        prop_oneof![Just(GrowthPolicy::Exact), any::<u64>().prop_map(GrowthPolicy::Step), Just(GrowthPolicy::Geometric)]
    }

    proptest! {
        #[test]
        fn a_target_holds_the_length_in_whole_granules_within_the_capacity(
            policy in policies(),
            shift in 12u32..22,
            granules in 1u64..1 << 40,
            len in any::<u64>(),
            committed in any::<u64>(),
        ) {
            let granule = 1u64 << shift;
            let capacity = granules << shift;
            let len = len.min(capacity);
            let committed = (committed >> shift << shift).min(capacity);
            let target = policy.target(len, committed, capacity, granule);
            prop_assert!(target >= len && target <= capacity && target.is_multiple_of(granule));
        }
    }
}
