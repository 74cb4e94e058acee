//! Finding the CUDA driver and calling it: over the simulated one, and without any.

use leasehold_cuda_driver::{
    Access, Device, Driver, Fault, Grant, PhysicalHandle, Properties, ReadOnlySupport, Reservation, troubles,
};
use leasehold_plugin_api::{BackingError, ErrorKind};
use leasehold_tests::child::in_child;
use leasehold_tests::cuda::{Lasting, Simulator, Touch};
use leasehold_tests::plugins::library;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GRANULE: u64 = 2 << 20;

fn open(_: &Simulator) -> Driver {
    Driver::open(Some(&Simulator::path())).unwrap()
}

fn device(simulator: &Simulator, ordinal: u32) -> Device {
    open(simulator).device(ordinal).unwrap()
}

fn grant(device: &Device, access: Access) -> Grant {
    Grant { ordinal: device.ordinal(), access }
}

fn memory(device: &Device, granules: u64) -> PhysicalHandle {
    device.create(Properties::of_device(device.ordinal()), granules * GRANULE).unwrap()
}

/// A reservation with memory mapped all over it, readable and writable.
fn mapped(device: &Device, granules: u64) -> (Reservation, PhysicalHandle) {
    let space = device.reserve(granules * GRANULE, GRANULE).unwrap();
    let memory = memory(device, granules);
    space.map(0, &memory).unwrap();
    space.set_access(0, space.bytes(), &[grant(device, Access::ReadWrite)]).unwrap();
    (space, memory)
}

fn end(space: Reservation, memory: PhysicalHandle) {
    space.unmap(0, space.bytes()).unwrap();
    memory.close().unwrap();
    space.close().unwrap();
}

fn read(space: &Reservation, offset: u64, bytes: u64) -> Vec<u8> {
    let mut read = vec![0; usize::try_from(bytes).unwrap()];
    space.span(offset, bytes).unwrap().read(&mut read).unwrap();
    read
}

/// A refusal of the kind `Unavailable`, short enough to cross whole, with these words.
#[track_caller]
fn assert_unavailable(outcome: Result<Driver, BackingError>, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().len() <= 440, "{} bytes: {error}", error.message().len());
    for word in words {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
}

