//! Plugins that a test builds itself: with another compiler, or against a contract that was changed.
//!
//! Each goes into a target folder of its own below this workspace's, so that a second run finds it built and the
//! workspace's own builds are not disturbed. Where it can't be built (no network, no such toolchain) the test is
//! skipped, with the reason.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of this workspace.
///
/// # Panics
///
/// Where this package is in no workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("the package is in a workspace").to_owned()
}

/// Builds a package in `folder` as a library for this machine, and answers its path; or why it could not be built.
/// Packages are taken from where Cargo keeps them, and from the network only when one is not there.
///
/// # Errors
///
/// What Cargo said.
pub fn cargo_build(toolchain: Option<&str>, folder: &Path, package: &str, target: &Path) -> Result<PathBuf, String> {
    run_cargo(toolchain, folder, package, target, &["--offline"])
        .or_else(|_| run_cargo(toolchain, folder, package, target, &[]))?;
    let library = target.join("debug").join(format!("lib{}.so", package.replace('-', "_")));
    if library.is_file() { Ok(library) } else { Err(format!("{} was not built", library.display())) }
}

/// Skips a test whose plugin can't be built on this machine; not where `CI` is set, which promises that it can.
///
/// # Panics
///
/// Where `CI` is set.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "nothing may be skipped here: {why}");
    println!("skipped: it can't be built here: {why}");
}

fn run_cargo(
    toolchain: Option<&str>,
    folder: &Path,
    package: &str,
    target: &Path,
    flags: &[&str],
) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    // Cargo sets these for the programs that it runs; the inner build would take them for settings.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "LD_LIBRARY_PATH"] {
        cargo.env_remove(variable);
    }
    let output = cargo
        .args(toolchain.map(|toolchain| format!("+{toolchain}")))
        .args(["build", "--quiet", "--jobs", "1", "--package", package])
        .args(flags)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Copies what `host-mmap` is built from into `folder`, each file through `change`, as a workspace of its own.
///
/// # Errors
///
/// A file can't be read or written.
pub fn copy_workspace(folder: &Path, change: &dyn Fn(&str, String) -> String) -> io::Result<()> {
    let root = workspace();
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let members = manifest.lines().find(|line| line.starts_with("members = ")).unwrap_or_default();
    let manifest =
        manifest.replace(members, "members = [\"plugin-api\", \"plugins/host-memory\", \"plugins/host-mmap\"]");
    write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    if !folder.join("Cargo.lock").exists() {
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    }
    for package in ["plugin-api", "plugins/host-memory", "plugins/host-mmap"] {
        copy_tree(&root, Path::new(package), folder, change)?;
    }
    Ok(())
}

fn copy_tree(root: &Path, below: &Path, folder: &Path, change: &dyn Fn(&str, String) -> String) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(root, &path, folder, change)?;
        } else {
            let text = fs::read_to_string(entry.path())?;
            write_if_changed(&folder.join(&path), &change(&path.to_string_lossy(), text))?;
        }
    }
    Ok(())
}

/// Does not touch a file that has this text already, so that Cargo does not build it again.
fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text)
}
