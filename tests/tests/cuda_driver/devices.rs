//! Devices, and whose context is current when.

use super::*;
use std::time::Duration;

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
    let current = simulator.enter(1);
    let theirs = current.number();
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
    drop((device, current));
    simulator.finish();
}

#[test]
fn a_bound_context_is_set_once_for_many_calls() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    drop(device.bind().unwrap()); // makes it
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
fn a_context_that_is_not_put_back_is_asked_about_by_whoever_relied_on_it() {
    let simulator = Simulator::start();
    let devices = [0, 1].map(|ordinal| device(&simulator, ordinal));
    let totals = devices.each_ref().map(|device| device.total_bytes().unwrap());
    simulator.limit_memory(1, totals[0] / 2);
    let seen = || devices[1].memory().unwrap().total;
    let outer = devices[1].bind().unwrap();
    let inner = devices[1].bind().unwrap();
    let other = devices[0].bind().unwrap();
    simulator.plan("cuCtxSetCurrent", 1, Lasting::Once, 1);
    drop(other);
    assert_eq!(seen(), totals[0] / 2);
    drop(inner);
    assert_eq!(seen(), totals[0] / 2, "the inner one had set nothing");
    drop(outer);
    assert_eq!(seen(), totals[0] / 2);
    drop(devices);
    simulator.finish();
}

#[test]
fn a_failed_query_does_not_poison_the_next_call() {
    let simulator = Simulator::start();
    let device = device(&simulator, 0);
    let ask: [(&str, &dyn Fn() -> Option<Fault>); 7] = [
        ("cuDeviceGetName", &|| device.name().err()),
        ("cuDeviceTotalMem_v2", &|| device.total_bytes().err()),
        ("cuMemGetInfo_v2", &|| device.memory().err()),
        ("cuDeviceGetAttribute", &|| device.supports_virtual_memory().err()),
        ("cuDeviceGetAttribute", &|| open(&simulator).device(0).err().map(|_| Fault::new("cuDeviceGetAttribute", 1))),
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
