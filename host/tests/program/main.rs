//! The program as its users see it: reports, exit statuses, and what it says of input that is wrong.
#![expect(clippy::unwrap_used, reason = "a test that can't start fails")]

mod cuda;
mod replay;
mod replay_failures;
mod sizes;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The folder where Cargo puts the libraries of a test's dependencies.
fn plugins() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// A folder with a registry file whose backings are these tables, and which searches the plugins.
fn registry(backings: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("registry.toml");
    let text = format!("format = 1\nsearch = [{:?}]\n[budget]\nhost = \"64 MiB\"\n{backings}", plugins());
    fs::write(&path, text).unwrap();
    (folder, path)
}

const HOST_MMAP: &str = "[[backing]]\nname = \"host-mmap\"\nlibrary = \"leasehold_host_mmap\"\n";

/// The program in an empty folder, without settings from the environment.
fn leasehold(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    for variable in ["LEASEHOLD_REGISTRY", "LEASEHOLD_SELECT", "LEASEHOLD_DISABLE", "XDG_CONFIG_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn list_reports_the_backing_that_came_through_the_library() {
    let (folder, _) = registry(HOST_MMAP);
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert_eq!(keys(&report), ["backings"]);
    let backing = &report["backings"][0];
    assert_eq!(
        keys(backing),
        [
            "accounting",
            "authority",
            "capabilities",
            "caution",
            "device",
            "door",
            "granularity",
            "library",
            "name",
            "reason",
            "state",
            "tier"
        ]
    );
    assert_eq!(backing["state"], "ready");
    assert_eq!(backing["door"], "abi_stable");
    assert_eq!(backing["device"], "host:0");
    assert_eq!(backing["capabilities"], serde_json::json!(["allocate", "virtual-backing"]));
    assert!(backing["library"].as_str().unwrap().ends_with("libleasehold_host_mmap.so"));
    assert!(stderr(&output).contains("registry: ./registry.toml"), "{output:?}");
}

#[test]
fn without_a_registry_file_the_built_in_backing_serves_and_the_program_says_so() {
    let folder = TempDir::new().unwrap();
    let output = leasehold(folder.path(), &["list", "--json"]);
    // A machine may have a registry file of its own in /etc.
    if stderr(&output).contains("/etc/leasehold/registry.toml (from") {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(json(&output)["backings"][0]["door"], "builtin");
    assert!(stderr(&output).contains("built-in"), "{output:?}");
}

#[test]
fn a_backing_that_is_not_there_is_reported_and_stops_nobody_unless_it_is_required() {
    let missing = "[[backing]]\nname = \"gone\"\nlibrary = \"no_such_library\"\n";
    let (folder, _) = registry(&format!("{missing}{HOST_MMAP}"));
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert_eq!(report["backings"][0]["state"], "rejected");
    assert!(report["backings"][0]["reason"].as_str().unwrap().contains("libno_such_library.so"));
    assert_eq!(report["backings"][1]["state"], "ready");

    let (folder, _) = registry(&format!("{missing}required = true\n{HOST_MMAP}"));
    let output = leasehold(folder.path(), &["list"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("ready"), "the table is printed all the same");
    assert!(stderr(&output).contains("required backing \"gone\" is rejected"), "{output:?}");
}

#[test]
fn a_wrong_registry_file_is_a_usage_error_with_line_and_column() {
    let (folder, path) = registry("[[backing]]\nname = \"x\"\nlibary = \"y\"\n");
    for command in [&["list"][..], &["explain", "x"], &["replay"]] {
        let output = leasehold(folder.path(), command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("registry.toml:7:1"), "{output:?}");
    }
    fs::remove_file(&path).unwrap();
    let output = leasehold(folder.path(), &["--registry", path.to_str().unwrap(), "list"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn explain_names_every_stage_and_unknown_backings() {
    let (folder, _) = registry(HOST_MMAP);
    let output = leasehold(folder.path(), &["explain", "host-mmap", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let stages: Vec<_> = report["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].clone()).collect();
    assert_eq!(stages, ["registry", "resolve", "load", "create", "discover", "books"]);

    let output = leasehold(folder.path(), &["explain", "hots-mmap"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("there are host-mmap"), "{output:?}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let (folder, _) = registry(HOST_MMAP);
    let wrong: [&[&str]; 7] = [
        &["lsit"],
        &["list", "--jsn"],
        &["replay", "no-such-trace.csv"],
        &["replay", "--model", "gpt-5"],
        &["replay", "--budget", "lots"],
        &["replay", "--growth", "step:0"],
        &["replay", "--layout", "row-major"],
    ];
    for arguments in wrong {
        let output = leasehold(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!stderr(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (folder, _) = registry(HOST_MMAP);
    let script = format!("{:?} list 2>/dev/null | true; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_leasehold"));
    let output = Command::new("bash").current_dir(folder.path()).args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_standard_error_that_cannot_be_written_changes_no_exit_status() {
    let (folder, path) = registry(HOST_MMAP);
    let program = env!("CARGO_BIN_EXE_leasehold");
    for (arguments, status) in [("list", 0), ("explain gone", 2), ("replay --requests 2 --strategy leasehold", 0)] {
        for broken in ["2>/dev/full", "2>&-"] {
            let script = format!("LEASEHOLD_LOG=trace {program:?} --registry {path:?} {arguments} >/dev/null {broken}");
            let output = Command::new("bash").current_dir(folder.path()).args(["-c", &script]).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{script}: {output:?}");
        }
    }
}
