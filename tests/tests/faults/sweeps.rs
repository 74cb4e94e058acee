//! The sweeps: every call of the scenario fails in turn, and then undoing fails too.

use crate::{PLANES, REFUSALS, SCENARIO, Step, World, alone};
use leasehold::ErrorKind;
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Held, Strikes, Under};

/// Every call that the scenario makes when nothing fails.
fn clean_calls(under: Under) -> Vec<(Call, u64)> {
    let mut world = World::new(under);
    for step in SCENARIO {
        world.run(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
    let counts = world.faults.counts();
    world.end();
    let count = |call: &Call| counts.get(call).copied().unwrap_or(0);
    Call::FALLIBLE.iter().flat_map(|call| (0..count(call)).map(|nth| (*call, nth))).collect()
}

fn sweep(under: Under, fault: Fault, calls: &[(Call, u64)]) {
    for (call, nth) in calls {
        for strikes in [Strikes::Once, Strikes::Always] {
            let mut world = World::new(under);
            world.faults.plan(*call, *nth, strikes, fault);
            for step in SCENARIO {
                world.survive(step, fault);
            }
            assert!(world.faults.struck() > 0, "{call:?} {nth} was never made");
            world.end();
        }
    }
}

#[test]
fn the_scenario_makes_every_kind_of_call_that_needs_no_failure() {
    let _alone = alone();
    for under in Under::EXACT {
        let calls = clean_calls(under);
        let count = |kind| calls.iter().filter(|(call, _)| *call == kind).count();
        let kinds = [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::Allocate, Call::Release];
        assert_eq!(kinds.map(count), [PLANES, 5, 2, 1, 1, PLANES + 1], "{under:?}");
    }
}

#[test]
fn every_call_that_fails_leaves_everything_as_it_was_and_works_the_next_time() {
    let _alone = alone();
    for under in Under::EXACT {
        let calls = clean_calls(under);
        for fault in REFUSALS {
            sweep(under, fault, &calls);
        }
    }
}

#[test]
fn every_call_that_fails_leaves_the_books_right_where_the_backing_charges() {
    let _alone = alone();
    let under = Under::CHARGING_MMAP;
    sweep(under, REFUSALS[0], &clean_calls(under));
}

#[test]
fn a_decommit_or_release_that_fails_half_way_leaves_what_it_says() {
    let _alone = alone();
    for under in [Under::MMAP, Under::CHARGING_MMAP, Under::POOL] {
        let calls = clean_calls(under).into_iter();
        let halves: Vec<_> = calls.filter(|(call, _)| matches!(call, Call::Decommit | Call::Release)).collect();
        sweep(under, Fault::HalfWay(api::ErrorKind::Internal), &halves);
    }
}

fn break_and_fail_to_undo(under: Under, first: Fault, second: Call) {
    for (call, nth) in clean_calls(under) {
        let mut world = World::new(under);
        world.faults.plan(call, nth, Strikes::Always, first);
        world.faults.plan(second, 0, Strikes::Always, first);
        for step in SCENARIO {
            if world.set.is_some() || matches!(step, Step::Make | Step::Allocate | Step::CloseAllocation) {
                let _ = world.run(step);
            }
            world.check_bytes();
            assert!(world.used() >= world.faults.held().owned_bytes, "all that is owned is charged");
        }
        let faults = world.faults.clone();
        faults.heal();
        world.end();
    }
}

#[test]
fn nothing_is_left_when_undoing_fails_too() {
    let _alone = alone();
    for under in Under::EXACT {
        for first in [REFUSALS[0], Fault::HalfWay(api::ErrorKind::OutOfMemory)] {
            for second in [Call::Release, Call::Decommit, Call::CommittedBytes] {
                break_and_fail_to_undo(under, first, second);
            }
        }
    }
}

#[test]
fn a_set_whose_making_fails_gives_back_the_planes_that_it_has() {
    let _alone = alone();
    for under in Under::EXACT {
        for nth in 0..4 {
            let mut world = World::new(under);
            world.faults.plan(Call::Reserve, nth, Strikes::Once, REFUSALS[1]);
            assert_eq!(world.run(Step::Make).unwrap_err().kind(), ErrorKind::AddressSpaceExhausted, "{under:?}");
            assert_eq!((world.faults.count(Call::Release), world.faults.held()), (nth, Held::default()), "{under:?}");
            world.end();
        }
    }
}
