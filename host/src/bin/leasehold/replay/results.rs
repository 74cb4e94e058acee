//! A replay's results as texts: columns, rows and remarks, alike for the table and for the page.

use super::outcome::{FailedRun, RefusedRequest, Run, Runs};
use super::setup::Setup;
use super::strategy::StrategyName;
use bytesize::ByteSize;
use std::time::Duration;

/// Refused requests that are named for each run; the rest are counted.
const NAMED_REFUSALS: usize = 3;

const HEADER: &[&str] = &[
    "backing",
    "strategy",
    "done",
    "preempted",
    "refused",
    "most running",
    "peak owned",
    "ideal peak",
    "waste",
    "growths",
    "p50",
    "p99",
    "max",
];
/// More columns, where prompts can be told to begin alike.
const PREFIX_HEADER: &[&str] = &["hit tokens", "not stored twice"];
const KEPT_PREFIXES: &str =
    "sharing keeps what no running request maps until the budget runs short: it is owned, and so counts as waste";
/// What stands where nothing was timed.
const NONE: &str = "–";
/// What stands in the first column of figures where a run has none.
const FAILED: &str = "failed";
/// Columns of words; all after them hold figures.
pub(super) const WORDS: usize = 2;

/// The names of the columns.
pub(super) fn header(setup: &Setup) -> Vec<&'static str> {
    let prefix = if setup.prefix.is_known { PREFIX_HEADER } else { &[] };
    [HEADER, prefix].concat()
}

/// What an unlimited prefix cache would find in the trace; `None` where its prompts have no hash ids.
fn prefix_bound(setup: &Setup) -> Option<String> {
    let bound = &setup.prefix;
    let (hits, all, percent) = (bound.hit_tokens, bound.prompt_tokens, bound.hit_percent());
    bound.is_known.then(|| format!("an infinite cache would hit {hits} of {all} prompt tokens, {percent:.1} %"))
}

/// All runs, in the order of the header: first those with figures.
pub(super) fn rows(setup: &Setup, runs: &Runs) -> Vec<Vec<String>> {
    let finished = runs.finished.iter().map(|run| row(setup, run));
    finished.chain(runs.failed.iter().map(|run| failed_row(setup, run))).collect()
}

/// A run without figures; its reason is too long for a column.
fn failed_row(setup: &Setup, run: &FailedRun) -> Vec<String> {
    let mut row = vec![run.backing.clone(), strategy_of(run), FAILED.to_owned()];
    row.resize(header(setup).len(), NONE.to_owned());
    row
}

fn strategy_of(run: &FailedRun) -> String {
    run.strategy.map_or_else(|| NONE.to_owned(), |strategy| strategy.to_string())
}

/// One run, in the order of the header.
fn row(setup: &Setup, run: &Run) -> Vec<String> {
    let Run { backing, strategy, summary } = run;
    let bytes = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
    let time = |nanoseconds: u64| match summary.growth.calls {
        0 => NONE.to_owned(),
        _ => format!("{:.1?}", Duration::from_nanos(nanoseconds)),
    };
    let mut row = vec![
        backing.clone(),
        strategy.to_string(),
        summary.completed.to_string(),
        summary.preempted.to_string(),
        summary.refused.len().to_string(),
        summary.peak_running.to_string(),
        bytes(summary.peak_owned_bytes),
        bytes(summary.ideal_peak_bytes),
        format!("{:.1} %", summary.waste * 100.0),
        summary.growth.calls.to_string(),
        time(summary.growth.p50_ns),
        time(summary.growth.p99_ns),
        time(summary.growth.max_ns),
    ];
    if setup.prefix.is_known {
        row.extend([summary.prefix.hit_tokens.to_string(), bytes(summary.prefix.bytes_not_stored_twice)]);
    }
    row
}

/// What a reader of the figures has to know: what can be shared on each backing, what the trace's prompts have in common,
/// and what sharing keeps.
pub(super) fn remarks(setup: &Setup, runs: &Runs) -> Vec<String> {
    let backings = setup.backings.iter();
    let sharing = backings.filter_map(|one| Some(format!("{}: {}", one.name, one.sharing.as_ref()?)));
    let keeps = runs.finished.iter().any(|run| run.strategy == StrategyName::Sharing).then(|| KEPT_PREFIXES.to_owned());
    sharing.chain(prefix_bound(setup)).chain(keeps).collect()
}

/// Who was refused, and why.
pub(super) fn refusals(setup: &Setup, runs: &Runs) -> Vec<String> {
    let place = if setup.trace.is_some() { "request of line" } else { "request" };
    runs.finished.iter().flat_map(|run| refusals_of(run, place)).collect()
}

/// Which runs failed, and why.
pub(super) fn failures(runs: &Runs) -> Vec<String> {
    let place = |run: &FailedRun| match run.strategy {
        Some(strategy) => format!("{}, {strategy}", run.backing),
        None => run.backing.clone(),
    };
    runs.failed.iter().map(|run| format!("{}: failed: {}", place(run), run.reason)).collect()
}

fn refusals_of(Run { backing, strategy, summary }: &Run, place: &str) -> Vec<String> {
    let refused = &summary.refused;
    let named = refused.iter().take(NAMED_REFUSALS);
    let named =
        named.map(|RefusedRequest { line, reason }| format!("{backing}, {strategy}: {place} {line} refused: {reason}"));
    let more = refused.len().saturating_sub(NAMED_REFUSALS);
    named.chain((more > 0).then(|| format!("{backing}, {strategy}: {more} more requests refused"))).collect()
}
