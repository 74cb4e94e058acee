//! One operation in a process of its own: `baseline child NAME`, which prints what it counted as JSON.
//!
//! The child has no environment but `PATH`, so that no variable and no length of a path changes what is executed.

use crate::{callgrind, meter::Meter, paths};
use leasehold_tests::baseline::Figures;
use serde::{Deserialize, Serialize};
use std::process::{Command, Output};

/// What a child prints.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Counted {
    /// How many operations were counted.
    pub(crate) operations: u32,
    /// What it counts itself.
    pub(crate) figures: Figures,
}

/// Runs an operation and prints what was counted.
pub(crate) fn run(name: &str) -> Result<(), String> {
    let path = paths::find(name).ok_or_else(|| format!("there is no operation {name:?}"))?;
    let mut meter = Meter::default();
    path(&mut meter);
    println!("{}", serde_json::to_string(&meter.counted()).map_err(|error| error.to_string())?);
    Ok(())
}

/// The figures of an operation: those that a child counts, and with valgrind those of a second child under callgrind.
pub(crate) fn figures(name: &str, valgrind: bool) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = output(Command::new(&program).args(["child", name]))?;
    let counted: Counted = serde_json::from_slice(&output.stdout).map_err(|error| format!("{name}: {error}"))?;
    let mut figures = counted.figures;
    if valgrind {
        let cost = callgrind::count(&program, name)?;
        figures.instructions = Some(each(cost.instructions, counted.operations)?);
        if figures.driver_calls.is_empty() {
            figures.system_calls = Some(each(cost.system_calls, counted.operations)?);
        }
    }
    Ok(figures)
}

/// Of one operation, to a hundredth.
fn each(total: u64, operations: u32) -> Result<f64, String> {
    let total = u32::try_from(total).map_err(|_| format!("{total} is more than is counted here; count fewer turns"))?;
    Ok((f64::from(total) * 100.0 / f64::from(operations)).round() / 100.0)
}

/// Runs a command in a bare environment.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
