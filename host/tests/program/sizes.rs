//! A device whose backing doesn't report its size: ready, with a budget of nothing, and every report says so.

use super::{json, leasehold, plugins, registry, stdout};
use serde_json::Value;

const CAUTION: &str = "no budget on device:0: no backing reports the size of device:0, so a budget of \"auto\" or a \
                       percentage is 0 bytes; set budget.\"device:0\" in bytes in registry.toml";

/// An entry for a device of that size; the budget comes first in the text, as a table of its own must.
fn device(total_bytes: u64) -> String {
    let library = plugins().join("libleasehold_rogue.so");
    format!(
        "[[backing]]\nname = \"device\"\nlibrary = {library:?}\nbacking = \"placed\"\n[backing.options]\ntier = \
         \"device\"\ntotal_bytes = {total_bytes}\n"
    )
}

#[test]
fn list_names_the_key_of_a_device_without_a_size() {
    let (folder, _) = registry(&device(0));
    let output = leasehold(folder.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let backing = &json(&output)["backings"][0];
    assert_eq!((&backing["state"], &backing["caution"]), (&"ready".into(), &CAUTION.into()), "{backing}");

    let output = leasehold(folder.path(), &["list"]);
    assert!(stdout(&output).contains(&format!("device is ready, but: {CAUTION}")), "{output:?}");
}

#[test]
fn explain_names_the_key_of_a_device_without_a_size() {
    let (folder, _) = registry(&device(0));
    let output = leasehold(folder.path(), &["explain", "device"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).contains(&format!("caution   {CAUTION}")), "{output:?}");
    let output = leasehold(folder.path(), &["explain", "device", "--json"]);
    assert_eq!(json(&output)["caution"], CAUTION, "{output:?}");
}

#[test]
fn a_device_that_can_grant_memory_has_no_caution() {
    for (budget, total_bytes) in [("\"device:0\" = 4096\n", 0), ("", 1 << 20)] {
        let (folder, _) = registry(&format!("{budget}{}", device(total_bytes)));
        let output = leasehold(folder.path(), &["list", "--json"]);
        assert_eq!(json(&output)["backings"][0]["caution"], Value::Null, "{output:?}");
    }
}

#[test]
fn list_says_that_a_budget_of_nothing_grants_nothing() {
    let (folder, _) = registry(&format!("\"device:0\" = 0\n{}", device(1 << 20)));
    let output = leasehold(folder.path(), &["list", "--json"]);
    let caution = "no budget on device:0: its limit is 0 bytes; raise budget.\"device:0\" in registry.toml";
    assert_eq!(json(&output)["backings"][0]["caution"], caution, "{output:?}");
}
