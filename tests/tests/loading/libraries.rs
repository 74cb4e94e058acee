//! Which library an entry gets its backing from.

use crate::{ROGUE, assert_works, device_name, report, rogue};
use leasehold::{Door, Stage};
use leasehold_tests::plugins::{self, Registry};

#[test]
fn one_library_gives_a_backing_to_each_entry_that_names_it() {
    let registry = Registry::new()
        .backing("first", &rogue(), "backing = \"liar\"")
        .backing("second", &rogue(), "backing = \"ledgered\"")
        .backing("third", &rogue(), "backing = \"liar\"");
    let host = registry.host();
    for name in ["first", "second", "third"] {
        assert_eq!(report(&host, name).door, Some(Door::AbiStable));
        assert_works(&host, name);
    }
    assert_ne!(device_name(&host, "first"), device_name(&host, "third"), "each is a backing of its own");
}

#[test]
fn a_link_is_the_same_library_and_a_copy_is_another() {
    let registry = Registry::new();
    let library = registry.copy(&plugins::library(ROGUE), "library.so");
    let link = registry.link(&library, "link.so");
    let copy = registry.copy(&plugins::library(ROGUE), "copy.so");
    let host = registry
        .backing("library", &library, "backing = \"liar\"")
        .backing("again", &library, "backing = \"liar\"")
        .backing("link", &link, "backing = \"liar\"")
        .backing("copy", &copy, "backing = \"liar\"")
        .host();
    // A library numbers what it makes, in a static: an instance of its own begins anew.
    for (name, number) in [("library", 1), ("again", 2), ("link", 3), ("copy", 1)] {
        assert_eq!(device_name(&host, name), format!("plain memory, number {number} of its library"), "{name}");
        assert_works(&host, name);
    }
    assert_eq!(report(&host, "link").library, link, "messages show what was written");
}

#[test]
fn the_second_library_is_not_taken_for_the_first() {
    for order in [["leasehold_host_mmap", ROGUE], [ROGUE, "leasehold_host_mmap"]] {
        let mut registry = Registry::new();
        for library in order {
            let path = plugins::text(&plugins::library(library));
            let (name, backing) = if library == ROGUE { ("rogue", "ledgered") } else { ("mmap", "host-mmap") };
            registry = registry.backing(name, &path, &format!("backing = {backing:?}"));
        }
        let host = registry.host();
        assert!(device_name(&host, "rogue").starts_with("plain memory"), "{order:?}");
        assert_eq!(device_name(&host, "mmap"), "host memory", "{order:?}");
        let finding = |name| report(&host, name).stages.into_iter().find(|stage| stage.stage == Stage::Load);
        assert_eq!(
            finding("rogue").unwrap().finding,
            "backing \"ledgered\" of leasehold-rogue 0.0.0: plain memory that charges its host"
        );
        assert_eq!(
            finding("mmap").unwrap().finding,
            "backing \"host-mmap\" of leasehold-host-mmap 0.1.0: host memory that grows in place, by mmap and mprotect"
        );
        assert_works(&host, "rogue");
        assert_works(&host, "mmap");
    }
}
