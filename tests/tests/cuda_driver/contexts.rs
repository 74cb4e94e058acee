//! When a context is made, how long it is retained, and what is left where it ends under its users.

use super::*;
use crate::finding::changed_simulator;
use leasehold_plugin_api::BackingError;
use leasehold_tests::fork::{How, in_fork};

/// How often the calls were made that make a context or need one.
fn calls_of_contexts(simulator: &Simulator) -> u64 {
    let books = simulator.books();
    let needs =
        |name: &&String| ["cuDevicePrimary", "cuCtx", "cuStream", "cuMem"].iter().any(|begin| name.starts_with(begin));
    books
        .calls
        .keys()
        .filter(needs)
        .filter(|name| *name != "cuMemGetAllocationGranularity")
        .map(|name| books.count(name))
        .sum()
}

/// A context takes seconds and hundreds of MiB, and listing devices has no use for it.
#[test]
fn what_a_device_is_needs_no_context() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    device.name().unwrap();
    device.total_bytes().unwrap();
    assert!(device.supports_virtual_memory().unwrap());
    assert_eq!(device.granularity(Properties::of_device(0)).unwrap().minimum, GRANULE);
    assert!(open(&simulator).can_reach(0, 1).unwrap());
    device.wait_for_zeroing().unwrap();
    device.wait_for_copies().unwrap();
    assert_eq!(calls_of_contexts(&simulator), 0, "{:?}", simulator.books().calls);
    let space = device.reserve(GRANULE, GRANULE).unwrap();
    assert_eq!(
        (simulator.counts().context_retains, simulator.counts().streams),
        (1, 2),
        "from the first reservation on"
    );
    space.close().unwrap();
    drop(device);
    simulator.finish();
}

/// Its documented codes list none for the want of a context.
#[test]
fn a_driver_that_wants_a_context_for_the_granularity_gets_one() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    simulator.plan("cuMemGetAllocationGranularity", 1, Lasting::Once, 201);
    assert_eq!(device.granularity(Properties::of_device(0)).unwrap().minimum, GRANULE);
    assert_eq!(simulator.counts().context_retains, 1);
    drop(device);
    simulator.finish();
}

#[test]
fn a_context_is_retained_once_and_released_with_its_last_user() {
    let simulator = Simulator::start();
    let first = device(&simulator, 0);
    let second = device(&simulator, 0);
    let memories = [memory(&first, 1), memory(&second, 1)];
    assert_eq!(simulator.books().devices[0].context_retains, 1);
    drop((first, second));
    assert_eq!(simulator.books().devices[0].context_retains, 1, "the memory needs it");
    memories.into_iter().for_each(|memory| memory.close().unwrap());
    assert_eq!(simulator.books().devices[0].context_retains, 0);
    let again = device(&simulator, 0);
    drop(again.bind().unwrap());
    assert_eq!(simulator.count("cuDevicePrimaryCtxRetain"), 2);
    drop(again);
    simulator.finish();
}

#[test]
fn eight_threads_make_one_context() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| memory(&device, 1).close().unwrap());
        }
    });
    assert_eq!((simulator.count("cuDevicePrimaryCtxRetain"), simulator.counts().streams), (1, 2));
    drop(device);
    simulator.finish();
}

#[test]
fn a_context_that_can_not_be_made_is_told_with_its_kind() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let refusals = [
        (2, ErrorKind::OutOfMemory, "free memory of the device"),
        (46, ErrorKind::Unavailable, "another process has the device to itself"),
        (802, ErrorKind::Unavailable, "fabric manager"),
        (810, ErrorKind::DeviceLost, "the MPS server ended"),
        (999, ErrorKind::Unavailable, "nvidia-smi -q"),
    ];
    for (code, kind, words) in refusals {
        simulator.plan("cuDevicePrimaryCtxRetain", 1, Lasting::Once, code);
        let fault = device.reserve(GRANULE, GRANULE).unwrap_err();
        assert_eq!((fault.call, fault.code, fault.kind()), ("cuDevicePrimaryCtxRetain", code, kind));
        assert!(fault.advice().contains(words), "{}", fault.advice());
    }
    simulator.set("compute_mode", 2);
    let fault = device.reserve(GRANULE, GRANULE).unwrap_err();
    assert_eq!((fault.kind(), fault.code), (ErrorKind::Unavailable, 999));
    assert!(fault.to_string().ends_with("(999), since the device's compute mode is prohibited"), "{fault}");
    drop(device);
    simulator.finish();
}

