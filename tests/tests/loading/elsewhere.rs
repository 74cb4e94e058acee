//! Relative paths, wherever the program was started.

use crate::{ROGUE, assert_works, device_name};
use leasehold::Host;
use leasehold_tests::plugins::{self, Registry};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set where this program is started once more, by the tests below: the registry file that it is to load.
const REGISTRY: &str = "LEASEHOLD_LOADING_TEST_REGISTRY";

/// Loads a registry file in a process of its own, started in `folder`, since a process has one working directory.
fn load_elsewhere(registry: &str, folder: &Path) {
    let program = std::env::current_exe().expect("the system knows which program runs");
    let output = Command::new(program)
        .args(["--exact", "elsewhere::the_program_started_once_more_loads_what_it_is_told", "--nocapture"])
        .env(REGISTRY, registry)
        .current_dir(folder)
        .output()
        .expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let marked = String::from_utf8_lossy(&output.stdout).contains("loaded elsewhere");
    assert!(marked, "the test was run: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_program_started_once_more_loads_what_it_is_told() {
    let Some(registry) = std::env::var_os(REGISTRY).map(PathBuf::from) else { return };
    let host = Host::load(&registry).expect("loads");
    assert_eq!(host.registry(), Some(registry.as_path()));
    assert_eq!(device_name(&host, "rogue"), "plain memory, number 1 of its library");
    assert_works(&host, "rogue");
    println!("loaded elsewhere");
}

#[test]
fn relative_paths_start_from_the_registry_file_wherever_the_program_was_started() {
    let registry = Registry::new();
    fs::create_dir_all(registry.folder().join("conf/lib")).expect("a folder can be made");
    fs::create_dir_all(registry.folder().join("elsewhere/lib")).expect("a folder can be made");
    let conf = registry.folder().join("conf/registry.toml");
    let _ = registry.copy(&plugins::library(ROGUE), "conf/lib/librogue.so");
    // What a program would load that looks in its working directory.
    let _ = registry.file("elsewhere/lib/librogue.so", b"not this one");
    symlink("../conf/registry.toml", registry.folder().join("elsewhere/link.toml")).expect("a link can be made");
    for (search, library) in [("search = [\"lib\"]", "rogue"), ("", "./lib/librogue.so"), ("", "lib/librogue.so")] {
        let entry = format!("[[backing]]\nname = \"rogue\"\nlibrary = {library:?}\nbacking = \"ledgered\"\n");
        fs::write(&conf, format!("format = 1\n{search}\n{entry}")).expect("can be written");
        let elsewhere = registry.folder().join("elsewhere");
        load_elsewhere(&plugins::text(&conf), &elsewhere);
        load_elsewhere("../conf/registry.toml", &elsewhere);
        load_elsewhere("link.toml", &elsewhere);
        load_elsewhere("registry.toml", &registry.folder().join("conf"));
        load_elsewhere("conf/registry.toml", registry.folder());
    }
}
