//! A plugin that another compiler built loads and works: nothing that crosses depends on the compiler.

use leasehold::{BufferSpec, Door, Stage};
use leasehold_tests::build;
use leasehold_tests::plugins::{self, Registry};
use std::process::Command;

const OTHER: &str = "nightly";

/// The version of a toolchain's compiler, where there is one.
fn version(toolchain: Option<&str>) -> Option<String> {
    let mut rustc = Command::new("rustc");
    if toolchain.is_some() {
        rustc.env_remove("RUSTUP_TOOLCHAIN");
    }
    let output = rustc.args(toolchain.map(|name| format!("+{name}"))).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn a_plugin_of_another_compiler_version_loads_and_grows() {
    let (ours, theirs) = (version(None), version(Some(OTHER)));
    if theirs.is_none() || ours == theirs {
        println!("skipped: the host's compiler is {ours:?}, and {OTHER} is {theirs:?}");
        return;
    }
    println!("host: {ours:?}; plugin: {theirs:?}");
    let target = build::workspace().join("target/other-compiler");
    let built = build::cargo_build(Some(OTHER), &build::workspace(), "leasehold-host-mmap", &target);
    let library = match built {
        Ok(library) => plugins::text(&library),
        Err(why) => return build::skip(&why),
    };
    let bytes = std::fs::read(&library).expect("can be read");
    let comment = theirs.expect("is known").replace("rustc ", "rustc version ");
    let marked = bytes.windows(comment.len()).any(|window| window == comment.as_bytes());
    assert!(marked, "{library} does not say that it was built by {comment}");

    let registry = Registry::new().backing("other", &library, "required = true").backing(
        "builtin",
        "builtin",
        "backing = \"host-mmap\"",
    );
    let host = registry.builder().load().expect("it loads");
    let report = host.backings().into_iter().next().expect("is reported");
    assert_eq!(
        (report.door, report.stages.last().map(|stage| stage.stage)),
        (Some(Door::AbiStable), Some(Stage::Books))
    );
    for name in ["other", "builtin"] {
        let backing = host.backing(name).expect("is ready");
        let mut buffer = host.buffer(&backing, &BufferSpec::new(16 << 20)).expect("is admitted");
        let base = buffer.base();
        for megabytes in [1, 2, 4, 8] {
            buffer.grow_to(megabytes << 20).expect("grows");
            buffer.as_mut_slice().expect("is memory of the host").fill(7);
        }
        buffer.shrink_to(1 << 20).expect("shrinks");
        buffer.grow_to(2 << 20).expect("grows again");
        assert_eq!(buffer.base(), base);
        let (kept, fresh) = buffer.as_slice().expect("is memory of the host").split_at(1 << 20);
        assert!(kept.iter().all(|byte| *byte == 7) && fresh.iter().all(|byte| *byte == 0));
        let error = host.buffer(&backing, &BufferSpec::new(1 << 60)).expect_err("an error crosses too");
        assert_eq!(error.kind(), leasehold::ErrorKind::AddressSpaceExhausted, "{error}");
    }
    assert_eq!(host.snapshot().domain(leasehold::Domain::Host).expect("has books").used_bytes, 0);
}
