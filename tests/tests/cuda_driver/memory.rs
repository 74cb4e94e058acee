//! Reserving, mapping, copying, on one device and on two.

use super::*;

#[test]
fn memory_is_reserved_mapped_written_aliased_unmapped_and_freed() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, first) = mapped(&device, 2);
    let alias = device.reserve(4 * GRANULE, 4 * GRANULE).unwrap();
    assert!(alias.base().is_aligned_to(4 * GRANULE));
    alias.map(GRANULE, &first).unwrap();
    alias.set_access(GRANULE, 2 * GRANULE, &[grant(&device, Access::ReadOnly)]).unwrap();
    space.span(100, 4).unwrap().write(b"here").unwrap();
    assert_eq!(read(&alias, GRANULE + 100, 4), b"here");
    assert_eq!(alias.access(2 * GRANULE, 0).unwrap(), Some(Access::ReadOnly));
    assert_eq!(space.access(0, 0).unwrap(), Some(Access::ReadWrite));
    assert_eq!(simulator.books().used(0), 2 * GRANULE, "an alias costs no memory");

    let target = space.span(GRANULE, 4).unwrap();
    target.copy_from(&alias.span(GRANULE + 100, 4).unwrap()).unwrap();
    assert_eq!(read(&space, GRANULE, 4), b"here");

    first.close().unwrap();
    space.unmap(0, 2 * GRANULE).unwrap();
    assert_eq!(simulator.books().used(0), 2 * GRANULE, "the alias keeps the memory");
    assert_eq!(read(&alias, 2 * GRANULE, 4), b"here");
    alias.unmap(GRANULE, 2 * GRANULE).unwrap();
    assert_eq!(simulator.books().used(0), 0);
    space.close().unwrap();
    alias.close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn a_write_into_a_read_only_mapping_is_refused_and_the_context_lives() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    space.span(0, 8).unwrap().fill(1).unwrap();
    space.set_access(0, GRANULE, &[grant(&device, Access::ReadOnly)]).unwrap();
    assert_eq!(space.span(0, 8).unwrap().fill(2).unwrap_err(), Fault::new("cuMemsetD8Async", 1));
    assert_eq!(space.span(0, 8).unwrap().write(&[2; 8]).unwrap_err(), Fault::new("cuMemcpyHtoDAsync", 1));
    assert_eq!(read(&space, 0, 8), [1; 8]);
    end(space, memory);
    drop(device);
    let books = simulator.books();
    assert!(books.is_empty() && books.violations.len() == 2, "no owner lets it come to that: {books:?}");
}

#[test]
fn a_kernel_that_stores_into_a_read_only_mapping_loses_the_device() {
    if !in_child("memory::a_kernel_that_stores_into_a_read_only_mapping_loses_the_device", &[]) {
        return;
    }
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    space.set_access(0, GRANULE, &[grant(&device, Access::ReadOnly)]).unwrap();
    assert_eq!(simulator.touch(0, space.base().get(), Touch::Load), 0);
    assert_eq!(simulator.touch(0, space.base().get(), Touch::Store), 700);
    let fault = device.wait_for_all().unwrap_err();
    assert_eq!((fault, fault.kind()), (Fault::new("cuCtxSynchronize", 700), ErrorKind::DeviceLost));
    // Nothing of it can be given back any more, and the answer says so: the process has to end.
    let (space, fault) = space.close().unwrap_err();
    assert_eq!(fault.code, 700);
    let before = troubles().drops_failed;
    drop((space, memory));
    assert_eq!(troubles().drops_failed, before + 2);
    assert_eq!(simulator.books().violations, [""; 0]);
}

