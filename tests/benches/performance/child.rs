//! One variant in a process of its own, so that a peak is its own and a first load is the first.
//!
//! The program runs itself as `performance child VARIANT`; the child prints its figures on one line.

use crate::{counts, loading, reallocation};
use std::process::Command;

const MARK: &str = "child";

/// The variant that this process is to run, where it is a child.
pub(crate) fn requested() -> Option<Vec<String>> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == MARK).then(|| arguments.collect())
}

/// Runs a variant and prints its figures.
pub(crate) fn run(variant: &[String]) {
    match variant {
        [what, path] if what == "load" => println!("{}", loading::in_this_process(path)),
        [what] if what == "steps" => counts::steps_in_this_process(),
        [what] => println!("{}", reallocation::in_this_process(what)),
        _ => panic!("a variant that is not known: {variant:?}"),
    }
}

/// The command that runs a variant.
pub(crate) fn command(variant: &[&str]) -> (std::path::PathBuf, Vec<String>) {
    let program = std::env::current_exe().expect("the program knows its path");
    let arguments = std::iter::once(MARK).chain(variant.iter().copied()).map(str::to_owned).collect();
    (program, arguments)
}

/// The figures of a child.
pub(crate) fn figures(variant: &[&str]) -> Vec<f64> {
    let (program, arguments) = command(variant);
    let output = Command::new(program).args(arguments).output().expect("the program can be run");
    assert!(output.status.success(), "{variant:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().map(|figure| figure.parse().expect("a child prints figures")).collect()
}
