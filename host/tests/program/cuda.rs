//! The CUDA backings as users of the program see them: without a driver, and over a simulated one.

use super::replay::requests;
use super::{HOST_MMAP, json, leasehold, plugins, registry, stderr, stdout};
use std::fs;

const NAMES: [&str; 2] = ["cuda-vmm", "cuda-pool"];

/// The table of one CUDA backing, with some lines before its options.
fn table(name: &str, lines: &str, options: &str) -> String {
    let library = name.replace('-', "_");
    format!("[[backing]]\nname = {name:?}\nlibrary = \"leasehold_{library}\"\n{lines}[backing.options]\n{options}")
}

/// Both backings over the simulated driver.
fn simulated() -> String {
    let options = format!("driver = {:?}\n", plugins().join("libleasehold_cuda_sim.so"));
    format!("\"device:0\" = \"200 MiB\"\n{}", NAMES.map(|name| table(name, "", &options)).concat())
}

/// Both backings where no driver can be: the library that is named isn't there, whatever the machine has.
fn without_driver(lines: &str) -> String {
    NAMES.map(|name| table(name, lines, "driver = \"/nowhere/libcuda.so.1\"\n")).concat()
}

#[test]
fn without_a_driver_list_says_that_they_are_unavailable_and_what_to_install() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", NAMES.map(|name| table(name, "", "")).concat()));
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    for (index, name) in NAMES.into_iter().enumerate() {
        let backing = &report["backings"][index];
        // A machine may have a driver.
        if backing["state"] == "ready" {
            continue;
        }
        assert_eq!((&backing["name"], &backing["state"]), (&name.into(), &"unavailable".into()), "{backing}");
        let reason = backing["reason"].as_str().unwrap();
        assert!(reason.contains("no CUDA driver: tried libcuda.so"), "{reason}");
        assert!(reason.contains("install the NVIDIA driver (it brings libcuda.so.1)"), "{reason}");
    }
    assert_eq!(report["backings"][2]["state"], "ready", "{report}");
}

#[test]
fn a_driver_that_is_named_and_not_there_stops_nobody_unless_the_backing_is_required() {
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", without_driver("")));
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for backing in &json(&output)["backings"].as_array().unwrap()[..2] {
        assert_eq!(backing["state"], "unavailable", "{backing}");
        let reason = backing["reason"].as_str().unwrap();
        assert!(reason.contains("no CUDA driver at /nowhere/libcuda.so.1: "), "{reason}");
    }
    let (folder, _) = registry(&format!("{}{HOST_MMAP}", without_driver("required = true\n")));
    let output = leasehold(folder.path(), &["list"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("unavailable"), "the table is printed all the same");
    assert!(stderr(&output).contains("required backing \"cuda-vmm\" is unavailable"), "{output:?}");
}

#[test]
fn list_and_explain_report_the_device() {
    let (folder, _) = registry(&simulated());
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let offers = [
        serde_json::json!(["allocate", "virtual-backing", "transfer"]),
        serde_json::json!(["allocate", "virtual-backing", "shared-mapping", "transfer"]),
    ];
    for (index, (name, offers)) in NAMES.into_iter().zip(offers).enumerate() {
        let backing = &report["backings"][index];
        assert_eq!((&backing["name"], &backing["state"]), (&name.into(), &"ready".into()), "{backing}");
        assert_eq!((&backing["device"], &backing["door"]), (&"device:0".into(), &"abi_stable".into()), "{backing}");
        assert_eq!(backing["granularity"], 2 << 20, "{backing}");
        assert_eq!(backing["capabilities"], offers, "{backing}");
        let output = leasehold(folder.path(), &["explain", name]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stdout(&output).contains("Leasehold simulated device 0"), "{output:?}");
    }
}

/// 4 planes of 8 KiB rows: 256 tokens are a granule, and a block of 512 is two.
const MODEL: &str = "layers=2,kv_heads=1,head_dim=8192,element_bytes=1,context=4096";

#[test]
fn replay_writes_and_checks_every_row_in_memory_that_the_cpu_can_not_touch() {
    let (folder, _) = registry(&simulated());
    fs::write(folder.path().join("trace.jsonl"), requests((1..4).map(|blocks| (0..blocks).collect()))).unwrap();
    let arguments = ["replay", "trace.jsonl", "--model", MODEL, "--json"];
    let backings = ["--backing", "cuda-vmm", "--backing", "cuda-pool"];
    let output = leasehold(folder.path(), &[&arguments[..], &backings].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let runs = report["results"].as_array().unwrap();
    let found: Vec<_> = runs.iter().map(|run| (run["backing"].clone(), run["strategy"].clone())).collect();
    let plain = ["leasehold", "prealloc", "realloc"].map(|strategy| ("cuda-vmm".into(), strategy.into()));
    let sharing = ["leasehold", "prealloc", "realloc", "sharing"].map(|strategy| ("cuda-pool".into(), strategy.into()));
    assert_eq!(found, [&plain[..], &sharing].concat());
    assert!(runs.iter().all(|run| run["completed"] == 3), "{report}");
    let shared = &runs[6];
    assert_eq!(shared["prefix"]["hit_tokens"], 3 * 512, "each prompt finds the whole one before it: {shared}");
}

#[test]
fn replay_takes_device_memory_where_nothing_else_is_named() {
    let (folder, _) = registry(&simulated());
    let output = leasehold(folder.path(), &["replay", "--requests", "3", "--model", MODEL, "--strategy", "leasehold"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("backing: cuda-vmm from"), "{output:?}");
}
