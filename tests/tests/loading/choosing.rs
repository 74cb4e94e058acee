//! Which entries are opened, and which of the backings a search finds.

use crate::{assert_works, report, rogue};
use leasehold::{BackingState, ErrorKind, Requirements, Selection};
use leasehold_tests::plugins::Registry;

#[test]
fn what_is_disabled_or_not_selected_is_never_opened() {
    let registry = Registry::new();
    let text = registry.file("text.so", b"no library");
    let registry = registry.backing("off", &text, "enabled = false").backing("left-out", &text, "").backing(
        "taken",
        &rogue(),
        "backing = \"ledgered\"",
    );
    let selection = Selection::new(Some("taken,off"), None).expect("is a selection");
    let host = registry.builder().selection(selection).load().expect("loads");
    for (name, words) in [
        ("off", "enabled = false in the registry file"),
        ("left-out", "LEASEHOLD_SELECT=\"taken,off\" does not match it"),
    ] {
        assert_eq!(report(&host, name).state, BackingState::Disabled { reason: words.to_owned() });
        assert_eq!((report(&host, name).stages.len(), report(&host, name).door), (1, None));
    }
    assert_works(&host, "taken");
}

#[test]
fn the_highest_priority_among_those_that_fit_is_found_and_of_equal_ones_the_first() {
    let host = Registry::new()
        .backing("low", &rogue(), "backing = \"liar\"\npriority = -1")
        .backing("sharing", &rogue(), "backing = \"shared-only\"\npriority = 9")
        .backing("high", &rogue(), "backing = \"liar\"\npriority = 5")
        .backing("equal", &rogue(), "backing = \"liar\"\npriority = 5")
        .backing("absent", &rogue(), "backing = \"unavailable\"\npriority = 99")
        .host();
    let found = |requirements: Requirements| host.find(&requirements).expect("one fits").name().to_owned();
    assert_eq!(found(Requirements::growable()), "high");
    assert_eq!(found(Requirements::any()), "sharing");
    assert_eq!(found(Requirements::any().shared_mapping()), "sharing");
    let error = host.find(&Requirements::growable().transfer()).expect_err("none fits");
    assert_eq!(error.kind(), ErrorKind::NoBackingFits);
    for words in ["sharing offers no virtual-backing", "high offers no transfer", "absent is unavailable"] {
        assert!(error.to_string().contains(words), "{error}");
    }
}
