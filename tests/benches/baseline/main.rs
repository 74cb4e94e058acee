//! What operations cost in figures that are the same on every run, beside those that are checked in.
//!
//! `cargo bench -p leasehold-tests --bench baseline` compares with `tests/baseline.json` and exits with 1 where an operation
//! takes more; names of operations measure these only. `-- --write --reason TEXT` writes the file. docs/testing.md says
//! what is counted.
//!
//! ```text
//!   main ─► child: one operation in a process of its own ─► paths ─► meter: runs it, counts mappings and driver calls
//!     │        └─ a second time under callgrind: instructions and system calls
//!     └─► leasehold_tests::baseline: the file and the comparison
//! ```

mod callgrind;
mod child;
mod meter;
mod paths;
mod rigs;

use leasehold_tests::baseline::{Baseline, Paths, compare};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What the command line asks for.
enum Task {
    /// Run one operation for the process that started this one.
    Child(String),
    /// Compare with the file: these operations, or all where none is named.
    Compare(Vec<String>),
    /// Write the file.
    Write { reason: String },
}

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        println!("nothing is measured: this build is not optimised; run it by `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let done = match Task::parse(std::env::args().skip(1)) {
        Ok(Task::Child(name)) => child::run(&name),
        Ok(Task::Compare(names)) => compare_with_file(&names),
        Ok(Task::Write { reason }) => write_file(reason),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Task {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        // Cargo adds it for every benchmark.
        let arguments: Vec<_> = arguments.filter(|argument| argument != "--bench").collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        match arguments.as_slice() {
            ["child", name] => Ok(Self::Child((*name).to_owned())),
            ["--write", "--reason", reason] if !reason.trim().is_empty() => {
                Ok(Self::Write { reason: (*reason).to_owned() })
            }
            names if names.iter().all(|name| paths::find(name).is_some()) => {
                Ok(Self::Compare(names.iter().map(|name| (*name).to_owned()).collect()))
            }
            other => Err(format!(
                "unknown arguments {other:?}: give names of operations, or --write --reason TEXT; operations: {}",
                paths::names().collect::<Vec<_>>().join(" ")
            )),
        }
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
}

fn compare_with_file(names: &[String]) -> Result<(), String> {
    let text = fs::read_to_string(file()).map_err(|error| format!("{}: {error}", file().display()))?;
    let mut held = Baseline::parse(&text).map_err(|error| format!("{}: {error}", file().display()))?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|named| named == name);
    held.paths.retain(|name, _| is_wanted(name));
    let valgrind = callgrind::is_installed();
    let comparison = compare(&held.paths, &measure(is_wanted, valgrind)?);
    println!("{comparison}");
    if !valgrind {
        println!("valgrind is not installed: instructions and system calls were not counted and not compared");
    }
    if comparison.failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "an operation costs more than the baseline holds:\n  {}\nthe baseline is of {}, this run of {}.\nWhere that is \
         intended, write it anew and say why:\n  cargo bench -p leasehold-tests --bench baseline -- --write --reason \
         \"...\"",
        comparison.failures.join("\n  "),
        held.compiler,
        compiler()
    ))
}

fn write_file(reason: String) -> Result<(), String> {
    if !callgrind::is_installed() {
        return Err("the baseline is not written: valgrind is not installed; install it".to_owned());
    }
    let baseline = Baseline { reason, compiler: compiler(), paths: measure(|_| true, true)? };
    fs::write(file(), baseline.to_text()).map_err(|error| format!("{}: {error}", file().display()))?;
    println!("{}", baseline.to_text());
    Ok(())
}

fn measure(is_wanted: impl Fn(&str) -> bool, valgrind: bool) -> Result<Paths, String> {
    let names = paths::names().filter(|name| is_wanted(name));
    names.map(|name| Ok((name.to_owned(), child::figures(name, valgrind)?))).collect()
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    output.map_or_else(
        |error| format!("an unknown compiler ({error})"),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
