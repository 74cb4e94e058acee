//! Finding the CUDA driver and calling it: over the simulated one, and without any.

mod contexts;
mod devices;
mod failures;
mod finding;
mod memory;

use leasehold_cuda_driver::{Access, Device, Driver, Fault, Grant, PhysicalHandle, Properties, Reservation, troubles};
use leasehold_plugin_api::ErrorKind;
use leasehold_tests::child::in_child;
use leasehold_tests::cuda::{Lasting, Simulator, Touch};
use leasehold_tests::descriptors::limit_descriptors;

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
