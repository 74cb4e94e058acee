//! The script that runs the check where there is no toolchain: which program it takes, and what it says where it can't.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "leasehold-gpu-check";

/// An empty folder of that name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder); // what an earlier run left
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The script in a folder of its own, beside whatever else is there: its status, what it prints and what it says.
fn script_in(folder: &Path, program: &str) -> (i32, String, String) {
    let script = folder.join("check.sh");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("check.sh"), &script).unwrap();
    let output = Command::new("sh").arg(&script).arg("one").env("GPU_CHECK", program).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A program that prints its word and its argument, and exits with 7.
fn program(path: &Path, word: &str, mode: u32) {
    fs::write(path, format!("#!/bin/sh\necho {word} $1\nexit 7\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn it_runs_the_program_that_is_named_or_else_the_one_beside_it() {
    let folder = folder("named");
    let named = folder.join("named");
    program(&named, "named", 0o755);
    program(&folder.join(NAME), "beside", 0o755);
    let (code, printed, said) = script_in(&folder, named.to_str().unwrap());
    assert_eq!((code, printed.as_str(), said.as_str()), (7, "named one\n", ""));
    let (code, printed, said) = script_in(&folder, "");
    assert_eq!((code, printed.as_str(), said.as_str()), (7, "beside one\n", ""));
}

#[test]
fn of_a_program_that_may_not_be_executed_it_says_that() {
    let folder = folder("no-x-bit");
    let path = folder.join(NAME);
    program(&path, "beside", 0o644);
    let (code, printed, said) = script_in(&folder, "");
    assert_eq!((code, printed.as_str()), (2, ""), "{said}");
    assert!(said.contains("/leasehold-gpu-check is here, but may not be executed: chmod +x it"), "{said}");
}

#[test]
fn where_there_is_no_program_it_says_how_to_get_one() {
    let folder = folder("nothing");
    let (code, printed, said) = script_in(&folder, "");
    assert_eq!((code, printed.as_str()), (2, ""), "{said}");
    assert!(said.contains("leasehold-gpu-check is not here: build it where there is a toolchain"), "{said}");
}