#[test]
fn a_device_on_which_no_context_can_be_made_is_unavailable() {
    let simulator = Simulator::start();
    simulator.set("compute_mode", 2);
    let error = open(&simulator).device(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.message().contains("its compute mode is prohibited; have it allow contexts (nvidia-smi -c"),
        "{error}"
    );
    simulator.finish();
}

#[test]
fn a_context_whose_streams_can_not_be_made_is_released() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    for nth in [1, 2] {
        simulator.plan("cuStreamCreate", nth, Lasting::Once, 2);
        assert_eq!(device.bind().map(drop).unwrap_err(), Fault::new("cuStreamCreate", 2));
        assert!(simulator.books().is_empty(), "{nth}");
    }
    simulator.plan("cuCtxGetId", 1, Lasting::Once, 2);
    assert_eq!(device.bind().map(drop).unwrap_err(), Fault::new("cuCtxGetId", 2));
    assert!(simulator.books().is_empty());
    drop(device);
    simulator.finish();
}

/// What other code of the process does to the context, and whether it is made anew at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Gone,
    MadeAnew,
}

/// Seen elsewhere: the same address came back, and using a stream of the former context crashed.
#[test]
fn after_a_reset_the_device_is_lost_and_no_old_stream_is_used() {
    for reset in [Reset::Gone, Reset::MadeAnew] {
        let simulator = Simulator::start();
        let device = device(&simulator, 0);
        let (space, memory) = mapped(&device, 1);
        let allocation = device.allocate(64).unwrap();
        let before = troubles().drops_failed;
        simulator.reset_context(0);
        let theirs = (reset == Reset::MadeAnew).then(|| simulator.enter(0));
        for _ in 0..2 {
            let faults = [
                space.span(0, 1).unwrap().fill(0).unwrap_err(),
                space.span(0, 1).unwrap().zero().unwrap_err(),
                device.wait_for_zeroing().unwrap_err(),
                device.wait_for_all().unwrap_err(),
                device.create(Properties::of_device(0), GRANULE).unwrap_err(),
            ];
            for fault in faults {
                assert_eq!((fault.code, fault.kind()), (709, ErrorKind::DeviceLost), "{reset:?}: {fault}");
            }
        }
        assert!(device.has_ended(), "{reset:?}");
        simulator.set("gives_back_without_context", 1);
        end(space, memory);
        drop((allocation, device));
        assert_eq!(
            troubles().drops_failed,
            before + 1,
            "{reset:?}: the allocation went with the context, the streams too"
        );
        drop(theirs);
        simulator.finish();
    }
}

/// The context that is made anew is another one, for code that begins anew in the same process.
#[test]
fn beside_what_a_reset_ended_the_device_is_used_anew() {
    let simulator = Simulator::start();
    simulator.set("gives_back_without_context", 1);
    let lost = device(&simulator, 0);
    let (space, memory) = mapped(&lost, 1);
    simulator.reset_context(0);
    let again = device(&simulator, 0);
    let (new_space, new_memory) = mapped(&again, 1);
    let bound = again.bind().unwrap();
    new_space.span(0, GRANULE).unwrap().fill(3).unwrap();
    assert_eq!(space.span(0, 1).unwrap().fill(0).unwrap_err().code, 709, "though the same address is current");
    drop(bound);
    assert_eq!(read(&new_space, 0, GRANULE), vec![3; usize::try_from(GRANULE).unwrap()]);
    end(space, memory);
    drop(lost);
    end(new_space, new_memory);
    drop(again);
    simulator.finish();
}

