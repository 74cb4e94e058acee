//! The programs that the README shows are the examples, and they run.

#[path = "../examples/kv_cache.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod kv_cache;
#[path = "../examples/shared_prefix.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod shared_prefix;

use leasehold::{Error, GovernorSnapshot};
use std::fs;
use std::path::{Path, PathBuf};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_readme_shows_the_examples() {
    let readme = fs::read_to_string(crate_folder().join("../README.md")).unwrap();
    for name in ["kv_cache", "shared_prefix"] {
        let example = fs::read_to_string(crate_folder().join(format!("examples/{name}.rs"))).unwrap();
        let (_, code) = example.split_once("\n\n").unwrap();
        assert!(readme.contains(code), "copy host/examples/{name}.rs into README.md");
    }
}

/// What an example answers with one backing, loaded from its library.
fn run(backing: &str, serve: fn(&str) -> Result<GovernorSnapshot, Error>) -> String {
    let program = std::env::current_exe().expect("this program");
    let tests: PathBuf = program.parent().expect("a folder").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let registry = folder.path().join("registry.toml");
    let library = format!("leasehold_{}", backing.replace('-', "_"));
    let text = format!(
        "format = 1\nsearch = [{tests:?}]\n[budget]\nhost = \"64 MiB\"\n\
         [[backing]]\nname = {backing:?}\nlibrary = {library:?}\n"
    );
    fs::write(&registry, text).expect("written");
    serve(registry.to_str().expect("text")).expect("serves").to_string()
}

#[test]
fn the_example_grows_a_cache_through_the_library() {
    // 1000 tokens of 256 bytes are 4 steps of 64 KiB in each of 48 planes; 100 tokens are one.
    assert_eq!(run("host-mmap", kv_cache::serve), "host: 3145728 of 67108864 bytes used, at most 12582912");
}

#[test]
fn the_example_shares_a_prompt_through_the_library() {
    // 3 blocks in common and 3 of their own, each a granule of 64 KiB in each of 48 planes; then 3 private granules.
    assert_eq!(run("host-pool", shared_prefix::serve), "host: 28311552 of 67108864 bytes used, at most 28311552");
}
