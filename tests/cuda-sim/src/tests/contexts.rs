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

#[test]
fn after_a_reset_the_address_is_the_same_and_the_id_is_not() {
    let mut simulation = ready();
    let context = current().unwrap();
    let unique = simulation.contexts.unique(context).unwrap();
    let stream = simulation.streams.create(0, 1).unwrap();
    simulation.reset_context(0).unwrap();
    assert_eq!(simulation.contexts.unique(context), Err(Code::CONTEXT_IS_DESTROYED));
    assert_eq!(simulation.contexts.retain(0), context);
    assert_ne!(simulation.contexts.unique(context).unwrap(), unique);
    assert!(reserve(&mut simulation, GRANULE).is_ok());
    assert_eq!(simulation.contexts.retains_of(0), 2, "a reset releases nothing");
    assert_eq!(simulation.queue("a call", stream, 0), Err(Code::INVALID_HANDLE));
    assert!(only_violation(&simulation).ends_with("is no live stream"));
}

#[test]
fn giving_back_without_a_context_is_a_setting() {
    let mut simulation = ready();
    let free = |simulation: &mut Simulation, base| {
        simulation.call("a call", Need::GivingBack, |simulation, _| simulation.memory.free_addresses(base, GRANULE))
    };
    let base = reserve(&mut simulation, GRANULE).unwrap();
    set_current(None);
    assert_eq!(free(&mut simulation, base), Err(Code::INVALID_CONTEXT));
    simulation.settings.set("gives_back_without_context", 0, 1).unwrap();
    free(&mut simulation, base).unwrap();
    assert_clean(&simulation);
}
