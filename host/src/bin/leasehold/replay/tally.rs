//! Counts what happens in a run, and tells the listener as requests end.
//!
//! Input: the scheduler's reports. Output: a [`RunSummary`]. Decides nothing; calls no store.

use super::footprint::Footprint;
use super::latency::GrowthTimer;
use super::options::ReplayOptions;
use super::outcome::{RefusedRequest, RunSummary};
use super::prefix::PrefixUse;
use super::timeline::{Held, TimelineRecorder};
use super::trace::Request;
use hdrhistogram::CreationError;
use std::time::{Duration, Instant};

/// Quantiles to within a thousandth.
const SIGNIFICANT_FIGURES: u8 = 3;

/// See the module.
pub(super) struct Tally<'run> {
    pub(super) footprint: Footprint,
    growth: GrowthTimer,
    timeline: TimelineRecorder,
    progress: &'run mut dyn FnMut(u64, u64),
    requests: u64,
    completed: u64,
    preempted: u64,
    refused: Vec<RefusedRequest>,
    peak_running: u64,
}

impl<'run> Tally<'run> {
    /// # Errors
    /// None in practice: the bounds of histograms are constants.
    pub(super) fn new(
        requests: usize,
        options: &ReplayOptions,
        progress: &'run mut dyn FnMut(u64, u64),
    ) -> Result<Self, CreationError> {
        Ok(Self {
            footprint: Footprint::new(options.bytes_per_token),
            growth: GrowthTimer::new(SIGNIFICANT_FIGURES)?,
            timeline: TimelineRecorder::new(options.step)?,
            progress,
            requests: count(requests),
            completed: 0,
            preempted: 0,
            refused: Vec::new(),
            peak_running: 0,
        })
    }

    /// What is counted from now on belongs to the step at `clock`.
    pub(super) fn begin_step(&mut self, clock: Duration) {
        self.timeline.begin_step(clock);
    }

    /// Counts what a step starts from, its new requests among it.
    pub(super) fn count_step(&mut self, owned_bytes: u64, mapped_bytes: u64, running: usize) {
        self.footprint.count_step(owned_bytes);
        let (ideal_bytes, running) = (self.footprint.ideal_bytes(), count(running));
        self.timeline.record_held(Held { owned_bytes, mapped_bytes, ideal_bytes, running });
    }

    /// Makes a growth call, and records how long it took if it succeeds.
    pub(super) fn time_growth<T, E>(&mut self, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let start = Instant::now();
        let answer = call();
        let elapsed = start.elapsed();
        if answer.is_ok() {
            self.growth.record(elapsed);
            self.timeline.record_growth(elapsed);
        }
        answer
    }

    pub(super) fn complete(&mut self) {
        self.completed = self.completed.saturating_add(1);
        self.report();
    }

    pub(super) fn refuse(&mut self, request: &Request, reason: String) {
        self.refused.push(RefusedRequest { line: request.line, reason });
        self.report();
    }

    pub(super) fn preempt(&mut self) {
        self.preempted = self.preempted.saturating_add(1);
    }

    pub(super) fn note_running(&mut self, running: usize) {
        self.peak_running = self.peak_running.max(count(running));
    }

    /// What the run found, with what its store says of itself.
    pub(super) fn summary(self, peak_owned_bytes: u64, prefix: PrefixUse) -> RunSummary {
        RunSummary {
            completed: self.completed,
            preempted: self.preempted,
            refused: self.refused,
            peak_running: self.peak_running,
            peak_owned_bytes,
            ideal_peak_bytes: self.footprint.peak_ideal_bytes(),
            waste: self.footprint.waste(),
            growth: self.growth.latency(),
            prefix,
            timeline: self.timeline.timeline(),
        }
    }

    fn report(&mut self) {
        let ended = self.completed.saturating_add(count(self.refused.len()));
        (self.progress)(ended, self.requests);
    }
}

/// Exact wherever a `usize` has at most 64 bits.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_calls_are_not_counted() {
        let options = ReplayOptions { step: Duration::from_millis(1), max_running: None, bytes_per_token: 1 };
        let mut progress = |_, _| {};
        let mut tally = Tally::new(1, &options, &mut progress).unwrap();
        assert_eq!(tally.time_growth(|| Err::<(), _>("refused")), Err("refused"));
        assert_eq!(tally.time_growth(|| Ok::<_, ()>("grown")), Ok("grown"));
        let summary = tally.summary(0, PrefixUse::default());
        let over_time: u64 = summary.timeline.points.iter().filter_map(|point| point.growth).map(|one| one.calls).sum();
        assert_eq!((summary.growth.calls, over_time), (1, 1));
    }
}
