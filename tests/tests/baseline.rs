//! The comparison of a run with the baseline, and the file that is checked in.

use leasehold_tests::baseline::{Baseline, Cost, Figures, Paths, compare, cost_of_calls};
use std::collections::BTreeMap;

fn figures() -> Figures {
    let driver_calls = BTreeMap::from([("cuMemMap".to_owned(), 56)]);
    Figures { driver_calls, instructions: Some(1000.0), mappings: Some(3), system_calls: Some(2.0) }
}

fn one(figures: Figures) -> Paths {
    BTreeMap::from([("step".to_owned(), figures)])
}

fn failures(now: Figures) -> Vec<String> {
    compare(&one(figures()), &one(now)).failures
}

#[test]
fn up_to_five_percent_more_instructions_pass() {
    assert_eq!(failures(figures()), [""; 0]);
    assert_eq!(failures(Figures { instructions: Some(1050.0), ..figures() }), [""; 0]);
    assert_eq!(failures(Figures { instructions: Some(10.0), ..figures() }), [""; 0]);
}

#[test]
fn more_than_five_percent_more_instructions_fail() {
    assert_eq!(
        failures(Figures { instructions: Some(1050.5), ..figures() }),
        ["step: 1050.5 instructions, 1000 in the baseline (more than 5 % more)"]
    );
}

#[test]
fn one_call_or_mapping_more_fails() {
    let driver_calls = BTreeMap::from([("cuMemMap".to_owned(), 57)]);
    assert_eq!(failures(Figures { driver_calls, ..figures() }), ["step: 57 cuMemMap, 56 in the baseline (more)"]);
    let mappings = failures(Figures { mappings: Some(4), ..figures() });
    assert_eq!(mappings, ["step: 4 mappings, 3 in the baseline (more)"]);
    let system_calls = failures(Figures { system_calls: Some(3.0), ..figures() });
    assert_eq!(system_calls, ["step: 3 system calls, 2 in the baseline (more)"]);
}

#[test]
fn a_driver_function_that_was_not_called_before_fails() {
    let driver_calls = BTreeMap::from([("cuMemMap".to_owned(), 56), ("cuMemGetInfo_v2".to_owned(), 1)]);
    assert_eq!(failures(Figures { driver_calls, ..figures() }), ["step: 1 cuMemGetInfo_v2, 0 in the baseline (more)"]);
}

#[test]
fn what_was_not_measured_is_not_compared() {
    assert_eq!(failures(Figures { instructions: None, system_calls: None, ..figures() }), [""; 0]);
}

#[test]
fn an_operation_that_one_side_lacks_fails() {
    let (held, none) = (one(figures()), Paths::new());
    assert_eq!(compare(&none, &held).failures, ["step: the baseline does not hold it"]);
    assert_eq!(compare(&held, &none).failures, ["step: the baseline holds it, and it was not measured"]);
    let unheld = one(Figures { mappings: None, ..figures() });
    assert_eq!(compare(&unheld, &held).failures, ["step: 3 mappings, which the baseline does not hold"]);
}

#[test]
fn the_table_shows_both_figures_and_their_ratio() {
    let now = Figures { instructions: Some(1100.0), ..figures() };
    let table = compare(&one(figures()), &one(now)).to_string();
    let row = table.lines().find(|line| line.contains("instructions")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["step", "instructions", "1000", "1100", "1.100"]);
}

#[test]
fn the_file_is_as_the_program_writes_it() {
    let text = include_str!("../baseline.json");
    let baseline = Baseline::parse(text).unwrap();
    assert_eq!(baseline.to_text(), text);
    assert!(!baseline.reason.is_empty() && !baseline.paths.is_empty());
    assert!(baseline.paths.values().all(|figures| figures.instructions.is_some()));
}

/// As callgrind 3.19 writes it, shortened: `counted` calls `cuMemMap` twice and `other` once.
const PROFILE: &str = "events: Ir sysCount sysTime
summary: 150 9

fn=(1) main
cfn=(2) _ZN7counted17h0E
calls=1 68
25 140 7 6

fn=(2)
3 10
cfn=(3) cuMemMap
calls=2 +48
* 60 4
cfn=(4) other
calls=1 5
+1 70 3

fn=(4)
5 40 3
cfn=(3)
calls=1 +48
* 30
";

#[test]
fn the_cost_of_a_function_is_that_of_its_calls() {
    let cost = |name: &str| cost_of_calls(PROFILE, |function| function.contains(name)).unwrap();
    assert_eq!(cost("counted"), Cost { instructions: 140, system_calls: 7 });
    assert_eq!(cost("cuMemMap"), Cost { instructions: 90, system_calls: 4 });
    assert_eq!(cost("absent"), Cost::default());
}

#[test]
fn a_profile_without_system_calls_is_refused() {
    let error = cost_of_calls("events: Ir\n", |_| true).unwrap_err();
    assert_eq!(error, "it has no sysCount, only Ir");
}
