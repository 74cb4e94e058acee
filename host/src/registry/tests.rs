//! A registry file read as a whole: what it means, and the exact text of every refusal.

use super::budget::BudgetSpec;
use super::file::RegistryFile;
use leasehold_plugin_api::{Domain, OptionValue, Options};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const WHOLE: &str = r#"format = 1
search = ["target/release", "/usr/lib/leasehold"]

[budget]
host = "8 GiB"
"disk:0" = 4096
"device:0" = "90%"

[[backing]]
name = "host-mmap"
library = "leasehold_host_mmap"

[[backing]]
name = "cuda-vmm"
library = "./libcuda_vmm.so"
backing = "vmm"
sha256 = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
required = true
enabled = false
priority = -3
[backing.options]
granule = "2 MiB"
peers = [1, 2]
"#;

fn parse(text: &str) -> Result<RegistryFile, String> {
    RegistryFile::parse(text, Path::new("registry.toml")).map_err(|error| error.to_string())
}

/// The whole file with one text replaced, which has to be there exactly once.
fn refusal_with(written: &str, replacement: &str) -> String {
    assert_eq!(WHOLE.matches(written).count(), 1, "{written}");
    parse(&WHOLE.replace(written, replacement)).unwrap_err()
}

#[test]
fn every_section_is_read() {
    let file = parse(WHOLE).unwrap();
    assert_eq!(file.search, [PathBuf::from("target/release"), PathBuf::from("/usr/lib/leasehold")]);
    assert_eq!(file.budgets.len(), 3);
    assert_eq!(file.budgets[&Domain::Host], BudgetSpec::Bytes(8 << 30));
    assert_eq!(file.budgets[&Domain::Disk(0)], BudgetSpec::Bytes(4096));
    assert_eq!(file.budgets[&Domain::Device(0)], "90%".parse().unwrap());
    let vmm = &file.backings[1];
    assert_eq!((vmm.name.value.as_str(), vmm.name.at.line, vmm.name.at.column), ("cuda-vmm", 14, 8));
    assert_eq!(vmm.library.value, "./libcuda_vmm.so");
    assert_eq!(vmm.backing.as_deref(), Some("vmm"));
    assert_eq!(vmm.sha256.unwrap()[14..18], [0xee, 0xff, 0x00, 0x11]);
    assert!(vmm.required && !vmm.enabled);
    assert_eq!(vmm.priority, -3);
    let peers = OptionValue::List(vec![OptionValue::Integer(1), OptionValue::Integer(2)]);
    let granule = OptionValue::Text("2 MiB".to_owned());
    assert_eq!(vmm.options, Options::new().with("granule", granule).with("peers", peers));
}

#[test]
fn what_is_left_out_has_its_default() {
    let file = parse(WHOLE).unwrap();
    let mmap = &file.backings[0];
    assert!(!mmap.required && mmap.enabled);
    assert_eq!((mmap.priority, &mmap.backing, mmap.sha256), (0, &None, None));
    assert_eq!(mmap.options, Options::new());
}

#[test]
fn a_file_with_its_format_alone_is_empty() {
    let file = parse("format = 1").unwrap();
    assert!(file.search.is_empty() && file.budgets.is_empty() && file.backings.is_empty());
}

#[test]
fn a_byte_order_mark_is_skipped_and_not_counted() {
    assert_eq!(parse(&format!("\u{feff}{WHOLE}")), parse(WHOLE));
    assert!(parse("\u{feff}format = 7").unwrap_err().starts_with("registry.toml:1:10: "));
}

#[test]
fn a_carriage_return_before_the_line_break_changes_nothing() {
    assert_eq!(parse(&WHOLE.replace('\n', "\r\n")), parse(WHOLE));
}

#[test]
fn an_empty_file_misses_its_format() {
    for text in ["", "\n# nothing\n"] {
        assert_eq!(
            parse(text).unwrap_err(),
            "registry.toml:1:1: format missing: the file does not say which format it is in; add the line format = 1 \
             at its top"
        );
    }
}

