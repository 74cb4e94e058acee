//! The list of all cases.

use super::Capability::{Bytes, SharedMapping, VirtualBacking};
use super::subject::Subject;
use super::{Capability, Check, basics, contents, mapping, mapping_refusals, prefixes, ranges, regions};

/// One thing that the contract asks for.
#[derive(Clone, Copy)]
pub struct Case {
    /// What holds, in words joined by underscores.
    pub name: &'static str,
    /// What the backing must offer for it.
    pub needs: &'static [Capability],
    pub(super) check: fn(&Subject<'_>) -> Check,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Case").field("name", &self.name).field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// A case of each function, by its name.
macro_rules! cases {
    ($($needs:expr => $module:ident { $($case:ident),+ $(,)? })+) => {
        &[$($(Case { name: stringify!($case), needs: &$needs, check: $module::$case },)+)+]
    };
}

/// Every case, the simple ones first.
pub const CASES: &[Case] = cases! {
    [] => basics {
        answers_stay_the_same,
        an_unknown_extension_is_none,
        allocations_are_as_asked_and_apart,
        malformed_allocations_are_refused,
        an_id_dies_with_its_release,
        an_id_that_is_live_is_refused,
        trimming_gives_up_what_is_parked_and_no_more,
    }
    [Bytes] => basics { allocations_read_as_zero }
    [VirtualBacking] => regions {
        the_granularity_is_a_power_of_two,
        regions_are_as_asked_and_apart,
        malformed_reservations_are_refused,
        a_region_id_that_is_live_is_refused,
        a_region_is_dead_after_its_release,
        an_id_that_was_never_given_out_is_unknown,
    }
    [VirtualBacking] => ranges {
        changes_are_exact,
        a_call_without_ranges_changes_nothing,
        a_granule_is_committed_once,
        a_granule_is_decommitted_once,
        malformed_ranges_are_refused,
        ranges_of_one_call_that_overlap_are_refused,
        a_commit_is_all_or_nothing_at_each_index,
        a_decommit_is_all_or_nothing_at_each_index,
    }
    [VirtualBacking, Bytes] => contents {
        memory_of_another_holder_reads_as_zero,
        memory_that_comes_back_is_zero_or_the_holders_own,
        contents_survive_growth_and_what_is_refused,
    }
    [SharedMapping] => prefixes {
        prefixes_are_as_asked_and_own_what_they_hold,
        malformed_prefixes_are_refused,
        a_prefix_is_sealed_once,
        a_prefix_of_somebody_else_is_refused,
        a_prefix_is_dead_after_its_release,
    }
    [SharedMapping, Bytes] => prefixes { a_prefix_reads_as_zero_and_keeps_what_was_written }
    [SharedMapping, VirtualBacking] => mapping {
        mapping_owns_nothing_and_is_exact,
        private_memory_grows_beside_a_mapping,
    }
    [SharedMapping, VirtualBacking, Bytes] => mapping {
        a_mapping_shows_its_part,
        memory_lives_until_its_last_mapping,
        the_release_of_a_region_unmaps,
    }
    [SharedMapping, VirtualBacking] => mapping_refusals {
        an_unsealed_prefix_is_not_mapped,
        an_unknown_prefix_or_region_is_not_mapped,
        two_parts_at_one_place_are_refused,
        a_place_that_is_taken_is_refused,
        parts_and_places_that_are_malformed_are_refused,
        a_mapping_is_all_or_nothing_at_each_index,
        an_unmapping_is_exact_and_all_or_nothing,
        commit_and_decommit_leave_mappings_alone,
    }
};