#[test]
fn after_the_context_is_gone_calls_and_drops_fail_in_words() {
    if !in_child("contexts::after_the_context_is_gone_calls_and_drops_fail_in_words", &[]) {
        return;
    }
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    simulator.reset_context(0);
    let fault = space.span(0, 1).unwrap().fill(0).unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::DeviceLost, "{fault}");
    let (memory, fault) = memory.close().unwrap_err();
    assert_eq!(fault.code, 709, "where the driver gives nothing back without a context either");
    let before = troubles().drops_failed;
    drop((space, memory, device));
    assert_eq!(troubles().drops_failed, before + 2, "addresses and memory");
    let books = simulator.books();
    assert_eq!(books.violations, [""; 0]);
    assert_eq!(books.devices[0].context_retains, 0, "the retain is given back all the same");
}

/// `cuCtxGetId` came with CUDA 12.0.
#[test]
fn a_driver_without_ids_of_contexts_serves() {
    if !in_child("contexts::a_driver_without_ids_of_contexts_serves", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = changed_simulator(folder.path(), "cuCtxGetId", "cuCtxGetIc");
    let simulator = Simulator::start_from(&path);
    let device = Driver::open(Some(&path)).unwrap().device(0).unwrap();
    let (space, memory) = mapped(&device, 1);
    space.span(0, 1).unwrap().fill(0).unwrap();
    simulator.reset_context(0);
    let fault = space.span(0, 1).unwrap().fill(0).unwrap_err();
    assert_eq!((fault.call, fault.code, fault.kind()), ("cuCtxSetCurrent", 709, ErrorKind::DeviceLost));
    simulator.set("gives_back_without_context", 1);
    end(space, memory);
    drop(device);
    simulator.finish();
}

#[test]
fn what_can_not_be_made_current_is_given_back_without() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    for function in ["cuCtxGetId", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode"] {
        let (space, memory) = mapped(&device, 1);
        simulator.plan(function, 1, Lasting::ForEver, 1);
        let fault = space.unmap(0, GRANULE).unwrap_err();
        assert_eq!(fault, Fault::new(function, 1), "the driver wants a context");
        simulator.set("gives_back_without_context", 1);
        end(space, memory);
        simulator.heal();
        simulator.set("gives_back_without_context", 0);
    }
    drop(device);
    simulator.finish();
}

/// Seen elsewhere: workers were forked after the driver was initialised, and got 3 from every call.
#[test]
fn a_forked_child_is_told_so_and_what_to_do() {
    if !in_child("contexts::a_forked_child_is_told_so_and_what_to_do", &[]) {
        return;
    }
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    let because = "(3), since this process was forked from one that had initialised CUDA";
    let advice = "fork workers before a registry is loaded or CUDA is used, or start them by exec";
    let is_told = in_fork(How::Fork, || {
        let opened = [None, Some(Simulator::path())].map(|path| Driver::open(path.as_deref()).unwrap_err());
        let is_said = |error: &BackingError| error.message().ends_with(&format!("{because}; {advice}"));
        let are_said = opened.iter().all(|error| error.kind() == ErrorKind::Unavailable && is_said(error));
        let faults = [
            device.create(Properties::of_device(0), GRANULE).unwrap_err(),
            device.name().unwrap_err(),
            space.unmap(0, GRANULE).unwrap_err(),
        ];
        let is_lost = |fault: &Fault| fault.kind() == ErrorKind::DeviceLost && fault.advice() == advice;
        are_said && faults.iter().all(|fault| is_lost(fault) && fault.to_string().ends_with(because))
    });
    assert_eq!(is_told, Ok(true));
    space.span(0, 8).unwrap().fill(1).unwrap();
    assert_eq!(read(&space, 0, 8), [1; 8], "the parent goes on");
    end(space, memory);
    drop(device);
    simulator.finish();
}
