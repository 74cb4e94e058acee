//! Plugins that were built against another contract: a changed layout, a newer version, numbers that no host knows.
//!
//! Each is `host-mmap` over a copy of the contract in which one thing is changed, built once for the test. Building
//! takes a minute the first time, so these tests have a program of their own.

use leasehold::{BackingState, BufferSpec, CpuAccess, Domain, ErrorKind, Host, Stage};
use leasehold_tests::build;
use leasehold_tests::plugins::Registry;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// One copy and one target folder serve all tests, one after the other.
static COPY: Mutex<()> = Mutex::new(());

/// A change of one file of the contract: its path, what is replaced and by what.
type Change = (&'static str, &'static str, &'static str);

/// Why nothing can be built here, found out once with the contract as it is.
static UNBUILDABLE: OnceLock<Option<String>> = OnceLock::new();

fn build_changed(changes: &[Change]) -> Result<PathBuf, String> {
    let folder = build::workspace().join("target/changed-contract");
    let change = |path: &str, mut text: String| {
        for (_, from, to) in changes.iter().filter(|(changed, _, _)| path == *changed) {
            assert!(text.contains(from), "{path} no longer holds {from:?}");
            text = text.replacen(from, to, 1);
        }
        text
    };
    build::copy_workspace(&folder.join("source"), &change).expect("the sources can be copied");
    build::cargo_build(None, &folder.join("source"), "leasehold-host-mmap", &folder.join("target"))
}

/// A host with `host-mmap` as built against the changed contract, and one that is linked in; `None` where nothing can
/// be built.
fn host_of_changed(changes: &[Change]) -> Option<(Registry, Host)> {
    let _one_at_a_time = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = UNBUILDABLE.get_or_init(|| build_changed(&[]).err()) {
        build::skip(why);
        return None;
    }
    let library = build_changed(changes).expect("what builds as it is builds with the change");
    let registry = Registry::new();
    let copy = registry.copy(&library, "changed.so");
    let registry = registry.backing("changed", &copy, "").backing("builtin", "builtin", "backing = \"host-mmap\"");
    let host = registry.host();
    assert!(host.buffer(&host.backing("builtin").expect("is ready"), &BufferSpec::new(1 << 20)).is_ok());
    Some((registry, host))
}

fn rejection(host: &Host, stage: Stage) -> String {
    let state = host.backings().into_iter().next().expect("is reported").state;
    let BackingState::Rejected { stage: at, reason } = state else { panic!("{state:?}") };
    assert_eq!(at, stage, "{reason}");
    reason
}

#[test]
fn the_contract_as_it_is_loads() {
    let Some((_registry, host)) = host_of_changed(&[]) else { return };
    assert_eq!(host.backings().into_iter().next().expect("is reported").state, BackingState::Ready);
}

#[test]
fn a_plugin_with_one_more_field_in_a_table_is_refused_before_anything_is_called() {
    let changes = [
        (
            "plugin-api/src/abi/tables.rs",
            "pub struct VirtualBackingTable {",
            "pub struct VirtualBackingTable { /// One more.\n pub trim_bytes: u64,",
        ),
        (
            "plugin-api/src/abi/plugin_side/virtual_backing.rs",
            "VirtualBackingTable { granularity,",
            "VirtualBackingTable { trim_bytes: 0, granularity,",
        ),
        // Calling any of its functions ends this process.
        (
            "plugin-api/src/abi/root.rs",
            "PluginRoot { plugin: ",
            "if true { std::process::abort() }\n PluginRoot { plugin: ",
        ),
        (
            "plugin-api/src/abi/plugin_side/library.rs",
            "let table = catch_unwind",
            "if true { std::process::abort() }\n let table = catch_unwind",
        ),
    ];
    let Some((registry, host)) = host_of_changed(&changes) else { return };
    let reason = rejection(&host, Stage::Load);
    let path = registry.folder().join("changed.so");
    let wanted = format!(
        "layout: {}: its tables are not this host's (VirtualBackingTable: incompatible type size (expected 48, found \
         56), too many fields (expected 6, found 7)); rebuild the plugin with the leasehold-plugin-api of this host",
        path.display()
    );
    assert_eq!(reason, wanted);
}

#[test]
fn a_plugin_with_tables_of_a_newer_version_is_refused_with_both_versions() {
    let changes =
        [("plugin-api/src/abi/mod.rs", "pub const TABLES_VERSION: u32 = 1;", "pub const TABLES_VERSION: u32 = 2;")];
    let Some((_registry, host)) = host_of_changed(&changes) else { return };
    let reason = rejection(&host, Stage::Load);
    assert!(reason.contains("has tables of version 2, this host reads version 1; "), "{reason}");
}

#[test]
fn a_tier_or_an_accounting_that_is_not_known_is_rejected_at_discovery() {
    for (from, to, what) in [
        ("Tier::Host => 1,", "Tier::Host => 9,", "the tier of its device"),
        ("Accounting::Buffer => Self { kind: 0,", "Accounting::Buffer => Self { kind: 9,", "its kind of accounting"),
    ] {
        let Some((_registry, host)) = host_of_changed(&[("plugin-api/src/abi/records.rs", from, to)]) else { return };
        let reason = rejection(&host, Stage::Discover);
        assert_eq!(reason, format!("{what} is not known to this host; report this to the plugin's author"));
        assert_eq!(host.snapshot().domains.len(), 1, "no books are opened for it");
    }
}

/// `changed` of a host, whose commit or decommit does what it is asked and then answers status 9.
fn assert_status_counts_as_the_worst(change: Change, operation: &str, used_bytes: u64) {
    let Some((_registry, host)) = host_of_changed(&[change]) else { return };
    let used = || host.snapshot().domain(Domain::Host).expect("has books").used_bytes;
    let backing = host.backing("changed").expect("is ready");
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).expect("is admitted");
    let error = buffer.grow_to(8192).and_then(|()| buffer.shrink_to(4096)).expect_err("who knows what was done?");
    assert_eq!(error.kind(), ErrorKind::OutOfService, "{error}");
    let words = format!("{operation} failed: its status 9 is not known");
    assert!(error.to_string().contains(&words), "{error}");
    assert_eq!(used(), used_bytes, "what is there stays charged, as the backing tells when it is asked");
    let state = host.backings().into_iter().next().expect("is reported").state;
    let retired = BackingState::Retired { reason: format!("{operation}: its status 9 is not known") };
    assert_eq!(state, retired);
    buffer.close().expect("what it holds is still given back");
    assert_eq!(used(), 0);
}

