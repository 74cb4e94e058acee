//! Names of backings: those that are taken, not offered, or brought by the program.

use crate::{assert_works, rejection, rogue};
use leasehold::{ErrorKind, Host, Selection, Stage};
use leasehold_plugin_api as api;
use leasehold_tests::plugins::Registry;

#[test]
fn two_backings_of_one_name_are_an_error_that_names_both_lines() {
    let registry = Registry::new().backing("twin", "builtin", "backing = \"liar\"\n").backing(
        "twin",
        &rogue(),
        "backing = \"ledgered\"",
    );
    let error = registry.builder().survey().expect_err("is refused");
    assert_eq!(error.kind(), ErrorKind::Registry);
    let path = registry.write();
    assert!(error.to_string().starts_with(&format!("{}:10:8: ", path.display())), "{error}");
    assert!(error.to_string().contains("\"twin\"") && error.to_string().contains("line 5"), "{error}");
}

#[test]
fn a_backing_that_is_not_offered_is_told_with_those_that_are() {
    let host = Registry::new()
        .backing("loaded", &rogue(), "backing = \"honest\"")
        .backing("linked", "builtin", "backing = \"honest\"")
        .backing("none-named", &rogue(), "")
        .backing("liar", &rogue(), "")
        .host();
    // The library has host-mmap from the host that it is linked with; this program has all the others besides.
    let wanted = |before: &str, host_backings: &str| {
        format!(
            "offers no backing \"honest\", but {before}fussy, {host_backings}, ledgered, liar, placed, rival, shared-only, \
             unavailable; set `backing` to one of those"
        )
    };
    let loaded = format!("choose: {}: {}", rogue(), wanted("", "host-mmap"));
    assert_eq!(rejection(&host, "loaded", Stage::Load), loaded);
    let linked = format!("choose: what is linked in {}", wanted("cuda-pool, cuda-vmm, ", "host-mmap, host-pool"));
    assert_eq!(rejection(&host, "linked", Stage::Load), linked);
    assert!(rejection(&host, "none-named", Stage::Load).contains("offers no backing \"none-named\", but fussy, "));
    assert_works(&host, "liar");
}

#[test]
fn a_backing_that_the_program_brings_has_a_name_of_its_own_that_can_be_asked_for() {
    let brought = |names: &[&str]| {
        names.iter().fold(Host::builder(), |builder, name| {
            builder.with_backing(*name, |_| Err(api::BackingError::new(api::ErrorKind::Unavailable, "not here")))
        })
    };
    let refusal = |names: &[&str]| {
        let error = brought(names).survey().expect_err("is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        error.to_string()
    };
    assert_eq!(brought(&["one", "another-2"]).survey().expect("is made").backings().len(), 2);
    assert_eq!(
        refusal(&["one", "one"]),
        "backing \"one\": not added: another backing has that name; rename one of them"
    );
    for name in ["", "One", "one two", "-one", "one--two"] {
        assert!(refusal(&[name]).contains("is not lower-case words joined by hyphens"), "{name:?}");
    }
    let selection = Selection::new(None, Some("o*")).expect("is a pattern");
    let host = brought(&["one", "two"]).selection(selection).survey().expect("is made");
    let states: Vec<_> = host.backings().iter().map(|backing| backing.state.name()).collect();
    assert_eq!(states, ["disabled", "unavailable"]);
}
