//! The table: what was measured, beside what, how the two compare, and whether the aim is met.

use std::fmt;

/// A Markdown table.
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// One comparison.
pub(crate) struct Row {
    pub(crate) what: String,
    /// The median, with its unit.
    pub(crate) ours: String,
    pub(crate) beside: &'static str,
    /// As `ours`; empty where there is nothing beside it.
    pub(crate) theirs: String,
    pub(crate) comparison: String,
    pub(crate) aim: Aim,
}

/// What a figure should be.
pub(crate) enum Aim {
    /// At most so much: text, limit, seen.
    AtMost(&'static str, f64, f64),
    /// At least so much: text, limit, seen.
    AtLeast(&'static str, f64, f64),
    /// No aim: reported.
    Reported,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: Row) {
        eprintln!("measured: {}", row.what);
        self.rows.push(row);
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, met) = match self {
            Aim::AtMost(text, limit, seen) => (text, seen <= limit),
            Aim::AtLeast(text, limit, seen) => (text, seen >= limit),
            Aim::Reported => return formatter.write_str("reported"),
        };
        write!(formatter, "{text}: {}", if met { "met" } else { "**missed**" })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, ours, beside, theirs, comparison, aim } = self;
        write!(formatter, "| {what} | {ours} | {beside} | {theirs} | {comparison} | {aim} |")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "| what | median | beside | median | median of pairs (min..max) | aim |")?;
        writeln!(formatter, "|---|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(formatter, "{row}"))
    }
}
