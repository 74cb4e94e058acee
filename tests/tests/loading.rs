//! From a registry file to backings that are ready: which library is loaded, which of its backings, and what becomes of
//! an entry that can't be had while the others go on.

use leasehold::{BackingReport, BackingState, BufferSpec, Door, ErrorKind, Host, Requirements, Selection, Stage};
use leasehold_plugin_api as api;
use leasehold_tests::plugins::{self, Registry};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROGUE: &str = "leasehold_rogue";

fn rogue() -> String {
    plugins::text(&plugins::library(ROGUE))
}

fn report(host: &Host, name: &str) -> BackingReport {
    host.backings().into_iter().find(|report| report.name == name).expect("is reported")
}

fn device_name(host: &Host, name: &str) -> String {
    report(host, name).description.expect("was asked").device_name
}

/// A buffer on the backing grows, and holds what was written.
fn assert_works(host: &Host, name: &str) {
    let backing = host.backing(name).expect("is ready");
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).expect("is admitted");
    buffer.grow_to(10_000).expect("grows");
    buffer.as_mut_slice().expect("is memory of the host").fill(7);
    assert_eq!(buffer.as_slice().expect("is memory of the host")[9_999], 7);
}

/// Rejected at this stage; answers the reason.
fn rejection(host: &Host, name: &str, stage: Stage) -> String {
    let report = report(host, name);
    let BackingState::Rejected { stage: at, reason } = report.state else { panic!("{name}: {:?}", report.state) };
    assert_eq!(at, stage, "{name}: {reason}");
    assert_eq!(report.stages.last().expect("has stages").stage, stage);
    let error = host.backing(name).expect_err("is not handed out");
    assert_eq!(error.kind(), ErrorKind::NoBackingFits);
    assert_eq!(error.to_string(), format!("backing {name:?} is rejected: {reason}"));
    reason
}

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
            "offers no backing \"honest\", but {before}fussy, {host_backings}, ledgered, liar, rival, shared-only, unavailable; \
             set `backing` to one of those"
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
fn options_of_every_type_arrive() {
    for (door, library) in plugins::doors(ROGUE) {
        println!("over the door {door}");
        let lines = "backing = \"fussy\"\n[backing.options]\nsize = \"2 MiB\"\ncount = 3\nshare = 0.5\nstrict = true\n\
                     peers = [1, 2]";
        let host = Registry::new().backing("fussy", &library, lines).host();
        assert_eq!(device_name(&host, "fussy"), "size 2097152 count 3 share 0.5 strict true peers [1, 2]");
    }
}

#[test]
fn an_option_that_is_wrong_is_named_and_the_backing_rejected() {
    for (door, library) in plugins::doors(ROGUE) {
        println!("over the door {door}");
        let entry = |backing: &str, option: &str| format!("backing = {backing:?}\n[backing.options]\n{option}");
        let host = Registry::new()
            .backing("typo", &library, &entry("fussy", "siz = \"2 MiB\""))
            .backing("negative", &library, &entry("fussy", "count = -1"))
            .backing("not-a-size", &library, &entry("fussy", "size = \"two\""))
            .backing("not-a-list", &library, &entry("fussy", "peers = 1"))
            .backing("has-none", &library, &entry("ledgered", "any = 1"))
            .backing("right", &library, &entry("fussy", "size = \"2 MiB\""))
            .host();
        for (name, words) in [
            ("typo", "unknown field `siz`, expected one of `size`, `count`, `share`, `strict`, `peers`"),
            ("negative", "count"),
            ("not-a-size", "size"),
            ("not-a-list", "peers"),
            ("has-none", "unknown field `any`, there are no fields"),
        ] {
            let reason = rejection(&host, name, Stage::Create);
            assert!(reason.starts_with("options refused: ") && reason.contains(words), "{reason}");
            assert!(reason.ends_with("; correct [backing.options]"), "{reason}");
        }
        assert_eq!(report(&host, "right").state, BackingState::Ready);
    }
}

