//! Turns the choice of a registry file into a host, and says which file it was.

use crate::failure::Failure;
use crate::output;
use crate::registry_choice::{Inputs, RegistryChoice};
use leasehold::{Host, HostBuilder, Selection};
use std::path::PathBuf;

/// Settings for the host of the registry file that the command line, the environment or the disk names.
pub(crate) fn builder(registry: Option<PathBuf>) -> Result<HostBuilder, Failure> {
    let choice = Inputs::of_this_process(registry).choose().map_err(Failure::unusable)?;
    output::say(&output::clean(&choice.to_string()));
    let selection = Selection::from_environment().map_err(Failure::unusable)?;
    let builder = Host::builder().selection(selection);
    Ok(match choice {
        RegistryChoice::File { path, .. } => builder.registry(path),
        RegistryChoice::BuiltinOnly { .. } => builder,
    })
}
