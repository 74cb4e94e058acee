//! The report of `leasehold replay` for people.

use super::outcome::{RefusedRequest, Run};
use super::setup::Setup;
use crate::output;
use bytesize::ByteSize;
use std::fmt::Write;
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
/// Columns of words; all after them hold figures.
const WORDS: usize = 2;

pub(super) fn text(setup: &Setup, runs: &[Run]) -> String {
    let header = header(setup);
    let mut table = output::table(&header, &(WORDS..header.len()).collect::<Vec<_>>());
    for run in runs {
        table.add_row(row(setup, run));
    }
    let mut text = format!("trace: {}, {} requests\n{table}", setup.format, setup.requests);
    for (name, sharing) in setup.backings.iter().filter_map(|one| Some((&one.name, one.sharing.as_ref()?))) {
        // Writing to a string can't fail.
        let _ = write!(text, "\n{name}: {}", output::clean(sharing));
    }
    if let Some(bound) = prefix_bound(setup) {
        let _ = write!(text, "\n{bound}");
    }
    for run in runs {
        write_refusals(&mut text, run);
    }
    text
}

/// The names of the columns.
fn header(setup: &Setup) -> Vec<&'static str> {
    let prefix = if setup.prefix.is_known { PREFIX_HEADER } else { &[] };
    [HEADER, prefix].concat()
}

/// What an unlimited prefix cache would find in the trace; `None` where its prompts have no hash ids.
fn prefix_bound(setup: &Setup) -> Option<String> {
    let bound = &setup.prefix;
    let (hits, all, percent) = (bound.hit_tokens, bound.prompt_tokens, bound.hit_percent());
    bound.is_known.then(|| format!("an infinite cache would hit {hits} of {all} prompt tokens, {percent:.1} %"))
}

/// One run, in the order of the header.
fn row(setup: &Setup, run: &Run) -> Vec<String> {
    let Run { backing, strategy, summary } = run;
    let bytes = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
    let time = |nanoseconds: u64| format!("{:.1?}", Duration::from_nanos(nanoseconds));
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

fn write_refusals(text: &mut String, run: &Run) {
    let refused = &run.summary.refused;
    for RefusedRequest { line, reason } in refused.iter().take(NAMED_REFUSALS) {
        let _ = write!(text, "\n{}: request of line {line} refused: {reason}", run.strategy);
    }
    let more = refused.len().saturating_sub(NAMED_REFUSALS);
    if more > 0 {
        let _ = write!(text, "\n{}: {more} more requests refused", run.strategy);
    }
}
