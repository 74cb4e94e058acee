//! Turns a run's steps into points over trace time, as many as fit a bound, however long the trace.
//!
//! Input: each step's clock and what is held in it, and the time of each growth call. Output: a [`Timeline`]. Time is
//! cut into buckets of one width. When a step lies past the last bucket, neighbours are merged and the width doubles:
//! the resolution halves, memory stays what it was. A bucket keeps the most of what it saw, so that a peak is never
//! lost, and a small histogram of growth times.
//!
//! Nothing runs in a bucket without a step: the scheduler's clock jumps over idle time only.

use super::latency::{GrowthLatency, GrowthTimer};
use hdrhistogram::CreationError;
use std::time::Duration;

/// About as many as a chart has pixels for; even, so that neighbours pair up.
const MOST_BUCKETS: usize = 512;
/// No chart shows less, and a width of nothing would never grow.
const SHORTEST: Duration = Duration::from_millis(1);
/// Quantiles to within a sixteenth, which no chart shows, at five kilobytes a bucket.
const SIGNIFICANT_FIGURES: u8 = 1;

/// What a run held at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) owned_bytes: u64,
    pub(crate) mapped_bytes: u64,
    /// What the tokens need.
    pub(crate) ideal_bytes: u64,
    pub(crate) running: u64,
}

/// A run over trace time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// Trace time that one point stands for.
    pub(crate) width: Duration,
    /// Without gaps, from the first request's arrival on.
    pub(crate) points: Vec<TimePoint>,
}

/// What happened in one stretch of trace time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimePoint {
    /// When it begins.
    pub(crate) at: Duration,
    /// The most of each, maybe at different times.
    pub(crate) most: Held,
    /// Of the growth calls that succeeded; `None` where there was none.
    pub(crate) growth: Option<GrowthLatency>,
}

/// Collects a [`Timeline`].
#[derive(Debug)]
pub(super) struct TimelineRecorder {
    /// At most [`MOST_BUCKETS`]; the last is the one of the newest step.
    buckets: Vec<Bucket>,
    width: Duration,
    /// To make others from.
    empty: GrowthTimer,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    most: Held,
    /// Made for the first growth call: idle time costs no memory.
    growth: Option<GrowthTimer>,
}

impl TimelineRecorder {
    /// For steps of this length, at first a bucket each.
    ///
    /// # Errors
    /// None in practice: the bounds of histograms are constants.
    pub(super) fn new(step: Duration) -> Result<Self, CreationError> {
        let empty = GrowthTimer::new(SIGNIFICANT_FIGURES)?;
        let width = step.max(SHORTEST);
        Ok(Self { buckets: vec![Bucket::default()], width, empty })
    }

    /// A step begins, no earlier than the one before; what is recorded next belongs to it.
    pub(super) fn begin_step(&mut self, clock: Duration) {
        while self.bucket_of(clock) >= MOST_BUCKETS {
            self.halve_resolution();
        }
        let wanted = self.bucket_of(clock).saturating_add(1);
        if wanted > self.buckets.len() {
            self.buckets.resize(wanted, Bucket::default());
        }
    }

