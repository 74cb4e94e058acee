//! `leasehold replay` over backings that fail, and over one that reserves nothing: each run is reported by itself.

use super::{HOST_MMAP, json, leasehold, plugins, registry, stderr, stdout};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// An entry for a backing of the fixture.
fn rogue(name: &str, backing: &str, options: &str) -> String {
    let library = plugins().join("libleasehold_rogue.so");
    let options = if options.is_empty() { String::new() } else { format!("[backing.options]\n{options}\n") };
    format!("[[backing]]\nname = {name:?}\nlibrary = {library:?}\nbacking = {backing:?}\n{options}")
}

const MODEL: &str = "layers=1,kv_heads=1,head_dim=64,element_bytes=1,context=256";

fn replay(folder: &Path, arguments: &[&str]) -> std::process::Output {
    leasehold(folder, &[&["replay", "--requests", "3", "--mean-prompt", "32", "--model", MODEL], arguments].concat())
}

/// The runs of a report that were measured, and those that failed.
fn runs(report: &Value) -> [Vec<(String, String)>; 2] {
    ["results", "failures"].map(|list| {
        let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        let runs = report[list].as_array().unwrap().iter();
        runs.map(|run| (text(&run["backing"]), text(&run["strategy"]))).collect()
    })
}

fn pairs(backing: &str, strategies: &[&str]) -> Vec<(String, String)> {
    strategies.iter().map(|strategy| (backing.to_owned(), (*strategy).to_owned())).collect()
}

#[test]
fn a_backing_that_breaks_the_contract_ends_no_other_runs() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", rogue("liar", "liar", "lie = \"owned-more\"")));
    let arguments = ["--backing", "liar", "--backing", "host-mmap", "--json"];
    let output = replay(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    let [finished, failed] = runs(&report);
    assert_eq!(finished, pairs("host-mmap", &["leasehold", "prealloc", "realloc"]), "{report}");
    assert_eq!(failed, pairs("liar", &["leasehold", "prealloc", "realloc"]), "{report}");
    let reason = |index: usize| report["failures"][index]["reason"].as_str().unwrap().to_owned();
    assert!(reason(0).contains("it broke the contract"), "{}", reason(0));
    assert!(reason(1).contains("the backing is out of service"), "{}", reason(1));
    assert!(stderr(&output).contains("3 of 6 runs failed"), "{output:?}");

    let output = replay(folder.path(), &arguments[..4]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("│ liar      ┆ leasehold ┆ failed"), "{}", stdout(&output));
    assert!(stderr(&output).contains("liar, leasehold: failed: "), "{output:?}");
}

#[test]
fn a_backing_that_panics_late_ends_no_other_runs() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", rogue("liar", "liar", "lie = \"panic-in-release\"")));
    let arguments = ["--backing", "liar", "--backing", "host-mmap", "--strategy", "leasehold", "--json"];
    let alone = replay(folder.path(), &arguments[2..]);
    let output = replay(folder.path(), &arguments);
    assert_eq!((alone.status.code(), output.status.code()), (Some(0), Some(1)), "{output:?}");
    let [alone, report] = [json(&alone), json(&output)];
    assert_eq!(runs(&report), [pairs("host-mmap", &["leasehold"]), pairs("liar", &["leasehold"])], "{report}");
    // What the liar kept stays charged to the domain of both, and counts for no later run.
    let owned = |report: &Value| report["results"][0]["peak_owned_bytes"].clone();
    assert_eq!(owned(&report), owned(&alone));
    let reason = report["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("bytes stay charged to host, which later runs there lack"), "{reason}");
}

#[test]
fn a_backing_that_is_not_ready_ends_no_other_runs() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", rogue("gone", "unavailable", "")));
    let arguments = ["--backing", "gone", "--backing", "host-mmap", "--strategy", "leasehold", "--json"];
    let output = replay(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    assert_eq!(runs(&report), [pairs("host-mmap", &["leasehold"]), pairs("gone", &["none"])], "{report}");
    assert_eq!(report["failures"][0]["strategy"], Value::Null);
    let reason = report["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("backing \"gone\" is unavailable"), "{reason}");

    let output = replay(folder.path(), &arguments[..2]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("gone: failed: "), "{output:?}");
}

#[test]
fn the_page_shows_the_runs_that_failed() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", rogue("liar", "liar", "lie = \"owned-more\"")));
    let arguments = ["--backing", "liar", "--backing", "host-mmap", "--strategy", "leasehold", "--report", "page.html"];
    let output = replay(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<td>failed</td>") && page.contains("<li>liar, leasehold: failed: "), "{page}");
}

#[test]
fn an_eager_backing_is_served_by_what_it_can_serve() {
    let (folder, _) = registry(&rogue("eager", "shared-only", ""));
    let output = replay(folder.path(), &["--backing", "eager", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert_eq!(runs(&report), [pairs("eager", &["prealloc", "realloc"]), Vec::new()], "{report}");
    assert_eq!(report["failures"], json!([]));
    let [prealloc, realloc] = [0, 1].map(|index| report["results"][index].clone());
    for run in [&prealloc, &realloc] {
        assert_eq!((&run["completed"], &run["refused"]), (&3.into(), &0.into()), "{run}");
    }
    let running = prealloc["peak_running"].as_u64().unwrap();
    // Two planes of 256 tokens of 64 bytes, each of whole granules.
    assert_eq!(prealloc["peak_owned_bytes"], running * 2 * 16_384, "prealloc holds the context of each request");
}

#[test]
fn a_backing_that_can_not_be_written_is_named_with_the_flag() {
    let disk = rogue("disk", "placed", "tier = \"disk\"\ntotal_bytes = 100000000");
    let (folder, _) = registry(&format!("{disk}{HOST_MMAP}"));
    let output = replay(folder.path(), &["--backing", "disk", "--backing", "host-mmap", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    assert_eq!(runs(&report)[0], pairs("host-mmap", &["leasehold", "prealloc", "realloc"]), "{report}");
    let reason = report["failures"][0]["reason"].as_str().unwrap();
    assert_eq!(reason, "its memory can't be written from the CPU; pass --no-touch to commit without writing");
}

#[test]
fn a_strategy_that_an_eager_backing_can_not_serve_fails() {
    let (folder, _) = registry(&rogue("eager", "shared-only", ""));
    let output =
        replay(folder.path(), &["--backing", "eager", "--strategy", "leasehold", "--strategy", "realloc", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    assert_eq!(runs(&report), [pairs("eager", &["realloc"]), pairs("eager", &["leasehold"])], "{report}");
    let reason = report["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("virtual-backing"), "{reason}");
}