#[test]
fn a_plain_allocation_is_written_filled_and_freed() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let allocation = device.allocate(1000).unwrap();
    allocation.span(0, 1000).unwrap().fill(3).unwrap();
    allocation.span(990, 10).unwrap().write(&[4; 10]).unwrap();
    let mut bytes = [0; 20];
    allocation.span(980, 20).unwrap().read(&mut bytes).unwrap();
    assert_eq!(bytes, [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(allocation.span(990, 11).unwrap_err().code, 1);
    allocation.close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn ranges_that_leave_their_owner_never_reach_the_driver() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    let before = simulator.books().calls;
    assert_eq!(space.span(1, GRANULE).unwrap_err().code, 1);
    assert_eq!(space.span(u64::MAX, 2).unwrap_err().code, 1);
    assert_eq!(space.unmap(0, GRANULE + 1).unwrap_err(), Fault::new("cuMemUnmap", 1));
    assert_eq!(space.map(GRANULE, &memory).unwrap_err(), Fault::new("cuMemMap", 1));
    assert_eq!(space.span(0, 4).unwrap().write(b"four!").unwrap_err(), Fault::new("cuMemcpyHtoDAsync", 1));
    let part = space.span(0, 8).unwrap();
    assert_eq!(part.copy_from(&space.span(4, 8).unwrap()).unwrap_err().code, 1, "they overlap");
    space.span(GRANULE, 0).unwrap().write(&[]).unwrap();
    assert_eq!(simulator.books().calls, before);
    end(space, memory);
    drop(device);
    simulator.finish();
}

#[test]
fn two_devices_have_memory_of_their_own_and_access_apart() {
    let simulator = Simulator::start();
    let (owner, peer) = (device(&simulator, 0), device(&simulator, 1));
    assert!(open(&simulator).can_reach(0, 1).unwrap());
    let (space, memory) = mapped(&owner, 1);
    let books = simulator.books();
    assert_eq!((books.used(0), books.used(1)), (GRANULE, 0));
    drop(peer.bind().unwrap()); // makes the context that the fault poisons
    assert_eq!(simulator.touch(1, space.base().get(), Touch::Load), 700, "access was set for the owner alone");
    assert_eq!(peer.wait_for_all().unwrap_err().kind(), ErrorKind::DeviceLost);
    owner.wait_for_all().unwrap();
    drop(peer);

    let peer = device(&simulator, 1);
    let grants = [grant(&owner, Access::ReadWrite), grant(&peer, Access::ReadOnly)];
    space.set_access(0, GRANULE, &grants).unwrap();
    assert_eq!(simulator.touch(1, space.base().get(), Touch::Load), 0);
    assert_eq!(space.access(0, 1).unwrap(), Some(Access::ReadOnly));
    end(space, memory);

    simulator.separate(1, 0);
    assert!(!open(&simulator).can_reach(1, 0).unwrap() && open(&simulator).can_reach(0, 1).unwrap());
    let (space, memory) = mapped(&owner, 1);
    assert_eq!(space.set_access(0, GRANULE, &grants).unwrap_err(), Fault::new("cuMemSetAccess", 101));
    end(space, memory);
    drop((owner, peer));
    simulator.finish();
}

/// The documentation calls an alignment a request.
#[test]
fn a_reservation_is_aligned_though_the_driver_is_not() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    simulator.set("honoured_alignment", 2 * GRANULE);
    for align in [GRANULE, 2 * GRANULE, 4 * GRANULE, 32 * GRANULE] {
        let space = device.reserve(3 * GRANULE, align).unwrap();
        assert!(space.base().is_aligned_to(align), "{align}: {space:?}");
        assert_eq!(space.bytes(), 3 * GRANULE);
        let memory = memory(&device, 3);
        space.map(0, &memory).unwrap();
        space.set_access(0, space.bytes(), &[grant(&device, Access::ReadWrite)]).unwrap();
        space.span(2 * GRANULE, GRANULE).unwrap().fill(1).unwrap();
        assert_eq!(space.unmap(GRANULE, 3 * GRANULE).unwrap_err(), Fault::new("cuMemUnmap", 1), "beyond its end");
        end(space, memory);
        assert_eq!(simulator.counts().reservations, 0, "{align}: what was reserved is freed, whole");
    }
    drop(device);
    simulator.finish();
}

#[test]
fn a_reservation_that_can_not_be_aligned_leaves_nothing() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    simulator.set("honoured_alignment", GRANULE);
    for (function, nth) in [("cuMemAddressReserve", 1), ("cuMemAddressReserve", 2), ("cuMemAddressFree", 1)] {
        simulator.plan(function, nth, Lasting::Once, 2);
        let fault = device.reserve(GRANULE, 2 * GRANULE).unwrap_err();
        assert_eq!((fault.call, fault.code), (function, 2), "{nth}");
        assert_eq!(simulator.counts().reservations, 0, "{function}, {nth}");
    }
    simulator.set("address_space", 3 * GRANULE - 1);
    let fault = device.reserve(GRANULE, 2 * GRANULE).unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::AddressSpaceExhausted, "one granule would fit, and three do not");
    drop(device);
    simulator.finish();
}

/// What `cuMemGetAccess` reports where nothing is mapped is not documented.
#[test]
fn mapped_or_not_is_told_for_every_manner_of_drivers() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    for (everywhere, refuses) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        simulator.set("access_everywhere", everywhere);
        simulator.set("refuses_unmapped", refuses);
        let (space, memory) = (device.reserve(2 * GRANULE, GRANULE).unwrap(), memory(&device, 1));
        space.map(GRANULE, &memory).unwrap();
        let told = [0, GRANULE, 2 * GRANULE - 1].map(|offset| space.is_mapped(offset));
        assert_eq!(told, [Ok(false), Ok(true), Ok(true)], "without any access");
        assert_eq!(simulator.books().handles[0].references, 1, "asking holds nothing");
        space.unmap(GRANULE, GRANULE).unwrap();
        assert_eq!(space.is_mapped(GRANULE), Ok(false));
        memory.close().unwrap();
        for (function, code) in [("cuPointerGetAttribute", 999), ("cuCtxSetCurrent", 1), ("cuCtxGetCurrent", 1)] {
            simulator.plan(function, 1, Lasting::Once, code);
            assert_eq!(space.is_mapped(GRANULE).map_err(|fault| fault.code), Err(code), "{function}: it is in doubt");
        }
        space.close().unwrap();
    }
    drop(device);
    simulator.finish();
}
