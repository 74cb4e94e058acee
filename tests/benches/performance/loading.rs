//! From a registry file with four libraries to four backings that are ready.

use crate::child;
use crate::harness::{interleave, nanos};
use crate::hosts;
use crate::table::{Aim, Row, Table};
use leasehold::Host;
use std::fs;
use tempfile::TempDir;

const LIBRARIES: [&str; 4] = ["one", "two", "three", "four"];

pub(crate) fn measure(table: &mut Table) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let paths = LIBRARIES.map(|name| {
        let path = folder.path().join(format!("lib{name}.so"));
        fs::copy(hosts::library(), &path).expect("the library can be copied");
        path.to_str().expect("the path is text").to_owned()
    });
    let registry = hosts::registry(folder.path(), paths.iter().map(String::as_str));
    let registry = registry.to_str().expect("the path is text");
    let first = || child::figures(&["load", registry]).first().copied().unwrap_or(f64::NAN);
    let [first, again] = interleave(2, 21, [&mut || first(), &mut || in_this_process(registry)]);
    let size = fs::metadata(hosts::library()).map_or(0, |metadata| metadata.len()) >> 10;
    table.add(Row {
        what: format!("load `registry.toml` with four libraries of {size} KiB, first in its process"),
        ours: first.time(),
        beside: "the same again in one process",
        theirs: again.time(),
        comparison: first.spread().times(),
        aim: Aim::AtMost("≤ 5 ms", 5e6, first.median()),
    });
}

/// Nanoseconds of one load.
pub(crate) fn in_this_process(registry: &str) -> f64 {
    nanos(|| drop(Host::load(registry).expect("all four are ready")))
}
