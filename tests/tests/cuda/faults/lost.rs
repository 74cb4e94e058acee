//! The device is lost, or its context ends under the backings.

use super::start;
use super::world::{Step, World, scenario};
use crate::setup::{DEVICE, NAMES};
use leasehold::{Error, ErrorKind};
use leasehold_cuda_driver::troubles;
use leasehold_tests::child::in_child;
use leasehold_tests::cuda::{Lasting, Simulator};
use leasehold_tests::log::Log;
use tracing::Level;

/// A world in which as much as possible is mapped.
fn filled<'s>(simulator: &'s Simulator, name: &'static str) -> World<'s> {
    let mut world = World::new(simulator, name);
    let steps = scenario(name);
    let last = if name == "cuda-pool" { Step::WriteBehind } else { Step::Regrow };
    let end = steps.iter().position(|step| *step == last).unwrap();
    steps[..=end].iter().for_each(|step| world.run(*step).unwrap());
    world
}

fn code(error: &Error) -> Option<i64> {
    error.backing_error().and_then(leasehold_plugin_api::BackingError::native_code)
}

/// Loses the device, and looks at what a backing makes of it: until its end everything stays charged.
fn lose(name: &'static str, simulator: &Simulator, lose: impl Fn(&Simulator), lost_code: i64) {
    let mut world = filled(simulator, name);
    let (governor, used) = (world.host.governor(), world.used());
    lose(simulator);
    let error = world.run(Step::GrowAgain).unwrap_err();
    assert_eq!((error.kind(), code(&error)), (ErrorKind::OutOfService, Some(lost_code)), "{name}: {error}");
    assert!(world.is_retired(), "{name}");
    let error = world.run(Step::Read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfService, "{name}: {error}");
    let error = world.run(Step::CloseSet).unwrap_err();
    assert_eq!((error.kind(), code(&error)), (ErrorKind::NotReleased, Some(lost_code)), "{name}: {error}");
    world.forget_objects();
    let report = world.host.reap();
    assert!(report.released == 0 && report.remaining > 0, "{name}: {report:?}");
    assert!(world.used() >= used, "{name}: what can't be given back stays charged");
    let failed = troubles().drops_failed;
    let told = end_and_hear(world);
    assert!(told.iter().any(|line| line.starts_with("region ")), "{name}: {told:?}");
    assert_eq!(told.iter().any(|line| line.starts_with("prefix ")), name == "cuda-pool", "{name}: {told:?}");
    assert!(told.iter().all(|line| line.contains(&format!("({lost_code})"))), "{name}: {told:?}");
    let left = governor.snapshot().domain(DEVICE).unwrap().used_bytes;
    assert_eq!(left, 0, "{name}: charges end with the backing");
    assert!(troubles().drops_failed > failed, "{name}: what the driver kept is counted");
    let books = simulator.books();
    assert_eq!(books.violations, [""; 0], "{name}");
    assert_eq!(books.devices[0].context_retains, 0, "{name}: the context is given back");
}

/// Ends a host with its backing, and answers what the backing logged of what outlives it.
fn end_and_hear(world: World<'_>) -> Vec<String> {
    let name = world.backing.name().to_owned();
    Log::during(|log| {
        drop(world);
        let lines = log.lines().into_iter().filter(|line| line.backing == name && line.level == Level::ERROR);
        lines.map(|line| line.message).filter(|message| message.contains(" its backing: ")).collect()
    })
}

/// What can't be given back, and nobody asked for again: the backing tells it with its last words.
#[test]
fn what_outlives_its_backing_is_told_to_the_host() {
    if !in_child("faults::lost::what_outlives_its_backing_is_told_to_the_host", &[]) {
        return;
    }
    let simulator = start();
    for (name, function, start) in [
        ("cuda-vmm", "cuMemUnmap", "region "),
        ("cuda-vmm", "cuMemRelease", "region "),
        ("cuda-vmm", "cuMemAddressFree", "region "),
        ("cuda-pool", "cuMemUnmap", "region "),
        ("cuda-pool", "cuMemAddressFree", "prefix "),
        ("cuda-pool", "cuMemRelease", "parked memory "),
    ] {
        let mut world = filled(&simulator, name);
        simulator.plan(function, 1, Lasting::ForEver, 1);
        world.forget_objects();
        let told = end_and_hear(world);
        simulator.heal();
        let is_told = |line: &String| line.starts_with(start) && line.contains("CUDA_ERROR_INVALID_VALUE (1)");
        assert!(told.iter().any(is_told), "{name}: {function}: {told:?}");
    }
}

#[test]
fn a_device_that_is_lost_retires_its_backings_and_their_charges_end_with_them() {
    if in_child("faults::lost::a_device_that_is_lost_retires_its_backings_and_their_charges_end_with_them", &[]) {
        let simulator = start();
        NAMES.iter().for_each(|name| lose(name, &simulator, |simulator| simulator.poison(0, 719), 719));
    }
}

#[test]
fn a_context_that_ends_under_its_backings_retires_them_and_destructors_go_through() {
    if in_child("faults::lost::a_context_that_ends_under_its_backings_retires_them_and_destructors_go_through", &[]) {
        let simulator = start();
        NAMES.iter().for_each(|name| lose(name, &simulator, |simulator| simulator.reset_context(0), 709));
    }
}

/// A step that could not be undone is reported as in doubt. Where the device was lost meanwhile, that is reported instead.
#[test]
fn a_device_that_is_lost_while_a_failure_is_undone_is_lost() {
    let simulator = start();
    for name in NAMES {
        for second in ["cuMemUnmap", "cuMemRelease"] {
            let mut world = filled(&simulator, name);
            simulator.plan("cuMemSetAccess", 2, Lasting::Once, 2);
            simulator.plan(second, 1, Lasting::ForEver, 719);
            let error = world.run(Step::GrowAgain).unwrap_err();
            // A pool parks what it can't give back, and goes on until the device is needed.
            let is_lost = name == "cuda-vmm" || second == "cuMemUnmap";
            assert_eq!(world.is_retired(), is_lost, "{name}: {second}: {error}");
            assert_eq!(error.kind() == ErrorKind::OutOfService, is_lost, "{name}: {second}: {error}");
            world.end();
        }
    }
    simulator.finish();
}
