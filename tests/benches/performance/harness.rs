//! Samples that are taken in turns, and what is made of them: medians, and ratios of neighbours.
//!
//! Variants run A B A B …, so that whatever else the machine does meets all of them alike.

use std::time::Instant;

/// One sample per round, in the order in which they were taken: nanoseconds, or what a variant measures in one go.
pub(crate) struct Samples<T = f64>(Vec<T>);

/// The middle and the ends of some figures.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Takes one sample of each variant in every round, after `warm_up` rounds that don't count.
pub(crate) fn interleave<T, const N: usize>(
    warm_up: usize,
    rounds: usize,
    mut variants: [&mut dyn FnMut() -> T; N],
) -> [Samples<T>; N] {
    for _ in 0..warm_up {
        variants.iter_mut().for_each(|variant| {
            variant();
        });
    }
    let mut taken = [const { Vec::new() }; N];
    for _ in 0..rounds {
        variants.iter_mut().zip(&mut taken).for_each(|(variant, samples)| samples.push(variant()));
    }
    taken.map(Samples)
}

/// Nanoseconds that the work takes.
pub(crate) fn nanos(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e9
}

/// Nanoseconds that one of `count` turns takes.
pub(crate) fn nanos_each(count: u32, mut turn: impl FnMut(u64)) -> f64 {
    let all = nanos(|| (0..u64::from(count)).for_each(&mut turn));
    all / f64::from(count)
}

impl<T> Samples<T> {
    /// One figure of each sample.
    pub(crate) fn each(&self, figure: impl Fn(&T) -> f64) -> Samples {
        Samples(self.0.iter().map(figure).collect())
    }
}

impl Samples {
    pub(crate) fn spread(&self) -> Spread {
        Spread::of(self.0.clone())
    }

    pub(crate) fn median(&self) -> f64 {
        self.spread().median
    }

    /// The median with its unit.
    pub(crate) fn time(&self) -> String {
        time(self.median())
    }

    /// By how many times each sample of `other` exceeds its neighbour of ours.
    pub(crate) fn times_faster_than(&self, other: &Self) -> Spread {
        self.with_neighbours(other, |ours, theirs| theirs / ours)
    }

    /// Each of our samples as a multiple of its neighbour.
    pub(crate) fn relative_to(&self, other: &Self) -> Spread {
        self.with_neighbours(other, |ours, theirs| ours / theirs)
    }

    /// What each of our samples has beyond its neighbour.
    pub(crate) fn beyond(&self, other: &Self) -> Spread {
        self.with_neighbours(other, |ours, theirs| ours - theirs)
    }

    fn with_neighbours(&self, other: &Self, compare: impl Fn(f64, f64) -> f64) -> Spread {
        Spread::of(self.0.iter().zip(&other.0).map(|(ours, theirs)| compare(*ours, *theirs)).collect())
    }
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let (count, middle) = (figures.len(), figures.len() / 2);
        let median = if count % 2 == 0 { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 } else { at(middle) };
        Self { median, least: at(0), most: at(count.wrapping_sub(1)) }
    }

    /// As times with their unit: `3.1 ms (2.9 ms..3.4 ms)`.
    pub(crate) fn times(self) -> String {
        format!("{} ({}..{})", time(self.median), time(self.least), time(self.most))
    }

    /// As multiples: `12.3 × (11.9..12.8)`.
    pub(crate) fn multiples(self) -> String {
        let Self { median, least, most } = self;
        format!("{} × ({}..{})", significant(median), significant(least), significant(most))
    }

    /// As nanoseconds more or less: `+3.1 ns (+2.9..+3.4)`.
    pub(crate) fn nanoseconds(self) -> String {
        let Self { median, least, most } = self;
        format!("{median:+.1} ns ({least:+.1}..{most:+.1})")
    }
}

/// Three digits that matter.
fn significant(figure: f64) -> String {
    match figure {
        figure if figure >= 99.5 => format!("{figure:.0}"),
        figure if figure >= 9.95 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}

/// Nanoseconds in the unit that suits them.
pub(crate) fn time(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| nanoseconds >= *scale).unwrap_or((1.0, "ns"));
    format!("{} {unit}", significant(nanoseconds / scale))
}
