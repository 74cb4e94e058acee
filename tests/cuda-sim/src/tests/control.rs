//! What a test controls: settings, planned failures, the books.

use super::*;
use crate::plans::{Lasting, Plans};
use crate::settings::MOST_DEVICES;

#[test]
fn the_environment_gives_the_first_settings() {
    let read = |name: &str| match name {
        "LEASEHOLD_SIM_DEVICES" => Some("3".to_owned()),
        "LEASEHOLD_SIM_MEMORY" => Some(" 1048576 ".to_owned()),
        "LEASEHOLD_SIM_GRANULARITY" => Some("65536".to_owned()),
        _ => None,
    };
    let settings = Settings::from_variables(read);
    assert_eq!((settings.devices, settings.limit(2), settings.granularity), (3, 1 << 20, 65_536));
    let settings = Settings::from_variables(|_| Some("many".to_owned()));
    assert_eq!((settings.devices, settings.limit(0), settings.granularity), (2, 256 << 20, 2 << 20));
}

#[test]
fn a_setting_that_there_is_not_is_refused() {
    let mut settings = settings();
    let too_many = u64::from(MOST_DEVICES) + 1;
    for (name, device, value) in [("speed", 0, 1), ("devices", 0, too_many), ("granularity", 0, 3), ("fresh", 0, 256)] {
        assert_eq!(settings.set(name, device, value), WRONG, "{name}");
    }
    assert_eq!(settings.set("memory", MOST_DEVICES.into(), 1), Err(Code::INVALID_DEVICE));
}

/// The code that a call has to fail with.
fn struck_by(plans: &mut Plans, function: &str) -> Option<Code> {
    plans.strike(function).map(|strike| strike.code)
}

#[test]
fn a_plan_strikes_the_nth_call_once_or_from_then_on() {
    let mut plans = Plans::default();
    plans.add("cuMemMap", 2, Lasting::Once, Code(2));
    plans.add("cuMemUnmap", 2, Lasting::ForEver, Code(999));
    let struck: Vec<_> = (0..4).map(|_| struck_by(&mut plans, "cuMemMap")).collect();
    assert_eq!(struck, [None, Some(Code(2)), None, None]);
    let struck: Vec<_> = (0..4).map(|_| struck_by(&mut plans, "cuMemUnmap")).collect();
    assert_eq!(struck, [None, Some(Code(999)), Some(Code(999)), Some(Code(999))]);
    plans.clear();
    assert_eq!(struck_by(&mut plans, "cuMemUnmap"), None);
}

#[test]
fn a_star_plans_for_all_that_begin_so() {
    let mut plans = Plans::default();
    plans.add("cuMem*", 3, Lasting::Once, Code(2));
    let calls = ["cuMemMap", "cuInit", "cuMemCreate", "cuMemRelease", "cuMemMap"];
    assert_eq!(calls.map(|call| struck_by(&mut plans, call)), [None, None, None, Some(Code(2)), None]);
}

#[test]
fn a_planned_failure_does_nothing_and_is_counted() {
    let mut simulation = ready();
    simulation.plans.add("a call", 1, Lasting::Once, Code(2));
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::OUT_OF_MEMORY));
    assert_clean(&simulation);
    assert!(simulation.json().contains(r#""calls":{"a call":1}"#), "{}", simulation.json());
}

#[test]
fn what_fails_half_way_has_acted_on_the_first_half_of_its_mappings() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 4);
    let bytes = 4 * GRANULE;
    simulation.plans.add("a call", 1, Lasting::Once, Code(2));
    assert_eq!(set_access(&mut simulation, base, bytes, &[grant(0, READ)]), Err(Code(2)));
    fill(&mut simulation, base, bytes, 1).unwrap();
    let halfway = |simulation: &mut Simulation, function, act: &dyn Fn(&mut Memory, &Settings) -> Answer<()>| {
        simulation.plans.add_halfway(function, 1, Lasting::Once, Code(400)).unwrap();
        simulation.call(function, Need::Context, |simulation, _| act(&mut simulation.memory, &simulation.settings))
    };
    let outcome = halfway(&mut simulation, "cuMemSetAccess", &|memory, settings| {
        memory.set_access(settings, base, bytes, &[grant(0, READ)])
    });
    assert_eq!(outcome, Err(Code(400)));
    let access: Vec<_> = simulation.memory.mappings.values().map(|mapping| mapping.access[&0]).collect();
    assert_eq!(access, [READ, READ, READ_WRITE, READ_WRITE]);
    let outcome = halfway(&mut simulation, "cuMemUnmap", &|memory, _| memory.unmap(base, 3 * GRANULE));
    assert_eq!((outcome, simulation.memory.mappings.len()), (Err(Code(400)), 3), "half of three is one");
    let outcome = halfway(&mut simulation, "cuMemUnmap", &|memory, _| memory.unmap(base + GRANULE, GRANULE));
    assert_eq!((outcome, simulation.memory.mappings.len()), (Err(Code(400)), 3), "half of one is none");
    let outcome = halfway(&mut simulation, "cuMemUnmap", &|memory, _| memory.unmap(base, bytes));
    assert_eq!((outcome, simulation.memory.mappings.len()), (WRONG, 3), "and what is refused is refused");
    simulation.plans.clear();
    map(&mut simulation, base, GRANULE, handles[0]).unwrap();
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn only_what_acts_on_many_mappings_can_fail_half_way() {
    let mut plans = Plans::default();
    for function in ["cuMemMap", "cuMem*", "cuMemCreate"] {
        assert_eq!(plans.add_halfway(function, 1, Lasting::Once, Code(2)), WRONG);
    }
}

#[test]
fn the_books_tell_what_is_live() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 2);
    let counts = simulation.counts();
    assert_eq!((counts.reservations, counts.reserved_bytes, counts.mappings), (1, 2 * GRANULE, 2));
    assert_eq!((counts.physical, counts.handle_references, counts.bytes), (2, 2, 2 * GRANULE));
    assert_eq!((counts.context_retains, counts.violations), (1, 0));
    let json: serde_json::Value = serde_json::from_str(&simulation.json()).unwrap();
    assert_eq!(json["mappings"][1]["base"], base + GRANULE);
    assert_eq!(json["mappings"][1]["access"][0], serde_json::json!([0, 3]));
    assert_eq!(json["handles"][0]["references"], 1);
    end(&mut simulation, base, &handles);
    assert_eq!(simulation.counts().bytes, 0);
}

#[test]
fn a_reset_is_refused_while_anything_is_live() {
    let mut simulation = ready();
    assert_eq!(simulation.reset(settings()), Err(Code::ILLEGAL_STATE), "the context is retained");
    let base = reserve(&mut simulation, GRANULE).unwrap();
    free_addresses(&mut simulation, base, GRANULE).unwrap();
    simulation.release_context(0).unwrap();
    simulation.memory.violation("one".to_owned());
    simulation.reset(settings()).unwrap();
    assert!(!simulation.is_initialised() && simulation.memory.violations.is_empty());
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::NOT_INITIALIZED));
}

#[test]
fn a_cpu_that_touches_device_memory_faults() {
    let mut simulation = ready();
    let (base, _) = mapped(&mut simulation, 1);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let begin_of = |line: &str| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let end_of = |line: &str| u64::from_str_radix(line.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    let line = maps.lines().find(|line| begin_of(line) <= base && base < end_of(line)).unwrap();
    assert_eq!(line.split(' ').nth(1), Some("---p"), "{line}");
}
