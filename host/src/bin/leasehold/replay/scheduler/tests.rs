//! The rules of the scheduler, one by one, over a store that counts.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use super::super::counting_store::CountingStore;
use super::super::outcome::RefusedRequest;
use super::*;

/// Requests of (arrival in steps, prompt, output), on lines 1, 2, …
fn requests(figures: &[(u64, u64, u64)]) -> Vec<Request> {
    let request = |(line, &(arrival, prompt_tokens, output_tokens))| Request {
        line,
        arrival: Duration::from_millis(arrival),
        prompt_tokens,
        output_tokens,
        hash_ids: Vec::new(),
    };
    (1..).zip(figures).map(request).collect()
}

fn options() -> ReplayOptions {
    ReplayOptions { step: Duration::from_millis(1), max_running: None, bytes_per_token: 1 }
}

fn run(figures: &[(u64, u64, u64)], options: ReplayOptions, store: &mut CountingStore) -> RunSummary {
    let summary = replay(&requests(figures), options, store, &mut |_, _| {}).unwrap();
    assert_eq!((store.live, store.owned), (0, 0), "everything is given back");
    summary
}

fn lines_of(summary: &RunSummary) -> Vec<u64> {
    summary.refused.iter().map(|refused| refused.line).collect()
}

#[test]
fn a_request_grows_once_for_its_prompt_and_once_for_each_output_token() {
    let mut store = CountingStore::with_budget(100);
    let summary = run(&[(0, 10, 5)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted, summary.growth.calls), (1, 0, 6));
    assert_eq!(store.closed, [(15, 1)].into());
    assert_eq!((summary.peak_owned_bytes, summary.ideal_peak_bytes, summary.peak_running), (15, 15, 1));
}

#[test]
fn no_requests_give_an_empty_summary() {
    let summary = run(&[], options(), &mut CountingStore::with_budget(100));
    assert_eq!((summary.completed, summary.peak_running), (0, 0));
}

#[test]
fn a_request_without_output_ends_with_its_prefill() {
    let mut store = CountingStore::with_budget(10);
    let summary = run(&[(0, 10, 0), (0, 10, 0)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted, summary.peak_running), (2, 0, 1));
}

#[test]
fn requests_that_overlap_in_time_run_together() {
    let one_apart = run(&[(0, 1, 3), (2, 1, 3)], options(), &mut CountingStore::with_budget(100));
    let far_apart = run(&[(0, 1, 3), (3, 1, 3)], options(), &mut CountingStore::with_budget(100));
    assert_eq!((one_apart.peak_running, far_apart.peak_running), (2, 1));
}

#[test]
fn the_clock_jumps_over_idle_time() {
    // Step by step this would not end.
    let day = 86_400_000;
    let summary = run(&[(0, 1, 1), (day * 10_000, 1, 1)], options(), &mut CountingStore::with_budget(100));
    assert_eq!(summary.completed, 2);
}

#[test]
fn a_request_that_never_fits_is_named_and_the_others_go_on() {
    let summary = run(&[(0, 5, 5), (0, 6, 5), (0, 5, 5)], options(), &mut CountingStore::with_budget(10));
    let expected = RefusedRequest { line: 2, reason: "11 tokens never fit".to_owned() };
    assert_eq!((summary.completed, summary.refused), (2, vec![expected]));
}

#[test]
fn the_front_of_the_queue_holds_up_those_behind_it() {
    let mut store = CountingStore::with_budget(10);
    let summary = run(&[(0, 5, 2), (0, 10, 0), (0, 1, 1)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted), (3, 0));
    assert_eq!(summary.peak_running, 1, "line 3 would have fitted beside line 1");
}

#[test]
fn a_full_batch_admits_nobody() {
    let limited = ReplayOptions { max_running: NonZeroUsize::new(2), ..options() };
    let summary = run(&[(0, 1, 3), (0, 1, 3), (0, 1, 3)], limited, &mut CountingStore::with_budget(100));
    assert_eq!((summary.completed, summary.peak_running), (3, 2));
}

#[test]
fn a_refused_growth_preempts_the_youngest_which_keeps_its_tokens() {
    // Both start; at 5 + 5 bytes the oldest can't grow, and the youngest goes with 5 tokens. It
    // comes back with these 5, not with its prompt: had it lost them, it would have closed a cache
    // of 8 after more growth calls.
    let mut store = CountingStore::with_budget(10);
    let summary = run(&[(0, 4, 4), (0, 4, 4)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted), (2, 1));
    assert_eq!(store.closed, [(5, 1), (8, 2)].into());
    // 4 prompts-and-tokens: 1 + 4 for the oldest; 1 + 1, then 1 + 3 for the youngest.
    assert_eq!(summary.growth.calls, 11);
}

