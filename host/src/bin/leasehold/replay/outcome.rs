//! What one run of the scheduler found.

use super::latency::GrowthLatency;
use super::prefix::PrefixUse;
use super::strategy::StrategyName;
use super::timeline::Timeline;

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
