//! A test that needs a process of its own: another environment, libraries that nobody has opened yet.
//!
//! The test calls [`in_child`] first thing. In the process of the test runner that runs the same test once more, alone,
//! in a child, and passes or fails as it does; in the child it answers that the body is to run.

use std::process::Command;

/// Set in a child, to the name of its test.
const MARK: &str = "LEASEHOLD_TEST_CHILD";

/// Whether this is the child, where the body of test `name` has to run. `name` is what the test runner calls it, and
/// the child's environment has `variables` on top.
///
/// # Panics
///
/// Where the child fails, with what it wrote.
#[must_use]
pub fn in_child(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(MARK).is_some_and(|mark| mark == name) {
        return true;
    }
    let program = std::env::current_exe().expect("the system knows which program runs");
    let output = Command::new(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MARK, name)
        .envs(variables.iter().copied())
        .output()
        .expect("the program starts once more");
    let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} in a child: {}\n{words}", output.status);
    assert!(words.contains("1 passed"), "{name} is no test of this program:\n{words}");
    false
}
