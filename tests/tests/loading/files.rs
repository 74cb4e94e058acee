//! Files that are not the pinned ones, or no libraries at all.

use crate::{ROGUE, assert_works, rejection, report, rogue};
use leasehold::Stage;
use leasehold_tests::plugins::{self, Registry};
use std::fs;
use std::process::Command;

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
