//! What one run of the scheduler found.

use super::latency::GrowthLatency;
use super::prefix::PrefixUse;
use super::strategy::StrategyName;
use super::timeline::Timeline;
use crate::failure::Failure;

/// What became of every run that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) finished: Vec<Run>,
    pub(crate) failed: Vec<FailedRun>,
}

/// A run without figures: the backing refused it, broke the contract or was not ready.
#[derive(Debug)]
pub(crate) struct FailedRun {
    pub(crate) backing: String,
    /// `None` where the backing was not ready for any.
    pub(crate) strategy: Option<StrategyName>,
    pub(crate) reason: String,
}

impl Runs {
    pub(crate) fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.failed.is_empty()
    }

    /// Refuses where something that was asked for did not hold.
    ///
    /// # Errors
    /// [`Failure::DoesNotHold`].
    pub(crate) fn hold(&self) -> Result<(), Failure> {
        let failed = self.failed.len();
        if failed > 0 {
            let all = failed.saturating_add(self.finished.len());
            return Err(Failure::does_not_hold(format!("{failed} of {all} runs failed; see their reasons")));
        }
        if self.finished.iter().all(|run| run.summary.completed == 0) {
            return Err(Failure::does_not_hold("no request was completed by any strategy; see the refusals"));
        }
        Ok(())
    }
}

/// One strategy on one backing.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) backing: String,
    pub(crate) strategy: StrategyName,
    pub(crate) summary: RunSummary,
}

/// One trace over one store. `completed + refused` is the number of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunSummary {
    pub(crate) completed: u64,
    /// How often a running request gave its cache back to make room; one request may do so many
    /// times.
    pub(crate) preempted: u64,
    /// In the order of refusal.
    pub(crate) refused: Vec<RefusedRequest>,
    pub(crate) peak_running: u64,
    /// The most that the store held at once.
    pub(crate) peak_owned_bytes: u64,
    /// The most that tokens needed at once: tokens of all running requests × bytes per token.
    pub(crate) ideal_peak_bytes: u64,
    /// 1 − Σ ideal bytes / Σ owned bytes, over the steps; below 0 where a store shares bytes
    /// between caches.
    pub(crate) waste: f64,
    pub(crate) growth: GrowthLatency,
    pub(crate) prefix: PrefixUse,
    pub(crate) timeline: Timeline,
}

/// A request that never completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedRequest {
    /// [`Request::line`](super::trace::Request::line).
    pub(crate) line: u64,
    /// The store's words.
    pub(crate) reason: String,
}
