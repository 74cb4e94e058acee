//! Counts what happens in a run, and tells the listener as requests end.
//!
//! Input: the scheduler's reports. Output: a [`RunSummary`]. Decides nothing; calls no store.

use super::footprint::Footprint;
use super::latency::GrowthTimer;
use super::outcome::{RefusedRequest, RunSummary};
use super::prefix::PrefixUse;
use super::trace::Request;

/// See the module.
pub(super) struct Tally<'run> {
    pub(super) footprint: Footprint,
    pub(super) growth: GrowthTimer,
    progress: &'run mut dyn FnMut(u64, u64),
    requests: u64,
    completed: u64,
    preempted: u64,
    refused: Vec<RefusedRequest>,
    peak_running: u64,
}

impl<'run> Tally<'run> {
    pub(super) fn new(
        requests: usize,
        bytes_per_token: u64,
        growth: GrowthTimer,
        progress: &'run mut dyn FnMut(u64, u64),
    ) -> Self {
        Self {
            footprint: Footprint::new(bytes_per_token),
            growth,
            progress,
            requests: count(requests),
            completed: 0,
            preempted: 0,
            refused: Vec::new(),
            peak_running: 0,
        }
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
