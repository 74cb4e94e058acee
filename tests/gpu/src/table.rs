//! The table.

use crate::hosts::Settings;
use std::fmt;
use std::time::Duration;

/// Rows of what was measured and the figure.
pub(crate) struct Table {
    title: String,
    rows: Vec<(String, String)>,
}

impl Table {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { title: settings.title(), rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, what: impl Into<String>, figure: impl Into<String>) {
        let (what, figure) = (what.into(), figure.into());
        eprintln!("{what}: {figure}");
        self.rows.push((what, figure));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}\n\n| what | figure |\n|---|---|", self.title)?;
        self.rows.iter().try_for_each(|(what, figure)| writeln!(formatter, "| {what} | {figure} |"))
    }
}

/// The middle and the far end of some times.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    match (at(50), at(99)) {
        (Some(median), Some(tail)) => format!("median {median:.2?}, p99 {tail:.2?}, {} calls", times.len()),
        _ => "nothing was measured".to_owned(),
    }
}