/// A copy of the simulator in which a text is changed to another one of the same length.
fn changed_simulator(folder: &Path, from: &str, to: &str) -> PathBuf {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(Simulator::path()).unwrap();
    let from = [from.as_bytes(), b"\0"].concat();
    let places: Vec<_> = (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(&from)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    let path = folder.join("libcuda.so.1");
    fs::write(&path, bytes).unwrap();
    path
}

// Finding it.

#[test]
fn without_a_driver_opening_answers_what_was_tried_and_what_to_install() {
    if !in_child("without_a_driver_opening_answers_what_was_tried_and_what_to_install", &[]) {
        return;
    }
    match Driver::open(None) {
        Ok(_) => println!("skipped: this machine has a CUDA driver"),
        Err(error) if error.native_code().is_some() => println!("skipped: this machine has a CUDA driver: {error}"),
        outcome => {
            let words =
                ["no CUDA driver", "libcuda.so.1", "cannot open shared object file", "install the NVIDIA driver"];
            assert_unavailable(outcome, &words);
        }
    }
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let outcome = Driver::open(Some(Path::new("/nowhere/libcuda.so.1")));
    assert_unavailable(outcome, &["no CUDA driver at /nowhere/libcuda.so.1", "cannot open shared object file"]);
}

#[test]
fn a_library_that_is_no_driver_is_refused_by_the_first_symbol_that_it_lacks() {
    let outcome = Driver::open(Some(&library("leasehold_rogue")));
    assert_unavailable(outcome, &["libleasehold_rogue.so", "lacks the symbol cuInit;", "libcuda.so.1"]);
}

#[test]
fn a_driver_that_lacks_one_symbol_is_refused_with_its_version() {
    if !in_child("a_driver_that_lacks_one_symbol_is_refused_with_its_version", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = changed_simulator(folder.path(), "cuMemSetAccess", "cuMemSetAccesz");
    assert_unavailable(Driver::open(Some(&path)), &["lacks the symbol cuMemSetAccess (it is of CUDA 12.8)"]);
}

#[test]
fn a_driver_whose_name_nobody_looks_for_is_refused() {
    if !in_child("a_driver_whose_name_nobody_looks_for_is_refused", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = changed_simulator(folder.path(), "libcuda.so", "libcudb.so");
    assert_unavailable(Driver::open(Some(&path)), &["SONAME", "libcuda.so.1"]);
}

#[test]
fn a_second_driver_in_one_process_is_refused() {
    if !in_child("a_second_driver_in_one_process_is_refused", &[]) {
        return;
    }
    let first = Driver::open(Some(&Simulator::path())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcuda.so.1");
    fs::copy(Simulator::path(), &path).unwrap();
    assert_unavailable(Driver::open(Some(&path)), &["is not the CUDA driver that this process uses", "fresh process"]);
    assert_eq!(first.device_count(), 2);
}

#[test]
fn once_opened_by_its_path_the_simulator_is_what_is_found_by_name() {
    if !in_child("once_opened_by_its_path_the_simulator_is_what_is_found_by_name", &[]) {
        return;
    }
    let simulator = Simulator::start();
    assert_eq!(Driver::open(None).unwrap().device_count(), 2);
    assert_eq!(simulator.count("cuInit"), 1);
    simulator.finish();
}

#[test]
fn a_driver_without_devices_is_unavailable() {
    let name = "a_driver_without_devices_is_unavailable";
    if !in_child(name, &[("LEASEHOLD_SIM_DEVICES", "0")]) {
        return;
    }
    let outcome = Driver::open(Some(&Simulator::path()));
    assert_eq!(outcome.as_ref().unwrap_err().native_code(), Some(100));
    assert_unavailable(outcome, &["of CUDA 12.8", "cuInit failed: CUDA_ERROR_NO_DEVICE (100)", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn what_initialising_answers_comes_with_advice() {
    let simulator = Simulator::start();
    let advice = [(34, "stub"), (803, "reboot"), (804, "compatibility"), (999, "nvidia-smi"), (3, "nvidia-smi")];
    for (code, word) in advice {
        simulator.plan("cuInit", 1, Lasting::Once, code);
        let outcome = Driver::open(Some(&Simulator::path()));
        assert_unavailable(outcome, &["cuInit failed: CUDA_ERROR_", &format!("({code})"), word]);
    }
    simulator.plan("cuDeviceGetCount", 1, Lasting::Once, 999);
    assert_unavailable(Driver::open(Some(&Simulator::path())), &["cuDeviceGetCount failed: CUDA_ERROR_UNKNOWN (999)"]);
    simulator.plan("cuInit", 1, Lasting::Once, 4_000_000_000);
    assert_unavailable(Driver::open(Some(&Simulator::path())), &["cuInit failed: CUresult (4000000000)"]);
    simulator.finish();
}

// Devices and contexts.

#[test]
fn a_device_tells_what_it_is() {
    let simulator = Simulator::start();
    simulator.set("recommended", 2 * GRANULE);
    simulator.limit_memory(1, 64 << 20);
    let device = device(&simulator, 1);
    assert_eq!(device.name().unwrap(), "Leasehold simulated device 1");
    assert_eq!(device.total_bytes().unwrap(), 64 << 20);
    assert_eq!(device.memory().unwrap().free, 64 << 20);
    assert!(device.supports_virtual_memory().unwrap());
    let granularity = device.granularity(Properties::of_device(1)).unwrap();
    assert_eq!((granularity.minimum, granularity.recommended), (GRANULE, 2 * GRANULE));
    assert_eq!(open(&simulator).version().unwrap(), "12.8");
    drop(device);
    simulator.finish();
}

#[test]
fn an_ordinal_that_no_device_has_is_unavailable() {
    let simulator = Simulator::start();
    let error = open(&simulator).device(2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("device 2 is not here: the CUDA driver shows this process 2 of them"), "{error}");
    simulator.finish();
}

#[test]
fn the_granularity_goes_with_the_very_properties() {
    let simulator = Simulator::start();
    simulator.set("rdma_granularity", 2 * GRANULE);
    let device = device(&simulator, 0);
    let (plain, rdma) = (Properties::of_device(0), Properties::of_device(0).with_gpu_direct_rdma());
    assert_eq!(device.granularity(plain).unwrap().minimum, GRANULE);
    assert_eq!(device.granularity(rdma).unwrap().minimum, 2 * GRANULE);
    assert_eq!(device.create(rdma, GRANULE).unwrap_err(), Fault::new("cuMemCreate", 1));
    device.create(rdma, 2 * GRANULE).unwrap().close().unwrap();
    device.create(plain.with_file_descriptors(), GRANULE).unwrap().close().unwrap();
    drop(device);
    simulator.finish();
}

#[test]
fn a_context_is_retained_once_and_released_with_its_last_user() {
    let simulator = Simulator::start();
    let first = device(&simulator, 0);
    let second = device(&simulator, 0);
    let memory = memory(&first, 1);
    assert_eq!(simulator.books().devices[0].context_retains, 1);
    drop((first, second));
    assert_eq!(simulator.books().devices[0].context_retains, 1, "the memory needs it");
    memory.close().unwrap();
    assert_eq!(simulator.books().devices[0].context_retains, 0);
    let again = device(&simulator, 0);
    assert_eq!(simulator.count("cuDevicePrimaryCtxRetain"), 2);
    drop(again);
    simulator.finish();
}

#[test]
fn a_context_that_can_not_be_made_is_told_with_its_kind() {
    let simulator = Simulator::start();
    let driver = open(&simulator);
    for (code, kind) in [(2, ErrorKind::OutOfMemory), (46, ErrorKind::Unavailable), (999, ErrorKind::DeviceLost)] {
        simulator.plan("cuDevicePrimaryCtxRetain", 1, Lasting::Once, code);
        let error = driver.device(0).unwrap_err();
        assert_eq!((error.kind(), error.native_code()), (kind, Some(i64::from(code))));
    }
    simulator.finish();
}

#[test]
fn eight_threads_without_a_context_work_on_one_device() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (device, simulator) = (&device, &simulator);
            scope.spawn(move || {
                for _ in 0..4 {
                    let (space, memory) = mapped(device, 1);
                    space.span(0, GRANULE).unwrap().fill(thread).unwrap();
                    device.wait_for_default_stream().unwrap();
                    assert!(leasehold_tests::is_all(&read(&space, 0, GRANULE), thread));
                    end(space, memory);
                    assert_eq!(simulator.current_context(), 0, "nothing is left current");
                }
            });
        }
    });
    drop(device);
    simulator.finish();
}

#[test]
fn another_device_is_current_before_and_after_a_call() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let theirs = simulator.enter(1);
    let (space, memory) = mapped(&device, 1);
    assert_eq!(simulator.current_context(), theirs);
    assert_eq!(space.map(0, &memory).unwrap_err(), Fault::new("cuMemMap", 1), "it is mapped");
    assert_eq!(simulator.current_context(), theirs, "after a failed call too");
    {
        let _bound = device.bind().unwrap();
        assert_ne!(simulator.current_context(), theirs);
        space.span(0, 16).unwrap().fill(7).unwrap();
        assert_ne!(simulator.current_context(), theirs, "a call in between keeps it bound");
    }
    assert_eq!(simulator.current_context(), theirs);
    assert_eq!(read(&space, 0, 16), [7; 16]);
    end(space, memory);
    drop(device);
    simulator.leave(1);
    simulator.finish();
}

#[test]
fn a_bound_context_is_set_once_for_many_calls() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let before = simulator.count("cuCtxSetCurrent");
    let bound = device.bind().unwrap();
    for _ in 0..10 {
        memory(&device, 1).close().unwrap();
    }
    drop(bound);
    assert_eq!(simulator.count("cuCtxSetCurrent") - before, 2);
    drop(device);
    simulator.finish();
}

#[test]
fn a_failed_query_does_not_poison_the_next_call() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let ask: [(&str, &dyn Fn() -> Option<Fault>); 6] = [
        ("cuDeviceGetName", &|| device.name().err()),
        ("cuDeviceTotalMem_v2", &|| device.total_bytes().err()),
        ("cuMemGetInfo_v2", &|| device.memory().err()),
        ("cuDeviceGetAttribute", &|| device.supports_virtual_memory().err()),
        ("cuMemGetAllocationGranularity", &|| device.granularity(Properties::of_device(0)).err()),
        ("cuCtxGetCurrent", &|| device.memory().err()),
    ];
    for (function, query) in ask {
        simulator.plan(function, 1, Lasting::Once, 1);
        assert_eq!(query().map(|fault| fault.code), Some(1), "{function}");
        assert_eq!(query(), None, "{function}");
        let (space, memory) = mapped(&device, 1);
        end(space, memory);
        assert_eq!(simulator.current_context(), 0);
    }
    drop(device);
    simulator.finish();
}

