//! The report of `leasehold replay` for people at a terminal.

use super::outcome::Runs;
use super::results;
use super::setup::Setup;
use crate::output;

pub(super) fn text(setup: &Setup, runs: &Runs) -> String {
    let header = results::header(setup);
    let mut table = output::table(&header, &(results::WORDS..header.len()).collect::<Vec<_>>());
    for row in results::rows(setup, runs) {
        table.add_row(row);
    }
    let mut lines = vec![format!("trace: {}, {} requests", setup.format, setup.requests), table.to_string()];
    lines.extend(results::remarks(setup, runs).iter().map(|remark| output::clean(remark)));
    lines.join("\n")
}