    pub(super) fn record_held(&mut self, held: Held) {
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.most = bucket.most.or_more(held);
        }
    }

    /// Allocates for the first call of a bucket only.
    pub(super) fn record_growth(&mut self, elapsed: Duration) {
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.growth.get_or_insert_with(|| self.empty.clone()).record(elapsed);
        }
    }

    pub(super) fn timeline(&self) -> Timeline {
        let starts = (0..).map(|bucket| self.width.saturating_mul(bucket));
        let points = starts.zip(&self.buckets);
        let growth = |bucket: &Bucket| bucket.growth.as_ref().map(GrowthTimer::latency);
        let points = points.map(|(at, bucket)| TimePoint { at, most: bucket.most, growth: growth(bucket) });
        Timeline { width: self.width, points: points.collect() }
    }

    fn bucket_of(&self, clock: Duration) -> usize {
        let bucket = clock.as_nanos().checked_div(self.width.as_nanos()); // the width is never 0
        usize::try_from(bucket.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    /// Merges the second of each two neighbours into the first.
    fn halve_resolution(&mut self) {
        let mut merged: Vec<Bucket> = Vec::with_capacity(MOST_BUCKETS);
        for (position, bucket) in self.buckets.drain(..).enumerate() {
            match merged.last_mut() {
                Some(first) if !position.is_multiple_of(2) => first.merge(bucket),
                _ => merged.push(bucket),
            }
        }
        self.buckets = merged;
        self.width = self.width.saturating_mul(2);
    }
}

impl Bucket {
    fn merge(&mut self, later: Self) {
        self.most = self.most.or_more(later.most);
        match (&mut self.growth, later.growth) {
            (Some(growth), Some(more)) => growth.merge(&more),
            (growth @ None, more) => *growth = more,
            (Some(_), None) => {}
        }
    }
}

impl Held {
    fn or_more(self, other: Self) -> Self {
        Self {
            owned_bytes: self.owned_bytes.max(other.owned_bytes),
            mapped_bytes: self.mapped_bytes.max(other.mapped_bytes),
            ideal_bytes: self.ideal_bytes.max(other.ideal_bytes),
            running: self.running.max(other.running),
        }
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test whose arithmetic overflows fails")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: Duration = Duration::from_millis(25);

    fn running(running: u64) -> Held {
        Held { running, ..Held::default() }
    }

    fn recorded(steps: impl IntoIterator<Item = (Duration, u64)>) -> Timeline {
        let mut recorder = TimelineRecorder::new(STEP).unwrap();
        for (clock, requests) in steps {
            recorder.begin_step(clock);
            recorder.record_held(running(requests));
            recorder.record_growth(Duration::from_micros(requests));
        }
        recorder.timeline()
    }

    #[test]
    fn a_short_run_has_a_point_for_each_step() {
        let timeline = recorded([(Duration::ZERO, 3), (STEP, 5), (STEP * 3, 4)]);
        assert_eq!(timeline.width, STEP);
        let points = timeline.points.iter();
        let seen: Vec<_> = points.map(|point| (point.at, point.most.running, point.growth.is_some())).collect();
        assert_eq!(seen, [(Duration::ZERO, 3, true), (STEP, 5, true), (STEP * 2, 0, false), (STEP * 3, 4, true)]);
    }

    #[test]
    fn a_bucket_keeps_the_most_of_each() {
        let mut recorder = TimelineRecorder::new(STEP).unwrap();
        recorder.begin_step(Duration::ZERO);
        recorder.record_held(Held { owned_bytes: 9, mapped_bytes: 10, ideal_bytes: 3, running: 1 });
        recorder.record_held(Held { owned_bytes: 5, mapped_bytes: 20, ideal_bytes: 4, running: 0 });
        let expected = Held { owned_bytes: 9, mapped_bytes: 20, ideal_bytes: 4, running: 1 };
        assert_eq!(recorder.timeline().points[0].most, expected);
    }

    #[test]
    fn quantiles_are_near_and_the_maximum_is_exact() {
        let timeline = recorded((1..=100).map(|requests| (Duration::ZERO, requests)));
        let growth = timeline.points[0].growth.unwrap();
        assert_eq!((growth.calls, growth.max_ns), (100, 100_000));
        assert!(growth.p50_ns.abs_diff(50_000) <= 50_000 / 16, "{growth:?}");
        assert!(growth.p99_ns.abs_diff(99_000) <= 99_000 / 16, "{growth:?}");
    }

    #[test]
    fn a_run_of_any_length_keeps_within_the_bound_and_loses_no_peak_or_call() {
        let steps = 100_000;
        let timeline = recorded((0..steps).map(|step| (STEP * step, u64::from(step == 54_321) * 7 + 1)));
        assert!(timeline.points.len() <= MOST_BUCKETS && timeline.points.len() > MOST_BUCKETS / 2);
        assert_eq!(timeline.points.iter().map(|point| point.most.running).max(), Some(8));
        let calls: u64 = timeline.points.iter().filter_map(|point| point.growth).map(|growth| growth.calls).sum();
        assert_eq!(calls, u64::from(steps));
        let peak = timeline.points.iter().find(|point| point.most.running == 8).unwrap();
        assert!((peak.at..peak.at + timeline.width).contains(&(STEP * 54_321)));
    }

    #[test]
    fn a_jump_over_years_costs_no_memory() {
        let years = Duration::from_secs(3600 * 24 * 365 * 30);
        let timeline = recorded([(Duration::ZERO, 2), (years, 3), (Duration::MAX, 4)]);
        assert!(timeline.points.len() <= MOST_BUCKETS);
        assert_eq!(timeline.points.last().map(|point| point.most.running), Some(4));
    }

    proptest! {
        #[test]
        fn every_step_lies_within_the_point_that_shows_it(
            gaps in prop::collection::vec(0u64..100_000, 1..50),
            step in 0u64..50,
        ) {
            let mut recorder = TimelineRecorder::new(Duration::from_millis(step)).unwrap();
            let mut clock = Duration::ZERO;
            let mut clocks = Vec::new();
            for gap in gaps {
                clock += Duration::from_millis(gap);
                recorder.begin_step(clock);
                recorder.record_growth(STEP);
                clocks.push(clock);
            }
            let Timeline { width, points } = recorder.timeline();
            prop_assert!(points.len() <= MOST_BUCKETS);
            for (before, after) in points.iter().zip(&points[1..]) {
                prop_assert_eq!(before.at + width, after.at);
            }
            for point in points {
                let within = clocks.iter().filter(|clock| (point.at..point.at + width).contains(*clock)).count();
                let calls = point.growth.map_or(0, |growth| growth.calls);
                prop_assert_eq!(calls, u64::try_from(within).unwrap());
            }
        }
    }
}
