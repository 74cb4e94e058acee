//! A run beside the baseline: a table, and what fails.

use super::{Figures, Paths};
use std::fmt;

/// By how much instructions may grow.
const TOLERANCE: f64 = 1.05;

/// Every figure of the baseline beside that of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    rows: Vec<Row>,
    /// What fails, in words; empty where nothing does.
    pub failures: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    path: String,
    figure: String,
    before: Option<f64>,
    now: Option<f64>,
}

/// How much more of a figure is accepted.
#[derive(Clone, Copy)]
enum Rule {
    Tolerant,
    NoMore,
}

/// Compares a run with the baseline. An operation that only one of the two has fails.
#[must_use]
pub fn compare(before: &Paths, now: &Paths) -> Comparison {
    let mut comparison = Comparison { rows: Vec::new(), failures: Vec::new() };
    for (path, figures) in now {
        match before.get(path) {
            Some(before) => comparison.add(path, before, figures),
            None => comparison.failures.push(format!("{path}: the baseline does not hold it")),
        }
    }
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    comparison.failures.extend(gone.map(|path| format!("{path}: the baseline holds it, and it was not measured")));
    comparison
}

impl Comparison {
    fn add(&mut self, path: &str, before: &Figures, now: &Figures) {
        self.figure(path, "instructions", before.instructions, now.instructions, Rule::Tolerant);
        self.figure(path, "system calls", before.system_calls, now.system_calls, Rule::NoMore);
        self.figure(path, "mappings", before.mappings.map(float), now.mappings.map(float), Rule::NoMore);
        let mut functions: Vec<_> = before.driver_calls.keys().chain(now.driver_calls.keys()).collect();
        functions.sort();
        functions.dedup();
        for function in functions {
            let count = |figures: &Figures| Some(float(figures.driver_calls.get(function).copied().unwrap_or(0)));
            self.figure(path, function, count(before), count(now), Rule::NoMore);
        }
    }

    /// Adds a row where either side has the figure. What only the run has fails: nothing would hold it.
    fn figure(&mut self, path: &str, figure: &str, before: Option<f64>, now: Option<f64>, rule: Rule) {
        if before.is_none() && now.is_none() {
            return;
        }
        self.rows.push(Row { path: path.to_owned(), figure: figure.to_owned(), before, now });
        let failure = match (before, now) {
            (None, Some(now)) => format!("{now} {figure}, which the baseline does not hold"),
            (Some(before), Some(now)) if now > rule.most(before) => {
                format!("{now} {figure}, {before} in the baseline ({})", rule.words())
            }
            _ => return,
        };
        self.failures.push(format!("{path}: {failure}"));
    }
}

impl Rule {
    fn most(self, before: f64) -> f64 {
        match self {
            Self::Tolerant => before * TOLERANCE,
            Self::NoMore => before,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Tolerant => "more than 5 % more",
            Self::NoMore => "more",
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:<28} {:<34} {:>12} {:>12} {:>7}", "operation", "figure", "baseline", "now", "ratio")?;
        self.rows.iter().try_for_each(|row| writeln!(formatter, "{row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string());
        let ratio = match (self.before, self.now) {
            (Some(before), Some(now)) if before > 0.0 => format!("{:.3}", now / before),
            _ => "-".to_owned(),
        };
        let (before, now) = (number(self.before), number(self.now));
        write!(formatter, "{:<28} {:<34} {before:>12} {now:>12} {ratio:>7}", self.path, self.figure)
    }
}

/// Counts here are far below 2^32.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
