//! Where reports and log lines go, and how tables look.

use crate::failure::Failure;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

const LOG_VARIABLE: &str = "LEASEHOLD_LOG";

/// Tells people something beside the report. Where standard error can't be written, nobody is there to be told.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A text from elsewhere, with control characters shown instead of obeyed.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|character| match character.is_control() {
            true => character.escape_default().collect::<Vec<_>>(),
            false => vec![character],
        })
        .collect()
}

/// Sends log lines to standard error: errors only, unless `LEASEHOLD_LOG` says otherwise.
pub(crate) fn start_log() {
    let filter = match std::env::var(LOG_VARIABLE).ok().filter(|levels| !levels.is_empty()) {
        None => EnvFilter::new("error"),
        Some(levels) => EnvFilter::try_new(&levels).unwrap_or_else(|error| {
            say(&format!(
                "{LOG_VARIABLE}: not taken: {levels:?} is no log level ({error}); set error, warn, info or debug"
            ));
            EnvFilter::new("error")
        }),
    };
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// Prints a report. A reader that went away has read enough.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unusable(format!("standard output can't be written ({error})")))
        }
        _ => Ok(()),
    }
}

/// Prints a report as JSON.
pub(crate) fn print_json(report: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(report).map_err(Failure::unusable)?)
}

/// An empty table; the columns named in `numeric` are aligned to the right.
pub(crate) fn table(header: &[&str], numeric: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for column in numeric {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_instead_of_obeyed() {
        assert_eq!(clean("a\u{1b}[31mb\n\u{e9}"), "a\\u{1b}[31mb\\n\u{e9}");
    }
}
