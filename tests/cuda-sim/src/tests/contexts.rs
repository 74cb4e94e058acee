//! CUDA Driver API, Initialization, Primary Context Management, Context Management.

use super::*;
use crate::contexts::{current, pop_current, push_current, set_current};

#[test]
fn a_call_before_initialising_is_refused() {
    let mut simulation = fresh();
    assert_eq!(simulation.call("cuDeviceGetCount", Need::Initialised, |_, _| Ok(())), Err(Code::NOT_INITIALIZED));
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::NOT_INITIALIZED));
    assert_eq!(simulation.call("cuDriverGetVersion", Need::Nothing, |_, _| Ok(())), Ok(()));
    simulation.initialise(0).unwrap();
    assert_eq!(simulation.call("cuDeviceGetCount", Need::Initialised, |_, _| Ok(())), Ok(()));
}

#[test]
fn initialising_without_a_device_answers_no_device() {
    let mut simulation = fresh();
    simulation.settings.set("devices", 0, 0).unwrap();
    assert_eq!(simulation.initialise(0), Err(Code::NO_DEVICE));
    assert_eq!(simulation.initialise(1), Err(Code::INVALID_VALUE), "flags are 0");
}

#[test]
fn an_ordinal_out_of_range_is_an_invalid_device() {
    let simulation = ready();
    for device in [-1, 2] {
        assert_eq!(simulation.check_device(device), Err(Code::INVALID_DEVICE));
    }
}

#[test]
fn a_thread_without_a_context_is_refused() {
    let mut simulation = ready();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::INVALID_CONTEXT)));
    });
    assert!(reserve(&mut simulation, GRANULE).is_ok(), "this thread has its own");
}

#[test]
fn contexts_stack_and_setting_replaces_the_top() {
    set_current(Some(1));
    push_current(2);
    set_current(Some(3));
    assert_eq!((pop_current(), current()), (Ok(3), Some(1)));
    set_current(None);
    assert_eq!((current(), pop_current()), (None, Err(Code::INVALID_CONTEXT)));
}

#[test]
fn a_primary_context_lives_until_its_last_release() {
    let mut simulation = ready();
    let first = simulation.contexts.retain(0);
    assert_eq!(Some(first), current());
    simulation.release_context(0).unwrap();
    assert!(reserve(&mut simulation, GRANULE).is_ok());
    simulation.release_context(0).unwrap();
    assert_ne!(simulation.contexts.retain(0), first, "a new one is another");
}

#[test]
fn a_release_too_many_is_a_violation() {
    let mut simulation = ready();
    simulation.release_context(0).unwrap();
    assert_eq!(simulation.release_context(0), Err(Code::INVALID_CONTEXT));
    assert!(only_violation(&simulation).contains("nobody retains that of device 0"));
}

#[test]
fn use_after_the_context_was_released_is_a_violation() {
    let mut simulation = ready();
    simulation.release_context(0).unwrap();
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::CONTEXT_IS_DESTROYED));
    assert!(only_violation(&simulation).ends_with("was released"));
}

#[test]
fn a_context_that_was_reset_is_gone_for_its_users_without_their_fault() {
    let mut simulation = ready();
    let allocation = call(&mut simulation, |memory, settings, _| memory.allocate(settings, 0, 1)).unwrap();
    assert!(simulation.memory.allocations.contains_key(&allocation));
    simulation.reset_context(0).unwrap();
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::CONTEXT_IS_DESTROYED));
    simulation.release_context(0).unwrap();
    assert_clean(&simulation);
}

#[test]
fn a_poisoned_context_answers_its_code_until_it_ends() {
    let mut simulation = ready();
    simulation.contexts.poison(0, Code(719)).unwrap();
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code(719)));
    let context = current().unwrap();
    assert_eq!(simulation.may_be_current("cuCtxSetCurrent", context), Ok(()), "it may still be made current");
    simulation.release_context(0).unwrap();
    bind(&mut simulation, 0);
    assert!(reserve(&mut simulation, GRANULE).is_ok());
}
