//! Calls that fail, values that can't be closed, contexts that are gone.

use super::*;

#[test]
fn running_out_is_told_from_what_was_wrong() {
    let simulator = Simulator::start();
    simulator.limit_memory(0, 4 * GRANULE);
    simulator.set("address_space", 64 * GRANULE);
    let device = device(&simulator, 0);
    let held = memory(&device, 3);
    let fault = device.create(Properties::of_device(0), 2 * GRANULE).unwrap_err();
    assert_eq!((fault, fault.kind()), (Fault::new("cuMemCreate", 2), ErrorKind::OutOfMemory));
    assert_eq!(fault.into_error("commit", "free").kind(), ErrorKind::OutOfMemory);
    let fault = device.reserve(65 * GRANULE, GRANULE).unwrap_err();
    assert_eq!((fault, fault.kind()), (Fault::new("cuMemAddressReserve", 2), ErrorKind::AddressSpaceExhausted));
    for code in [1, 304] {
        simulator.set("address_refusal", code.into());
        let fault = device.reserve(65 * GRANULE, GRANULE).unwrap_err();
        assert_eq!((fault.code, fault.kind()), (code, ErrorKind::AddressSpaceExhausted));
    }
    held.close().unwrap();
    drop(device);
    simulator.finish();
}

/// A driver may answer anything to a size that no device has addresses for, or do worse.
#[test]
fn what_no_device_has_addresses_for_is_refused_without_the_driver() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let before = simulator.books().calls;
    for (bytes, align) in
        [(1 << 47, GRANULE), (u64::MAX - GRANULE + 1, GRANULE), (GRANULE, 1 << 47), (GRANULE, 1 << 63)]
    {
        let fault = device.reserve(bytes, align).unwrap_err();
        assert_eq!((fault.code, fault.kind()), (2, ErrorKind::AddressSpaceExhausted), "{bytes}, {align}");
    }
    assert_eq!(simulator.books().calls, before);
    drop(device);
    simulator.finish();
}

#[test]
fn every_call_that_fails_is_told_with_its_kind_and_leaves_nothing() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let kinds = [
        (1, ErrorKind::Internal),
        (2, ErrorKind::OutOfMemory),
        (4, ErrorKind::DeviceLost),
        (709, ErrorKind::DeviceLost),
        (700, ErrorKind::DeviceLost),
        (719, ErrorKind::DeviceLost),
        (801, ErrorKind::Unsupported),
        (999, ErrorKind::DeviceLost),
        (123_456, ErrorKind::Internal),
    ];
    type Call<'a> = &'a dyn Fn(&Reservation, &PhysicalHandle) -> Option<Fault>;
    let functions: [(&str, Call<'_>); 4] = [
        ("cuMemCreate", &|_, _| device.create(Properties::of_device(0), GRANULE).err()),
        ("cuMemMap", &|space, memory| space.map(0, memory).err()),
        ("cuMemSetAccess", &|space, memory| {
            space.map(0, memory).unwrap();
            let failed = space.set_access(0, GRANULE, &[grant(&device, Access::ReadWrite)]).err();
            space.unmap(0, GRANULE).unwrap();
            failed
        }),
        ("cuMemAlloc_v2", &|_, _| device.allocate(1).err()),
    ];
    let (space, memory) = (device.reserve(GRANULE, GRANULE).unwrap(), memory(&device, 1));
    for (function, call) in functions {
        for (code, kind) in kinds {
            simulator.plan(function, 1, Lasting::Once, code);
            let fault = call(&space, &memory).unwrap();
            assert_eq!((fault.code, fault.kind()), (code, kind), "{function}");
            let error = fault.into_error("x", "y");
            assert_eq!(error.native_code(), Some(i64::from(code)));
            assert!(error.message().contains(&format!("{} failed: ", function.trim_end_matches("_v2"))), "{error}");
        }
    }
    memory.close().unwrap();
    space.close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn what_can_not_be_closed_comes_back_and_closes_later() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = (device.reserve(GRANULE, GRANULE).unwrap(), memory(&device, 1));
    let allocation = device.allocate(1).unwrap();
    simulator.plan("cuMem*", 1, Lasting::ForEver, 999);
    let (space, fault) = space.close().unwrap_err();
    assert_eq!(fault, Fault::new("cuMemAddressFree", 999));
    let (memory, fault) = memory.close().unwrap_err();
    assert_eq!(fault, Fault::new("cuMemRelease", 999));
    let (allocation, fault) = allocation.close().unwrap_err();
    assert_eq!(fault, Fault::new("cuMemFree", 999));
    simulator.heal();
    space.close().unwrap();
    memory.close().unwrap();
    allocation.close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn drop_gives_back_what_nobody_closed() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let before = troubles();
    drop((device.reserve(GRANULE, GRANULE).unwrap(), memory(&device, 1), device.allocate(1).unwrap()));
    drop(device);
    assert_eq!(troubles(), before);
    simulator.finish();
}

#[test]
fn a_wait_that_fails_is_told_by_whatever_waited() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let allocation = device.allocate(64).unwrap();
    let span = allocation.span(0, 64).unwrap();
    let waits: [&dyn Fn() -> Result<(), Fault>; 5] = [
        &|| device.wait_for_zeroing(),
        &|| device.wait_for_copies(),
        &|| span.fill(1),
        &|| span.write(&[2; 64]),
        &|| span.read(&mut [0; 64]),
    ];
    for wait in waits {
        simulator.plan("cuStreamSynchronize", 1, Lasting::Once, 700);
        let fault = wait().unwrap_err();
        assert_eq!((fault.call, fault.kind()), ("cuStreamSynchronize", ErrorKind::DeviceLost));
        device.wait_for_copies().unwrap();
    }
    simulator.plan("cuMemsetD8Async", 1, Lasting::Once, 1);
    assert_eq!(span.fill(1).unwrap_err(), Fault::new("cuMemsetD8Async", 1));
    allocation.close().unwrap();
    drop(device);
    simulator.finish();
}

/// Seen elsewhere: handles took descriptors, and the driver said "out of memory" when the process had none left.
#[test]
fn no_descriptor_left_is_told_from_no_memory_left() {
    if !in_child("failures::no_descriptor_left_is_told_from_no_memory_left", &[]) {
        return;
    }
    let simulator = Simulator::start();
    simulator.set("descriptors", 1);
    let device = device(&simulator, 0);
    let first = memory(&device, 1);
    limit_descriptors(0);
    let fault = device.create(Properties::of_device(0), GRANULE).unwrap_err();
    assert_eq!((fault.call, fault.code, fault.kind()), ("cuMemCreate", 2, ErrorKind::Internal));
    assert!(fault.to_string().ends_with("(2), since this process has no file descriptor left"), "{fault}");
    assert!(fault.advice().contains("ulimit -n"), "{}", fault.advice());
    limit_descriptors(64);
    simulator.limit_memory(0, GRANULE);
    let fault = device.create(Properties::of_device(0), GRANULE).unwrap_err();
    assert_eq!((fault.code, fault.kind()), (2, ErrorKind::OutOfMemory), "there are descriptors");
    first.close().unwrap();
    drop(device);
    simulator.finish();
}