// Memory.

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
    device.wait_for_default_stream().unwrap();
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
    assert_eq!(space.span(0, 8).unwrap().fill(2).unwrap_err(), Fault::new("cuMemsetD8", 1));
    assert_eq!(space.span(0, 8).unwrap().write(&[2; 8]).unwrap_err(), Fault::new("cuMemcpyHtoD", 1));
    assert_eq!(read(&space, 0, 8), [1; 8]);
    end(space, memory);
    drop(device);
    simulator.finish();
}

#[test]
fn a_kernel_that_stores_into_a_read_only_mapping_loses_the_device() {
    if !in_child("a_kernel_that_stores_into_a_read_only_mapping_loses_the_device", &[]) {
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
    // Nothing of it can be given back any more, and that is told; the process has to end.
    let (space, fault) = space.close().unwrap_err();
    assert_eq!(fault.code, 700);
    let before = troubles().drops_failed;
    drop((space, memory));
    assert_eq!(troubles().drops_failed, before + 2);
    assert_eq!(simulator.books().violations, [""; 0]);
}

#[test]
fn read_only_support_is_found_out_and_leaves_nothing() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let properties = Properties::of_device(0);
    assert_eq!(device.probe_read_only(properties).unwrap(), ReadOnlySupport::Enforced);
    simulator.set("read_only", 0);
    assert_eq!(device.probe_read_only(properties).unwrap(), ReadOnlySupport::Missing);
    for function in ["cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"] {
        simulator.plan(function, 1, Lasting::Once, 2);
        assert_eq!(device.probe_read_only(properties).unwrap_err().code, 2, "{function}");
    }
    drop(device);
    simulator.finish();
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
    assert_eq!(space.span(0, 4).unwrap().write(b"four!").unwrap_err(), Fault::new("cuMemcpyHtoD", 1));
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
    assert!(owner.can_reach(&peer).unwrap());
    let (space, memory) = mapped(&owner, 1);
    let books = simulator.books();
    assert_eq!((books.used(0), books.used(1)), (GRANULE, 0));
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
    assert!(!peer.can_reach(&owner).unwrap());
    let (space, memory) = mapped(&owner, 1);
    assert_eq!(space.set_access(0, GRANULE, &grants).unwrap_err(), Fault::new("cuMemSetAccess", 101));
    end(space, memory);
    drop((owner, peer));
    simulator.finish();
}