#[test]
fn another_format_is_the_only_thing_reported() {
    assert_eq!(
        parse("format = 2\nnew_section = {}\n").unwrap_err(),
        "registry.toml:1:10: format not read: seen 2, this version reads only format 1; write format = 1, or use a \
         newer leasehold"
    );
    assert_eq!(
        refusal_with("format = 1", "format = \"1\""),
        "registry.toml:1:10: format not read: seen the text \"1\", wanted an integer; write for example format = 1"
    );
}

#[test]
fn what_is_no_toml_is_refused_where_it_stops_being_so() {
    assert_eq!(
        refusal_with("host = \"8 GiB\"", "host = 8 GiB"),
        "registry.toml:5:8: no valid TOML: string values must be quoted, expected literal string; correct it here"
    );
    assert_eq!(
        refusal_with("priority = -3", "required = false"),
        "registry.toml:20:1: no valid TOML: duplicate key; correct it here"
    );
}

#[test]
fn unknown_keys_are_refused_with_those_that_are_known() {
    assert_eq!(
        refusal_with("search =", "serach ="),
        "registry.toml:2:1: unknown key \"serach\": a registry has the keys format, search, budget, backing; correct \
         it or take it out"
    );
    assert_eq!(
        refusal_with("enabled = false", "enable = false"),
        "registry.toml:19:1: unknown key \"enable\": [[backing]] has the keys name, library, backing, sha256, \
         required, enabled, priority, options; correct it or take it out"
    );
}

#[test]
fn two_backings_of_one_name_are_refused_with_both_lines() {
    assert_eq!(
        refusal_with("name = \"cuda-vmm\"", "name = \"host-mmap\""),
        "registry.toml:14:8: second backing of one name: \"host-mmap\" is on line 10 and on line 14; give one of them \
         another name"
    );
}

#[test]
fn a_budget_for_what_is_no_domain_is_refused() {
    assert_eq!(
        refusal_with("\"device:0\" =", "device =",),
        "registry.toml:7:1: budget for no domain: seen \"device\", wanted host, \"device:N\" or \"disk:N\"; write for \
         example \"device:0\" = \"90%\", with its quotes"
    );
}

#[test]
fn one_domain_under_two_spellings_is_refused_with_both_lines() {
    assert_eq!(
        refusal_with("\"disk:0\" = 4096", "\"device:00\" = 4096"),
        "registry.toml:7:1: second budget: domain device:0 is on line 6 and on line 7; keep one of them"
    );
}

#[test]
fn a_budget_that_is_no_amount_is_refused() {
    assert_eq!(
        refusal_with("\"8 GiB\"", "\"8 gigs\""),
        "registry.toml:5:8: budget not read: seen \"8 gigs\", wanted \"auto\", a size such as \"8 GiB\" or a \
         percentage such as \"75%\"; write for example host = \"8 GiB\""
    );
    assert_eq!(
        refusal_with("4096", "-1"),
        "registry.toml:6:12: budget not read: seen -1, wanted a number of bytes that is not negative; write for \
         example host = \"8 GiB\""
    );
    assert_eq!(
        refusal_with("4096", "0.5"),
        "registry.toml:6:12: budget not read: seen the number 0.5, wanted \"auto\", a size such as \"8 GiB\", a \
         percentage such as \"75%\" or a number of bytes; write for example host = \"8 GiB\""
    );
}

#[test]
fn a_backing_needs_a_name_and_a_library() {
    assert_eq!(
        refusal_with("name = \"host-mmap\"\n", ""),
        "registry.toml:9:1: name missing: every [[backing]] needs one; add for example name = \"host-mmap\""
    );
    assert_eq!(
        refusal_with("library = \"./libcuda_vmm.so\"\n", ""),
        "registry.toml:13:1: library missing: every [[backing]] needs one; add for example library = \
         \"leasehold_host_mmap\" or library = \"./libleasehold_host_mmap.so\""
    );
}