#[test]
fn a_backing_without_its_device_is_unavailable_with_the_reason() {
    for (door, library) in plugins::doors(ROGUE) {
        let host = Registry::new()
            .backing("absent", &library, "backing = \"unavailable\"")
            .backing("present", &library, "backing = \"ledgered\"")
            .builder()
            .load()
            .expect("it stops nobody");
        let absent = report(&host, "absent");
        let reason = "no rogue device: /dev/rogue0 is not there; install the rogue driver";
        assert_eq!(absent.state, BackingState::Unavailable { reason: reason.to_owned() });
        assert_eq!(absent.door, Some(door), "it was loaded");
        let error = host.backing("absent").expect_err("is not handed out");
        assert_eq!(error.to_string(), format!("backing \"absent\" is unavailable: {reason}"));
        assert_works(&host, "present");
    }
}

#[test]
fn a_required_backing_that_is_not_ready_stops_the_host_and_a_survey_still_tells_of_all() {
    let absent = "backing = \"unavailable\"\nrequired = true";
    let missing = "required = true";
    let disabled = "backing = \"liar\"\nrequired = true\nenabled = false";
    for (lines, library, words) in [
        (absent, rogue(), "is unavailable: no rogue device"),
        (missing, "leasehold_nowhere".to_owned(), "is rejected: no such library"),
        (disabled, rogue(), "is disabled: enabled = false"),
    ] {
        let registry =
            Registry::new().backing("needed", &library, lines).backing("other", &rogue(), "backing = \"ledgered\"");
        let error = registry.builder().load().expect_err("the host does not start");
        assert_eq!(error.kind(), ErrorKind::RequiredBacking);
        assert!(error.to_string().starts_with(&format!("required backing \"needed\" {words}")), "{error}");
        let host = registry.host();
        assert!(report(&host, "needed").required && report(&host, "needed").state != BackingState::Ready);
        assert_works(&host, "other");
        assert_eq!(host.check_required().expect_err("still").kind(), ErrorKind::RequiredBacking);
    }
}

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

#[test]
fn a_pin_admits_the_pinned_bytes_and_no_others() {
    let registry = Registry::new();
    let library = registry.copy(&plugins::library(ROGUE), "rogue.so");
    let output = Command::new("sha256sum").arg(&library).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: there is no sha256sum to tell what the pin has to be");
        return;
    };
    let right = String::from_utf8_lossy(&output.stdout)[..64].to_owned();
    let wrong = "0".repeat(64);
    let host = registry
        .backing("right", &library, &format!("backing = \"ledgered\"\nsha256 = {right:?}"))
        .backing("wrong", &library, &format!("backing = \"ledgered\"\nsha256 = {wrong:?}"))
        .host();
    assert_works(&host, "right");
    let wanted = format!(
        "inspect: {library}: has sha256 {right}, pinned is {wrong}; restore the pinned file, or correct sha256 in \
         registry.toml after checking the new one"
    );
    assert_eq!(rejection(&host, "wrong", Stage::Load), wanted);
}

#[test]
fn a_library_that_is_none_is_rejected_with_stage_path_and_remedy_while_the_others_load() {
    let registry = Registry::new();
    let at = |name: &str| plugins::text(&registry.folder().join(name));
    let whole = fs::read(plugins::library(ROGUE)).expect("can be read");
    let other_machine = {
        let mut bytes = whole.clone();
        bytes[18] = 8; // e_machine: MIPS
        bytes
    };
    let other_class = {
        let mut bytes = whole.clone();
        bytes[4] = 1; // EI_CLASS: 32-bit
        bytes
    };
    fs::create_dir(at("folder.so")).expect("a folder can be made");
    let cases = [
        (registry.file("text.so", b"#!/bin/sh\nexit 0\n"), "inspect", "is not an ELF file; name a shared library"),
        (registry.file("empty.so", b""), "inspect", "is empty; build or copy it again"),
        (at("folder.so"), "inspect", "is not a regular file; name the library itself"),
        (registry.file("half.so", &whole[..whole.len() / 2]), "inspect", "is cut short: "),
        (registry.file("last-byte.so", &whole[..whole.len() - 1]), "inspect", "is cut short: "),
        (registry.file("header.so", &whole[..40]), "inspect", "is not a 64-bit little-endian ELF file that is whole"),
        (registry.file("machine.so", &other_machine), "inspect", "is for another machine (ELF machine 8)"),
        (registry.file("class.so", &other_class), "inspect", "is not a 64-bit little-endian ELF file"),
        (libc(), "door", "is not a Leasehold plugin: it does not export the root module"),
    ];
    let mut text = registry.backing("missing", "./gone.so", "").backing("bare", "leasehold_nowhere", "");
    for (index, (path, _, _)) in cases.iter().enumerate() {
        text = text.backing(&format!("bad-{index}"), path, "");
    }
    let host = text.backing("good", &rogue(), "backing = \"ledgered\"").host();
    for (index, (path, stage, words)) in cases.iter().enumerate() {
        let reason = rejection(&host, &format!("bad-{index}"), Stage::Load);
        assert!(reason.starts_with(&format!("{stage}: {path}: {words}")), "{reason}");
        assert!(reason.contains("; "), "says what to do: {reason}");
        assert_eq!(report(&host, &format!("bad-{index}")).door, None);
    }
    let reason = rejection(&host, "missing", Stage::Resolve);
    assert!(reason.starts_with("no such library: looked at ") && reason.contains("/gone.so; build"), "{reason}");
    assert!(rejection(&host, "bare", Stage::Resolve).contains("no folder, since `search` is empty"));
    assert_works(&host, "good");
}