// Failures.

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
    assert_eq!(device.reserve(GRANULE, 3).unwrap_err().kind(), ErrorKind::Internal);
    held.close().unwrap();
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
fn after_the_context_is_gone_calls_and_drops_fail_in_words() {
    if !in_child("after_the_context_is_gone_calls_and_drops_fail_in_words", &[]) {
        return;
    }
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let (space, memory) = mapped(&device, 1);
    simulator.reset_context(0);
    let fault = space.span(0, 1).unwrap().fill(0).unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::DeviceLost, "{fault}");
    let (memory, fault) = memory.close().unwrap_err();
    assert_eq!(fault.code, 709);
    let before = troubles().drops_failed;
    drop((space, memory, device));
    assert_eq!(troubles().drops_failed, before + 2);
    let books = simulator.books();
    assert_eq!(books.violations, [""; 0]);
    assert_eq!(books.devices[0].context_retains, 0, "the retain is given back all the same");
}

#[test]
fn waiting_makes_an_event_and_ends_it() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    device.wait_for_default_stream().unwrap();
    for function in ["cuEventCreate", "cuEventRecord", "cuEventSynchronize"] {
        simulator.plan(function, 1, Lasting::Once, 700);
        let fault = device.wait_for_default_stream().unwrap_err();
        assert_eq!((fault.call, fault.kind()), (function, ErrorKind::DeviceLost));
    }
    assert_eq!(simulator.books().events, 0);
    drop(device);
    simulator.finish();
}

#[test]
fn the_driver_is_asked_from_many_threads_at_once() {
    let simulator = Simulator::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let device = device(&simulator, 1);
                    std::thread::sleep(Duration::from_micros(100));
                    memory(&device, 1).close().unwrap();
                }
            });
        }
    });
    assert_eq!(simulator.books().devices[1].context_retains, 0);
    simulator.finish();
}