#[test]
fn a_value_of_the_wrong_shape_is_refused_with_the_right_one() {
    for (written, replacement, problem) in [
        ("[\"target/release\", \"/usr/lib/leasehold\"]", "\"lib\"", "2:10: search not read: seen the text \"lib\","),
        ("\"target/release\"", "\"\"", "2:11: search not read: seen the text \"\","),
        ("\"cuda-vmm\"", "\"Cuda VMM\"", "14:8: name not read: seen the text \"Cuda VMM\","),
        ("\"./libcuda_vmm.so\"", "\"libcuda_vmm.so\"", "15:11: library not read: seen the text \"libcuda_vmm.so\","),
        ("\"vmm\"", "\"\"", "16:11: backing not read: seen the text \"\","),
        ("00112233445566778899aabb", "0", "17:10: sha256 not read: seen the text \"0ccdd"),
        ("required = true", "required = \"yes\"", "18:12: required not read: seen the text \"yes\","),
        ("enabled = false", "enabled = 0", "19:11: enabled not read: seen the integer 0,"),
        ("priority = -3", "priority = 1.5", "20:12: priority not read: seen the number 1.5,"),
        ("[1, 2]", "[[1]]", "23:10: option \"peers\" not read: seen a list,"),
    ] {
        let refusal = refusal_with(written, replacement);
        assert!(refusal.starts_with(&format!("registry.toml:{problem}")), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
}

#[test]
fn a_section_of_the_wrong_shape_is_refused() {
    assert_eq!(
        parse("format = 1\n[backing]\nname = \"a\"\n").unwrap_err(),
        "registry.toml:2:1: backing not read: seen a table, wanted a list of tables; write for example [[backing]] in \
         double brackets"
    );
    assert!(parse("format = 1\nbudget = 3\n").unwrap_err().starts_with("registry.toml:2:10: budget not read: seen "));
    assert!(parse("format = 1\nbacking = [3]\n").unwrap_err().starts_with("registry.toml:2:12: backing not read: "));
}

#[test]
fn the_problems_of_a_file_are_reported_together_in_order() {
    let text = "search = 3\n[budget]\nram = 1\n[[backing]]\nname = \"A\"\npriority = true\n";
    let refusal = parse(text).unwrap_err();
    let places: Vec<_> = refusal.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "registry.toml:1:1",
            "registry.toml:1:10",
            "registry.toml:3:1",
            "registry.toml:4:1",
            "registry.toml:5:8",
            "registry.toml:6:12",
        ]
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("format = 1\nsearch = {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep).unwrap_err().contains("no valid TOML: "));
}

/// Fragments that make up registries, right and wrong.
fn soup() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "format = 1\n",
        "search",
        " = ",
        "[[backing]]\n",
        "[backing.options]\n",
        "[budget]\n",
        "name",
        "\"é\"",
        "host",
        "\"device:0\"",
        "\n",
        "\"",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "1",
        "-",
        "75%",
        "true",
        "'''",
        "#",
        "\u{feff}",
        "\r\n",
        "library = \"builtin\"\n",
        "name = \"a\"\n",
        "2026-01-02",
        "🦀",
        "\\u",
    ]);
    prop::collection::vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic_or_point_outside_the_file(text in prop_oneof![soup(), "(?s).{0,80}"]) {
        let Err(error) = RegistryFile::parse(&text, Path::new("registry.toml")) else { return Ok(()) };
        prop_assert!(!error.problems().is_empty());
        for problem in error.problems() {
            let line = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').nth(problem.at.line.checked_sub(1).unwrap());
            let characters = line.map(|line| line.chars().count().saturating_add(1));
            prop_assert!(characters.is_some_and(|last| (1..=last).contains(&problem.at.column)), "{}", problem);
        }
    }
}
