//! The program `leasehold`: what the registry file loads, and what it costs an engine.
//!
//! ```text
//!   arguments ──► registry_choice ──► session (a Host) ──► list | explain | replay ──► output
//! ```
//!
//! Each command computes a report and then prints it, as a table for people or as JSON for programs. Reports go to
//! standard output, everything else to standard error. Exit status: 0 done; 1 what was asked for does not hold; 2 usage,
//! or input that can't be read.

mod arguments;
mod explain;
mod failure;
mod list;
mod output;
mod registry_choice;
mod replay;
mod session;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    output::start_log();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&format!("leasehold: {failure}"));
            failure.exit_status()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { registry, command } = arguments;
    match command {
        Command::List(options) => list::run(registry, &options),
        Command::Explain(options) => explain::run(registry, &options),
        Command::Replay(options) => replay::run(registry, &options),
    }
}