#[test]
fn the_youngest_gives_way_when_it_is_the_one_to_grow() {
    // The oldest takes the ninth byte; the youngest can't follow, and comes back only when the
    // oldest has ended: the four bytes that it gave back would hold what it had, but not its next
    // token.
    let mut store = CountingStore::with_budget(9);
    let summary = run(&[(0, 4, 2), (0, 4, 4)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted), (2, 1));
    assert_eq!(store.closed, [(4, 1), (6, 1), (8, 1)].into());
}

#[test]
fn a_preempted_request_is_not_filled_again_in_every_step() {
    // In granules of 100, the youngest is refused its second while the oldest goes on in its first
    // for 90 steps.
    let mut store = CountingStore { granule: 100, ..CountingStore::with_budget(200) };
    let summary = run(&[(0, 10, 90), (0, 100, 10)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted), (2, 1));
}

#[test]
fn a_preempted_request_goes_before_those_that_waited() {
    let mut store = CountingStore::with_budget(10);
    let order = RefCell::new(Vec::new());
    let figures = [(0, 4, 4), (0, 4, 4), (0, 6, 4)];
    let summary =
        replay(&requests(&figures), options(), &mut store, &mut |ended, of| order.borrow_mut().push((ended, of)));
    assert_eq!(summary.unwrap().completed, 3);
    assert_eq!(order.into_inner(), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(store.closed, [(5, 1), (8, 2), (10, 1)].into());
}

#[test]
fn a_request_refused_though_alone_is_dropped() {
    let blind = || CountingStore { foresees: false, ..CountingStore::with_budget(10) };
    let at_prefill = run(&[(0, 11, 1), (0, 5, 1)], options(), &mut blind());
    assert_eq!((at_prefill.completed, lines_of(&at_prefill)), (1, vec![1]));
    let at_growth = run(&[(0, 5, 6), (0, 5, 1)], options(), &mut blind());
    assert_eq!((at_growth.completed, lines_of(&at_growth)), (1, vec![1]));
    assert_eq!(at_growth.refused[0].reason, "1 bytes on top of 10");
}

#[test]
fn a_waiting_request_opens_one_cache_however_long_it_waits() {
    let mut store = CountingStore::with_budget(100);
    run(&[(0, 1, 99), (60, 50, 1)], options(), &mut store);
    assert_eq!(store.opened, 2);
}

#[test]
fn an_unused_cache_gives_way_before_a_running_request() {
    // Empty caches own 4 bytes here. Line 2 opens one and can't prefill; line 1 then needs these 4
    // bytes.
    let mut store = CountingStore { empty: 4, ..CountingStore::with_budget(10) };
    let summary = run(&[(0, 4, 6), (0, 8, 1)], options(), &mut store);
    assert_eq!((summary.completed, summary.preempted), (2, 0));
}

#[test]
fn granules_are_waste() {
    let mut store = CountingStore { granule: 8, ..CountingStore::with_budget(100) };
    let summary = run(&[(0, 2, 1)], options(), &mut store);
    assert!((summary.waste - 0.75).abs() < 1e-12, "{}", summary.waste);
    assert_eq!((summary.peak_owned_bytes, summary.ideal_peak_bytes), (8, 3));
}

#[test]
fn a_broken_store_ends_the_run_and_names_the_request() {
    let mut store = CountingStore { break_at: Some(3), ..CountingStore::with_budget(100) };
    let error = replay(&requests(&[(0, 4, 4)]), options(), &mut store, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "replay: stopped at filling the cache of the request on line 1: call 3 broke");
}

#[test]
fn a_store_that_breaks_at_any_call_ends_the_run_with_that_error() {
    let figures = [(0, 4, 4), (0, 4, 4), (0, 6, 4)];
    let mut whole = CountingStore::with_budget(10);
    run(&figures, options(), &mut whole);
    for call in 1..=whole.calls {
        let mut store = CountingStore { break_at: Some(call), ..CountingStore::with_budget(10) };
        let error = replay(&requests(&figures), options(), &mut store, &mut |_, _| {}).unwrap_err();
        assert!(error.to_string().contains(&format!("call {call} broke")), "{error}");
    }
}

#[test]
fn the_timeline_follows_the_clock() {
    let mut store = CountingStore::with_budget(100);
    let summary = run(&[(0, 10, 2), (4, 5, 1)], options(), &mut store);
    let points: Vec<_> = summary.timeline.points.iter().map(|point| (point.most, point.growth)).collect();
    let seen: Vec<_> =
        points.iter().map(|(most, growth)| (most.ideal_bytes, most.running, growth.map(|one| one.calls))).collect();
    // The first prefills and generates in one step, and generates in the next; nothing runs in steps 2 and 3.
    assert_eq!(seen, [(10, 1, Some(2)), (11, 1, Some(1)), (0, 0, None), (0, 0, None), (5, 1, Some(2))]);
    assert!(
        points.iter().all(|(most, _)| (most.owned_bytes, most.mapped_bytes) == (most.ideal_bytes, most.ideal_bytes))
    );
}
