//! Turns the times of growth calls into a median, a tail and a maximum.
//!
//! Owns one histogram of fixed size: recording allocates nothing, however long the run.

use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use serde::Serialize;

/// A call that takes longer counts as this long among the quantiles; the maximum is exact.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How long growth calls took, in nanoseconds; all 0 where there was none. Serialised under these
/// names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct GrowthLatency {
    /// Calls that gave room; refused ones are not counted.
    pub(crate) calls: u64,
    /// As near as the timer's significant figures, as is `p99_ns`.
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    /// Exact.
    pub(crate) max_ns: u64,
}

/// Collects the times of growth calls.
#[derive(Clone, Debug)]
pub(super) struct GrowthTimer {
    histogram: Histogram<u64>,
    max_ns: u64,
}

impl GrowthTimer {
    /// With quantiles to so many significant figures.
    ///
    /// # Errors
    /// None in practice: the bounds are constants that the histogram takes.
    pub(super) fn new(significant_figures: u8) -> Result<Self, CreationError> {
        Ok(Self { histogram: Histogram::new_with_max(LONGEST_NS, significant_figures)?, max_ns: 0 })
    }

    pub(super) fn latency(&self) -> GrowthLatency {
        // A quantile is the top of its bucket, which may lie above the largest value.
        let quantile = |q| self.histogram.value_at_quantile(q).min(self.max_ns);
        GrowthLatency {
            calls: self.histogram.len(),
            p50_ns: quantile(0.50),
            p99_ns: quantile(0.99),
            max_ns: self.max_ns,
        }
    }

    pub(super) fn record(&mut self, elapsed: Duration) {
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanoseconds);
        self.max_ns = self.max_ns.max(nanoseconds);
    }

    /// Takes over what another one of as many figures collected.
    pub(super) fn merge(&mut self, other: &Self) {
        // The bounds of both are the same, so that every value fits.
        let _ = self.histogram.add(&other.histogram);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_recorded() {
        let mut timer = GrowthTimer::new(3).unwrap();
        for microseconds in 1..=100 {
            timer.record(Duration::from_micros(microseconds));
        }
        let latency = timer.latency();
        assert_eq!((latency.calls, latency.max_ns), (100, 100_000));
        assert!(latency.p50_ns.abs_diff(50_000) <= 50, "{latency:?}");
        assert!(latency.p99_ns.abs_diff(99_000) <= 99, "{latency:?}");
    }

    #[test]
    fn without_a_call_all_is_0() {
        assert_eq!(GrowthTimer::new(3).unwrap().latency(), GrowthLatency::default());
    }

    #[test]
    fn a_call_past_the_longest_keeps_its_exact_maximum() {
        let mut timer = GrowthTimer::new(3).unwrap();
        timer.record(Duration::from_secs(7200));
        assert_eq!(timer.latency().max_ns, 7_200_000_000_000);
    }
}