#[test]
fn a_status_that_is_not_known_counts_as_the_worst() {
    let change = (
        "plugin-api/src/abi/plugin_side/virtual_backing.rs",
        "|backing, ranges| backing.commit(ranges)) }",
        "|backing, ranges| backing.commit(ranges)) + 9 }",
    );
    assert_status_counts_as_the_worst(change, "commit", 8192);
    let change = (
        "plugin-api/src/abi/plugin_side/virtual_backing.rs",
        "|backing, ranges| backing.decommit(ranges)) }",
        "|backing, ranges| backing.decommit(ranges)) + 9 }",
    );
    assert_status_counts_as_the_worst(change, "decommit", 4096);
}

#[test]
fn an_outcome_that_is_not_known_counts_as_the_worst() {
    let changes =
        [("plugin-api/src/abi/mod.rs", "pub const OUTCOME_COMPLETE: u32 = 0;", "pub const OUTCOME_COMPLETE: u32 = 7;")];
    let Some((_registry, host)) = host_of_changed(&changes) else { return };
    let backing = host.backing("changed").expect("is ready");
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).expect("is admitted");
    buffer.grow_to(8192).expect("grows");
    let error = buffer.close().expect_err("the outcome is not known to be complete");
    assert_eq!(error.kind(), ErrorKind::NotReleased);
    let words = "release failed: its outcome 7 is not known; 8192 bytes stay charged: call reap() to try again";
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(host.snapshot().domain(Domain::Host).expect("has books").used_bytes, 8192);
    let state = host.backings().into_iter().next().expect("is reported").state;
    assert_eq!(state, BackingState::Retired { reason: "release: its outcome 7 is not known".to_owned() });
}

#[test]
fn access_that_is_not_known_is_none() {
    let changes = [(
        "plugin-api/src/abi/access.rs",
        "CpuAccess::DirectAndCopiedByFork => 3,",
        "CpuAccess::DirectAndCopiedByFork => 9,",
    )];
    let Some((_registry, host)) = host_of_changed(&changes) else { return };
    let backing = host.backing("changed").expect("is ready");
    assert_eq!(backing.capabilities().host_access(), CpuAccess::None);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).expect("is admitted");
    buffer.grow_to(4096).expect("grows");
    assert_eq!(buffer.as_slice().expect_err("nothing is claimed").kind(), ErrorKind::Unsupported);
}

#[test]
fn a_plugin_that_offers_nothing_or_one_name_twice_is_rejected() {
    const EXPORT: &str = "leasehold_plugin_api::export_backing!(HostMmap);";
    const TWICE: &str =
        "leasehold_plugin_api::export_backing!(HostMmap);\nleasehold_plugin_api::export_backing!(HostMmap);";
    let package = "leasehold-host-mmap 0.1.0";
    for (to, stage, words) in [
        ("", "door", "offers no backing; report this to the plugin's author".to_owned()),
        (
            TWICE,
            "choose",
            format!("offers two backings \"changed\", of {package} and of {package}; rename one of them"),
        ),
    ] {
        let changes = [
            ("plugins/host-mmap/src/lib.rs", EXPORT, to),
            (
                "plugins/host-mmap/src/backing.rs",
                "NAME: &'static str = \"host-mmap\"",
                "NAME: &'static str = \"changed\"",
            ),
        ];
        let Some((registry, host)) = host_of_changed(&changes) else { return };
        let path = registry.folder().join("changed.so");
        assert_eq!(rejection(&host, Stage::Load), format!("{stage}: {}: {words}", path.display()));
    }
}
