//! What may stand on the command line.

use crate::replay::ReplayArguments;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Memory for inference engines that grows without moving: what is loaded, and what it costs.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit status: 0 done; 1 what was asked for does not hold; 2 usage, or input that can't be read.\n\
                  Environment: LEASEHOLD_REGISTRY names the registry file; LEASEHOLD_SELECT and LEASEHOLD_DISABLE are\n\
                  comma-separated patterns of backing names; LEASEHOLD_LOG sets the log level (error, warn, info, debug)."
)]
pub(crate) struct Arguments {
    /// The registry file; default: $LEASEHOLD_REGISTRY, ./registry.toml, the user's, the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) registry: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every backing of the registry file: its state, device, capabilities, and why it is not ready
    List(ListArguments),
    /// Each stage that one backing went through, with what was found there
    Explain(ExplainArguments),
    /// Replay an LLM request trace over real buffers, beside preallocating and reallocating
    Replay(Box<ReplayArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The backing's name in the registry file
    pub(crate) name: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
