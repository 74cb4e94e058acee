//! The program that the README shows is the example, and it runs.

#[path = "../examples/kv_cache.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod kv_cache;

use std::fs;
use std::path::{Path, PathBuf};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_readme_shows_the_example() {
    let readme = fs::read_to_string(crate_folder().join("../README.md")).unwrap();
    let example = fs::read_to_string(crate_folder().join("examples/kv_cache.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(readme.contains(code), "copy host/examples/kv_cache.rs into README.md");
}

#[test]
fn the_example_grows_a_cache_through_the_library() {
    let tests: PathBuf = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let registry = folder.path().join("registry.toml");
    let text = format!(
        "format = 1\nsearch = [{tests:?}]\n[budget]\nhost = \"64 MiB\"\n\
         [[backing]]\nname = \"host-mmap\"\nlibrary = \"leasehold_host_mmap\"\n"
    );
    fs::write(&registry, text).unwrap();
    let snapshot = kv_cache::serve(registry.to_str().unwrap()).unwrap();
    // 1000 tokens of 256 bytes are 4 steps of 64 KiB in each of 48 planes; 100 tokens are one.
    assert_eq!(snapshot.to_string(), "host: 3145728 of 67108864 bytes used, at most 12582912");
}
