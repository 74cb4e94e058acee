//! The machine that the figures are from, in a line.

use std::fs;
use std::process::Command;

/// Processor, cores, kernel, huge pages, overcommit, compiler.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {cores} cores, Linux {}, transparent huge pages {}, overcommit mode {}, {}",
        processor(),
        read("/proc/sys/kernel/osrelease"),
        chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        read("/proc/sys/vm/overcommit_memory"),
        compiler(),
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The word in brackets.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

fn processor() -> String {
    let text = read("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": "))
        .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    output
        .map_or_else(|_| "unknown rustc".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
