//! Every call of the driver that a scenario makes fails, at every index, once and for ever; then giving back fails too.
//!
//! After a failure everything is as it was: what is owned, what is mapped, the ledger, the driver's own books. Where it
//! can't be, what is left is named in the error and stays charged, and it is gone once the driver is well again. What
//! failed works the next time, with the right bytes, and in the end nothing is left.
//!
//! * `world`: the scenario.
//! * `halfway`: calls that stop in the middle.
//! * `lost`: the device is lost, or its context is gone.
//! * `scarce`: memory and address space run out; prefixes of others.

mod halfway;
mod lost;
mod scarce;
mod world;

use super::setup::{NAMES, load, options, simulator};
use leasehold::ErrorKind;
use leasehold_plugin_api as api;
use leasehold_tests::cuda::{Counts, Lasting, Simulator};
use std::collections::BTreeMap;
use world::{Step, UNIT, World, scenario};

/// One failure: of the `nth` call of a function within a step.
#[derive(Clone, Debug)]
struct Plan {
    step: usize,
    function: String,
    nth: u64,
    lasting: Lasting,
    code: u32,
    extent: Extent,
}

/// How much of its effect a call has that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Nothing,
    /// On the first half of its mappings.
    Half,
}

impl Extent {
    fn plan(self, simulator: &Simulator, function: &str, nth: u64, lasting: Lasting, code: u32) {
        match self {
            Extent::Nothing => simulator.plan(function, nth, lasting, code),
            Extent::Half => simulator.plan_halfway(function, nth, lasting, code),
        }
    }
}

fn start() -> Simulator {
    let simulator = simulator();
    simulator.set("granularity", UNIT);
    simulator
}

/// How often each step calls each function when nothing fails.
fn clean_run(simulator: &Simulator, name: &'static str) -> Vec<BTreeMap<String, u64>> {
    let mut world = World::new(simulator, name);
    let swept = ["cuMem", "cuCtx", "cuPointer", "cuStream", "cuThread"];
    let is_swept = |function: &String| swept.iter().any(|begin| function.starts_with(begin));
    let mut calls = Vec::new();
    for step in scenario(name) {
        let before = simulator.books();
        world.run(step).unwrap_or_else(|error| panic!("{name}: {step:?}: {error}"));
        let after = simulator.books().calls.into_iter().filter(|(function, _)| is_swept(function));
        let made = after.map(|(function, count)| (function.clone(), count - before.count(&function)));
        calls.push(made.filter(|(_, count)| *count > 0).collect());
        world.check();
    }
    world.end();
    calls
}

/// Every call of the scenario, with each of these failures.
fn plans(simulator: &Simulator, name: &'static str, failures: &[(Lasting, u32)]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (step, calls) in clean_run(simulator, name).into_iter().enumerate() {
        for (function, count) in calls {
            for nth in 1..=count {
                for &(lasting, code) in failures {
                    let extent = Extent::Nothing;
                    plans.push(Plan { step, function: function.clone(), nth, lasting, code, extent });
                }
            }
        }
    }
    plans
}

/// Has each failure strike, in a world that is run up to it; those that leave everything as it was share one.
fn survive(simulator: &Simulator, name: &'static str, plans: &[Plan], second: Option<(&str, Extent)>) {
    let mut plans = plans.iter().peekable();
    while plans.peek().is_some() {
        let mut last = None;
        // A thread of its own: where the context that was current could not be made so again, the thread keeps another.
        let outcome = std::thread::scope(|scope| {
            let run = || {
                let step = plans.peek().map_or(0, |plan| plan.step);
                let mut world = World::new(simulator, name);
                let steps = scenario(name);
                steps[..step].iter().for_each(|step| world.run(*step).unwrap());
                let mut outcome = Left::AsBefore;
                while outcome == Left::AsBefore {
                    let Some(plan) = plans.next_if(|plan| plan.step == step) else { break };
                    last = Some(plan.clone());
                    outcome = fail(&mut world, steps[step], plan, second);
                }
                if outcome == Left::AsBefore || outcome == Left::Undone {
                    world.run(steps[step]).unwrap_or_else(|again| panic!("{:?} fails again: {again}", steps[step]));
                }
                world.check();
                for step in steps[step + 1..].iter().filter(|_| outcome != Left::Retired) {
                    world.run(*step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
                }
                world.end();
            };
            scope.spawn(run).join()
        });
        if let Err(payload) = outcome {
            simulator.heal();
            eprintln!("{name}: {last:?}, {second:?}");
            std::panic::resume_unwind(payload);
        }
    }
}

/// What a step left that had to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// What was before.
    AsBefore,
    /// Something else, and the step is not done.
    Undone,
    /// What the step was to do, or to give back, is done by now.
    Done,
    /// The backing is out of service.
    Retired,
}

