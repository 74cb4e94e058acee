//! Turns run summaries into the JSON that `leasehold replay --json` prints.
//!
//! The keys are a promise to programs: a test holds them. Figures that may change their meaning,
//! such as waste, are for the table only.

use serde::Serialize;

use super::latency::GrowthLatency;
use super::outcome::{FailedRun, Run, Runs};
use super::setup::Setup;
use super::trace::TraceFormat;

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReplayReport {
    pub(crate) trace: TraceSummary,
    /// In the order of the runs.
    pub(crate) results: Vec<ReplayResult>,
    /// In the order of the runs.
    pub(crate) failures: Vec<ReplayFailure>,
}

/// The trace that was replayed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TraceSummary {
    pub(crate) format: TraceFormat,
    pub(crate) requests: u64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReplayResult {
    pub(crate) backing: String,
    pub(crate) strategy: String,
    pub(crate) completed: u64,
    pub(crate) preempted: u64,
    /// How many; who and why is in the [`RunSummary`](super::outcome::RunSummary).
    pub(crate) refused: u64,
    pub(crate) peak_running: u64,
    pub(crate) peak_owned_bytes: u64,
    pub(crate) ideal_peak_bytes: u64,
    pub(crate) growth: GrowthLatency,
    pub(crate) prefix: PrefixSummary,
}

/// A run that failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReplayFailure {
    pub(crate) backing: String,
    /// `null` where the backing was not ready for any.
    pub(crate) strategy: Option<String>,
    pub(crate) reason: String,
}

impl From<&FailedRun> for ReplayFailure {
    fn from(run: &FailedRun) -> Self {
        let strategy = run.strategy.map(|strategy| strategy.to_string());
        Self { backing: run.backing.clone(), strategy, reason: run.reason.clone() }
    }
}

/// What the run shared, beside the most that could be.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PrefixSummary {
    pub(crate) hit_tokens: u64,
    /// Of the trace, whatever the run; 0 where it has no hash ids.
    pub(crate) infinite_cache_hit_tokens: u64,
    pub(crate) bytes_not_stored_twice: u64,
}

impl ReplayReport {
    pub(super) fn new(setup: &Setup, runs: &Runs) -> Self {
        Self {
            trace: TraceSummary { format: setup.format, requests: count(setup.requests) },
            results: runs.finished.iter().map(|run| ReplayResult::new(setup, run)).collect(),
            failures: runs.failed.iter().map(ReplayFailure::from).collect(),
        }
    }
}

impl ReplayResult {
    fn new(setup: &Setup, Run { backing, strategy, summary: run }: &Run) -> Self {
        Self {
            backing: backing.clone(),
            strategy: strategy.to_string(),
            completed: run.completed,
            preempted: run.preempted,
            refused: count(run.refused.len()),
            peak_running: run.peak_running,
            peak_owned_bytes: run.peak_owned_bytes,
            ideal_peak_bytes: run.ideal_peak_bytes,
            growth: run.growth,
            prefix: PrefixSummary {
                hit_tokens: run.prefix.hit_tokens,
                infinite_cache_hit_tokens: setup.prefix.hit_tokens,
                bytes_not_stored_twice: run.prefix.bytes_not_stored_twice,
            },
        }
    }
}

/// Exact wherever a `usize` has at most 64 bits.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{RefusedRequest, RunSummary};
    use super::super::prefix::PrefixUse;
    use super::super::strategy::StrategyName;
    use super::super::timeline::Timeline;
    use super::*;

    #[test]
    fn the_json_has_exactly_these_keys() {
        let summary = RunSummary {
            completed: 1,
            preempted: 2,
            refused: vec![RefusedRequest { line: 9, reason: "too long".to_owned() }],
            peak_running: 3,
            peak_owned_bytes: 4,
            ideal_peak_bytes: 5,
            waste: 0.5,
            growth: GrowthLatency { calls: 6, p50_ns: 7, p99_ns: 8, max_ns: 9 },
            prefix: PrefixUse { hit_tokens: 10, bytes_not_stored_twice: 11 },
            timeline: Timeline::default(),
        };
        let run = Run { backing: "host-mmap".to_owned(), strategy: StrategyName::Leasehold, summary };
        let failed = FailedRun { backing: "gone".to_owned(), strategy: None, reason: "not here".to_owned() };
        let report = ReplayReport::new(&Setup::example(), &Runs { finished: vec![run], failed: vec![failed] });
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"trace":{"format":"azure-csv","requests":1},"results":[{"backing":"host-mmap","strategy":"leasehold","#
                .to_owned()
                + r#""completed":1,"preempted":2,"refused":1,"peak_running":3,"peak_owned_bytes":4,"#
                + r#""ideal_peak_bytes":5,"growth":{"calls":6,"p50_ns":7,"p99_ns":8,"max_ns":9},"#
                + r#""prefix":{"hit_tokens":10,"infinite_cache_hit_tokens":0,"bytes_not_stored_twice":11}}],"#
                + r#""failures":[{"backing":"gone","strategy":null,"reason":"not here"}]}"#
        );
    }
}
