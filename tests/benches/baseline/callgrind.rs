//! Instructions and system calls of the counted turns alone, by callgrind.

use crate::child;
use leasehold_tests::baseline::{Cost, cost_of_calls};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The function that runs the counted turns.
const COUNTED: &str = "counted_by_callgrind";

/// Whether valgrind can be run.
pub(crate) fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs an operation under callgrind, which collects costs only within the function that runs the counted turns. What the
/// simulated driver executes is left out of the instructions: its functions are those whose symbols begin with `cu`, and
/// no mangled name begins so.
pub(crate) fn count(program: &Path, name: &str) -> Result<Cost, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let file = folder.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--demangle=no", "--collect-atstart=no", "--collect-systime=yes"]);
    command.arg(format!("--toggle-collect=*{COUNTED}*"));
    command.arg(format!("--callgrind-out-file={}", file.display())).arg(program).args(["child", name]);
    child::output(&mut command)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    cost(&text).map_err(|why| format!("{name}: the file of callgrind can't be used: {why}"))
}

fn cost(text: &str) -> Result<Cost, String> {
    let all = cost_of_calls(text, |function| function.contains(COUNTED))?;
    let of_driver = cost_of_calls(text, |function| function.starts_with("cu"))?;
    if all.instructions == 0 {
        return Err(format!("{COUNTED} was not called"));
    }
    Ok(Cost { instructions: all.instructions - of_driver.instructions, ..all })
}
