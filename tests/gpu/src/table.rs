//! The table, and what came of each of its rows.

use crate::hosts::Settings;
use leasehold::ErrorKind as HostKind;
use leasehold_cuda_driver::Fault;
use leasehold_plugin_api::{BackingError, ErrorKind};
use std::fmt::{self, Display};
use std::num::TryFromIntError;
use std::time::Duration;

/// Why a row has no figure.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The driver or the device lacks what it takes: nobody's mistake.
    Lacking(String),
    /// Something is wrong.
    Wrong(String),
}

impl Trouble {
    pub(crate) fn wrong(what: impl Into<String>) -> Self {
        Self::Wrong(what.into())
    }

    fn of(is_lacking: bool, error: &impl Display) -> Self {
        if is_lacking { Self::Lacking(error.to_string()) } else { Self::Wrong(error.to_string()) }
    }
}

impl Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking(why) | Self::Wrong(why) => formatter.write_str(why),
        }
    }
}

fn is_lacking(kind: ErrorKind) -> bool {
    let shortages = [ErrorKind::OutOfMemory, ErrorKind::AddressSpaceExhausted, ErrorKind::Unsupported];
    shortages.contains(&kind) || kind == ErrorKind::Unavailable
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::of(is_lacking(fault.kind()), &fault)
    }
}

impl From<BackingError> for Trouble {
    fn from(error: BackingError) -> Self {
        Self::of(is_lacking(error.kind()), &error)
    }
}

impl From<leasehold::Error> for Trouble {
    fn from(error: leasehold::Error) -> Self {
        let shortages = [HostKind::OutOfMemory, HostKind::AddressSpaceExhausted, HostKind::Unsupported];
        Self::of(shortages.contains(&error.kind()), &error)
    }
}

impl From<TryFromIntError> for Trouble {
    fn from(error: TryFromIntError) -> Self {
        Self::wrong(error.to_string())
    }
}

/// Rows of what was measured and the figure.
pub(crate) struct Table {
    title: String,
    rows: Vec<(String, String)>,
    is_right: bool,
}

impl Table {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { title: settings.title(), rows: Vec::new(), is_right: true }
    }

    /// Whether nothing was wrong.
    pub(crate) fn is_right(&self) -> bool {
        self.is_right
    }

    pub(crate) fn add(&mut self, what: impl Into<String>, figure: Result<String, Trouble>) {
        let figure = match figure {
            Ok(figure) => figure,
            Err(Trouble::Lacking(why)) => format!("not measured: {why}"),
            Err(Trouble::Wrong(why)) => {
                self.is_right = false;
                format!("**wrong**: {why}")
            }
        };
        let what = what.into();
        eprintln!("{what}: {figure}");
        self.rows.push((what, figure));
    }
}

impl Display for Table {
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