#[test]
fn a_pipe_is_rejected_without_waiting_for_a_writer() {
    let registry = Registry::new();
    let pipe = plugins::text(&registry.folder().join("pipe.so"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no mkfifo");
        return;
    }
    let host = registry.backing("pipe", &pipe, "").backing("good", &rogue(), "backing = \"ledgered\"").host();
    let wanted = format!("inspect: {pipe}: is not a regular file; name the library itself");
    assert_eq!(rejection(&host, "pipe", Stage::Load), wanted);
    assert_works(&host, "good");
}

/// A library that is surely there, whole, and no plugin: the C library of this process.
fn libc() -> String {
    let maps = fs::read_to_string("/proc/self/maps").expect("can be read");
    let path = maps.split_whitespace().find(|word| word.starts_with('/') && word.contains("/libc.so"));
    path.expect("the C library is linked in").to_owned()
}

/// Set where this program is started once more, by the tests below: the registry file that it is to load.
const REGISTRY: &str = "LEASEHOLD_LOADING_TEST_REGISTRY";

/// Loads a registry file in a process of its own, started in `folder`, since a process has one working directory.
fn load_elsewhere(registry: &str, folder: &Path) {
    let program = std::env::current_exe().expect("the system knows which program runs");
    let output = Command::new(program)
        .args(["--exact", "the_program_started_once_more_loads_what_it_is_told", "--nocapture"])
        .env(REGISTRY, registry)
        .current_dir(folder)
        .output()
        .expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let marked = String::from_utf8_lossy(&output.stdout).contains("loaded elsewhere");
    assert!(marked, "the test was run: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_program_started_once_more_loads_what_it_is_told() {
    let Some(registry) = std::env::var_os(REGISTRY).map(PathBuf::from) else { return };
    let host = Host::load(&registry).expect("loads");
    assert_eq!(host.registry(), Some(registry.as_path()));
    assert_eq!(device_name(&host, "rogue"), "plain memory, number 1 of its library");
    assert_works(&host, "rogue");
    println!("loaded elsewhere");
}

#[test]
fn relative_paths_start_from_the_registry_file_wherever_the_program_was_started() {
    let registry = Registry::new();
    fs::create_dir_all(registry.folder().join("conf/lib")).expect("a folder can be made");
    fs::create_dir_all(registry.folder().join("elsewhere/lib")).expect("a folder can be made");
    let conf = registry.folder().join("conf/registry.toml");
    let _ = registry.copy(&plugins::library(ROGUE), "conf/lib/librogue.so");
    // What a program would load that looks in its working directory.
    let _ = registry.file("elsewhere/lib/librogue.so", b"not this one");
    symlink("../conf/registry.toml", registry.folder().join("elsewhere/link.toml")).expect("a link can be made");
    for (search, library) in [("search = [\"lib\"]", "rogue"), ("", "./lib/librogue.so"), ("", "lib/librogue.so")] {
        let entry = format!("[[backing]]\nname = \"rogue\"\nlibrary = {library:?}\nbacking = \"ledgered\"\n");
        fs::write(&conf, format!("format = 1\n{search}\n{entry}")).expect("can be written");
        let elsewhere = registry.folder().join("elsewhere");
        load_elsewhere(&plugins::text(&conf), &elsewhere);
        load_elsewhere("../conf/registry.toml", &elsewhere);
        load_elsewhere("link.toml", &elsewhere);
        load_elsewhere("registry.toml", &registry.folder().join("conf"));
        load_elsewhere("conf/registry.toml", registry.folder());
    }
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
