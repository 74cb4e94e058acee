//! What holds for every trace, budget and limit: random ones against plain arithmetic.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::super::counting_store::CountingStore;
use super::*;

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec((0u64..200, 1u64..120, 0u64..60), 0..40).prop_map(|mut figures| {
        figures.sort_by_key(|(arrival, ..)| *arrival);
        let request = |(line, (arrival, prompt_tokens, output_tokens))| Request {
            line,
            arrival: Duration::from_millis(arrival),
            prompt_tokens,
            output_tokens,
            hash_ids: Vec::new(),
        };
        (1..).zip(figures).map(request).collect()
    })
}

fn any_store() -> impl Strategy<Value = CountingStore> {
    (0u64..400, 1u64..40, 0u64..40, any::<bool>()).prop_map(|(budget, granule, empty, foresees)| CountingStore {
        granule,
        empty,
        foresees,
        ..CountingStore::with_budget(budget)
    })
}

fn any_options() -> impl Strategy<Value = ReplayOptions> {
    (0u64..20, 0usize..6).prop_map(|(step, most)| ReplayOptions {
        step: Duration::from_millis(step),
        max_running: NonZeroUsize::new(most),
        bytes_per_token: 1,
    })
}

proptest! {
    #[test]
    fn every_request_ends_exactly_once_and_with_exactly_its_tokens(
        requests in any_requests(),
        mut store in any_store(),
        options in any_options(),
    ) {
        let mut reports = Vec::new();
        let summary = replay(&requests, options, &mut store, &mut |ended, of| reports.push((ended, of))).unwrap();

        // Who can't run alone is refused, and nobody else.
        let (fitting, refused): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| store.size_of(request.final_tokens()) <= store.budget);
        let mut lines: Vec<_> = summary.refused.iter().map(|refused| refused.line).collect();
        lines.sort_unstable();
        prop_assert_eq!(lines, refused.iter().map(|request| request.line).collect::<Vec<_>>());
        prop_assert_eq!(summary.completed, u64::try_from(fitting.len()).unwrap());

        // A cache closes at a request's final size as often as such a request completed, or more: a
        // preempted one may close at any size.
        let mut finals = BTreeMap::<u64, u64>::new();
        for request in &fitting {
            let completed = finals.entry(request.final_tokens()).or_default();
            *completed = completed.saturating_add(1);
        }
        for (tokens, completed) in finals {
            prop_assert!(store.closed.get(&tokens).is_some_and(|closed| *closed >= completed));
        }

        // The store is as it was, and never went over its budget; the peak is the store's own.
        prop_assert_eq!((store.live, store.owned), (0, 0));
        prop_assert!(store.peak_owned <= store.budget);
        prop_assert_eq!(summary.peak_owned_bytes, store.peak_owned);
        prop_assert!(summary.ideal_peak_bytes <= summary.peak_owned_bytes);
        prop_assert!((0.0..=1.0).contains(&summary.waste));
        prop_assert!(options.max_running.is_none_or(|most| summary.peak_running <= u64::try_from(most.get()).unwrap()));

        // Each end was told, in turn.
        let total = u64::try_from(requests.len()).unwrap();
        prop_assert_eq!(reports, (1..=total).map(|ended| (ended, total)).collect::<Vec<_>>());
    }

    #[test]
    fn with_room_for_all_nobody_is_preempted_and_growth_is_prompts_plus_tokens(
        requests in any_requests(),
        options in any_options(),
    ) {
        let mut store = CountingStore::with_budget(u64::MAX);
        let summary = replay(&requests, options, &mut store, &mut |_, _| {}).unwrap();
        let calls: u64 = requests.iter().map(|request| request.output_tokens.saturating_add(1)).sum();
        prop_assert_eq!((summary.preempted, summary.growth.calls), (0, calls));
    }
}