/// Fails a step, and looks at what that left; then the driver is well again.
fn fail(world: &mut World<'_>, step: Step, plan: &Plan, second: Option<(&str, Extent)>) -> Left {
    let before = world.observe();
    plan.extent.plan(world.simulator, &plan.function, plan.nth, plan.lasting, plan.code);
    if let Some((second, extent)) = second {
        extent.plan(world.simulator, second, 1, Lasting::ForEver, plan.code);
    }
    let outcome = world.run(step);
    let after = world.observe();
    world.simulator.heal();
    let Err(error) = outcome else {
        // No error to see: nobody can be told, or it was made good by parking what could not be given back.
        let silent =
            ["cuCtxGetId", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode", "cuMemRelease"];
        // What is not unmapped in one call is unmapped mapping by mapping.
        let is_made_good = plan.function == "cuMemUnmap" && plan.lasting == Lasting::Once;
        let is_silent = silent.contains(&plan.function.as_str()) || is_made_good;
        assert!(second.is_some() || is_silent, "{step:?}: no failure was told");
        return Left::Done;
    };
    assert_eq!(error.backing_error().and_then(api::BackingError::native_code), Some(i64::from(plan.code)), "{error}");
    assert!(kinds(step, plan.code).contains(&error.kind()), "{step:?}: {error:?}");
    assert!(after.used_bytes >= after.books.bytes, "{step:?}: what is owned is charged: {error}");
    let leaves_doubt = error.backing_error().is_some_and(|error| error.kind().leaves_doubt());
    if !leaves_doubt && !step.may_be_partly_done() {
        let undoes = second.is_none()
            && !(plan.lasting == Lasting::ForEver
                && ["cuCtx", "cuThread"].iter().any(|begin| plan.function.starts_with(begin)));
        assert!(after.is_as(&before, undoes), "{step:?}: {error}: {before:?}, {after:?}");
    }
    let report = world.host.reap();
    assert_eq!((report.remaining, report.remaining_bytes), (0, 0), "{step:?}: {error}");
    assert_eq!(world.is_retired(), plan.code == 999, "{step:?}: {error}");
    match world.is_retired() {
        true => Left::Retired,
        false if step.closes() => Left::Done,
        false if after == before => Left::AsBefore,
        false => Left::Undone,
    }
}

/// How a failure may be reported.
fn kinds(step: Step, code: u32) -> Vec<ErrorKind> {
    match code {
        _ if step.closes() => vec![ErrorKind::NotReleased],
        1 => vec![ErrorKind::AddressSpaceExhausted, ErrorKind::Backing],
        2 => vec![ErrorKind::OutOfMemory, ErrorKind::AddressSpaceExhausted, ErrorKind::Backing],
        999 => vec![ErrorKind::OutOfService],
        _ => vec![ErrorKind::Backing],
    }
}

const FAILURES: [(Lasting, u32); 4] =
    [(Lasting::Once, 2), (Lasting::ForEver, 2), (Lasting::Once, 1), (Lasting::ForEver, 999)];
/// The functions that act on many mappings in one call.
const HALVED: [&str; 2] = ["cuMemUnmap", "cuMemSetAccess"];
const SECONDS: [&str; 3] = ["cuMemUnmap", "cuMemRelease", "cuMemAddressFree"];

fn sweep(name: &'static str) {
    let simulator = start();
    let mut plans = plans(&simulator, name, &FAILURES);
    // It is made before every other call, and a device that is lost there is lost in the other call.
    plans.retain(|plan| plan.function != "cuCtxGetCurrent" || plan.code != 999);
    survive(&simulator, name, &plans, None);
    simulator.finish();
}

#[test]
fn every_call_of_cuda_vmm_that_fails_leaves_nothing_behind() {
    sweep("cuda-vmm");
}

#[test]
fn every_call_of_cuda_pool_that_fails_leaves_nothing_behind() {
    sweep("cuda-pool");
}

#[test]
fn nothing_is_lost_when_giving_back_fails_too() {
    let simulator = start();
    for name in NAMES {
        let mut plans = plans(&simulator, name, &[(Lasting::Once, 2)]);
        plans.retain(|plan| plan.function != "cuCtxGetCurrent");
        SECONDS.iter().for_each(|second| survive(&simulator, name, &plans, Some((second, Extent::Nothing))));
    }
    simulator.finish();
}

/// No documentation says what `cuMemGetAccess` reports where nothing is mapped, and whether a pointer there is refused.
const MANNERS: [(u64, u64); 2] = [(0, 1), (1, 0)];

/// The calls that act on many mappings at once stop in the middle, and so do those that undo them.
#[test]
fn what_stops_half_way_is_undone_or_finished_by_a_later_call() {
    let simulator = start();
    for (name, (everywhere, refuses)) in NAMES.into_iter().zip(MANNERS) {
        simulator.set("access_everywhere", everywhere);
        simulator.set("refuses_unmapped", refuses);
        let mut plans = plans(&simulator, name, &[(Lasting::Once, 400), (Lasting::ForEver, 400)]);
        plans.retain(|plan| HALVED.contains(&plan.function.as_str()));
        plans.iter_mut().for_each(|plan| plan.extent = Extent::Half);
        survive(&simulator, name, &plans, None);
        for second in HALVED.into_iter().chain(SECONDS).chain(["cuPointerGetAttribute"]) {
            survive(&simulator, name, &plans, Some((second, Extent::Nothing)));
        }
        HALVED.iter().for_each(|second| survive(&simulator, name, &plans, Some((second, Extent::Half))));
    }
    simulator.finish();
}

/// A backing that can't be made is rejected, with the reason, and leaves nothing: nobody could give it back later.
#[test]
fn every_call_of_making_a_backing_that_fails_leaves_nothing_behind() {
    let simulator = start();
    for name in NAMES {
        let before = simulator.books();
        drop(load(name, options(&[])));
        for (function, count) in simulator.books().calls {
            for nth in 1..=count - before.count(&function) {
                simulator.plan(&function, nth, Lasting::Once, 2);
                // A thread of its own, as in the sweeps.
                let state =
                    std::thread::spawn(move || load(name, options(&[])).backings().remove(0).state).join().unwrap();
                simulator.heal();
                let told = state.reason().unwrap_or_default().contains("CUDA_ERROR_OUT_OF_MEMORY (2)");
                assert!(told, "{name}: {function}, {nth}: {state:?}");
                assert_eq!(simulator.counts(), Counts::default(), "{name}: {function}, {nth}");
            }
        }
    }
    simulator.finish();
}
