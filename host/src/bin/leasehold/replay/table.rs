//! The report of `leasehold replay` for people.

use super::outcome::{RefusedRequest, Run};
use super::setup::Setup;
use crate::output;
use bytesize::ByteSize;
use std::fmt::Write;
use std::time::Duration;

/// Refused requests that are named for each run; the rest are counted.
const NAMED_REFUSALS: usize = 3;

const HEADER: [&str; 13] = [
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

pub(super) fn text(setup: &Setup, runs: &[Run]) -> String {
    let mut table = output::table(&HEADER, &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for run in runs {
        table.add_row(row(run));
    }
    let mut text = format!("trace: {}, {} requests\n{table}", setup.format, setup.requests);
    for (name, sharing) in setup.backings.iter().filter_map(|one| Some((&one.name, one.sharing.as_ref()?))) {
        // Writing to a string can't fail.
        let _ = write!(text, "\n{name}: {}", output::clean(sharing));
    }
    for run in runs {
        write_refusals(&mut text, run);
    }
    text
}

fn row(run: &Run) -> [String; 13] {
    let Run { backing, strategy, summary } = run;
    let bytes = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
    let time = |nanoseconds: u64| format!("{:.1?}", Duration::from_nanos(nanoseconds));
    [
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
    ]
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
