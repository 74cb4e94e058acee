//! The documented rules, each by a test that is named after it. Each test has a simulation, and a thread, of its own.

mod contexts;
mod control;
mod copies;
mod mappings;
mod physical;
mod reservations;
mod streams;

use crate::abi::{
    ACCESS_READ, ACCESS_READ_WRITE, ALLOCATION_PINNED, AccessDesc, AllocationProp, LOCATION_DEVICE, MemLocation,
};
use crate::codes::{Answer, Code};
use crate::contexts as current;
use crate::memory::Memory;
use crate::settings::Settings;
use crate::simulation::{Need, Simulation};

pub(crate) const GRANULE: u64 = 2 << 20;

/// Two devices of eight granules, nothing from the environment.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::from_variables(|_| None);
    for device in 0..2 {
        settings.set("memory", device, 8 * GRANULE).unwrap();
    }
    settings
}

/// A driver before `cuInit`.
pub(crate) fn fresh() -> Simulation {
    Simulation::new(settings())
}

/// A driver after `cuInit`, with the context of device 0 current on this thread.
pub(crate) fn ready() -> Simulation {
    let mut simulation = fresh();
    simulation.initialise(0).unwrap();
    bind(&mut simulation, 0);
    simulation
}

/// Makes the context of a device current on this thread.
pub(crate) fn bind(simulation: &mut Simulation, device: i32) {
    let context = simulation.contexts.retain(device);
    current::set_current(Some(context));
}

/// A call that needs a context.
pub(crate) fn call<T>(
    simulation: &mut Simulation,
    act: impl FnOnce(&mut Memory, &Settings, i32) -> Answer<T>,
) -> Answer<T> {
    simulation.call("a call", Need::Context, |simulation, device| {
        let Simulation { memory, settings, .. } = simulation;
        act(memory, settings, device)
    })
}

pub(crate) fn prop(device: i32) -> AllocationProp {
    AllocationProp {
        kind: ALLOCATION_PINNED,
        handle_types: 0,
        location: location(device),
        win32_meta_data: 0,
        compression: 0,
        gpu_direct_rdma: 0,
        usage: 0,
        reserved: [0; 4],
    }
}

pub(crate) fn location(id: i32) -> MemLocation {
    MemLocation { kind: LOCATION_DEVICE, id }
}

pub(crate) fn grant(device: i32, flags: u32) -> AccessDesc {
    AccessDesc { location: location(device), flags }
}

pub(crate) fn reserve(simulation: &mut Simulation, bytes: u64) -> Answer<u64> {
    call(simulation, |memory, settings, _| memory.reserve(settings, bytes, 0, 0, 0))
}

pub(crate) fn create(simulation: &mut Simulation, device: i32, bytes: u64) -> Answer<u64> {
    call(simulation, |memory, settings, _| memory.create(settings, bytes, &prop(device), 0))
}

pub(crate) fn map(simulation: &mut Simulation, base: u64, bytes: u64, handle: u64) -> Answer<()> {
    call(simulation, |memory, _, _| memory.map(base, bytes, 0, handle, 0))
}

pub(crate) fn unmap(simulation: &mut Simulation, base: u64, bytes: u64) -> Answer<()> {
    call(simulation, |memory, _, _| memory.unmap(base, bytes))
}

pub(crate) fn release(simulation: &mut Simulation, handle: u64) -> Answer<()> {
    call(simulation, |memory, _, _| memory.release(handle))
}

pub(crate) fn free_addresses(simulation: &mut Simulation, base: u64, bytes: u64) -> Answer<()> {
    call(simulation, |memory, _, _| memory.free_addresses(base, bytes))
}

pub(crate) fn set_access(simulation: &mut Simulation, base: u64, bytes: u64, grants: &[AccessDesc]) -> Answer<()> {
    call(simulation, |memory, settings, _| memory.set_access(settings, base, bytes, grants))
}

pub(crate) fn fill(simulation: &mut Simulation, base: u64, bytes: u64, byte: u8) -> Answer<()> {
    call(simulation, |memory, settings, device| memory.fill(device, base, bytes, byte, settings.fresh))
}

pub(crate) fn read(simulation: &mut Simulation, base: u64, bytes: usize) -> Answer<Vec<u8>> {
    let mut into = vec![0; bytes];
    call(simulation, |memory, settings, device| memory.read(device, base, &mut into, settings.fresh))?;
    Ok(into)
}

/// A reservation with as many mappings of one granule each, which device 0 may read and write: where, and the handles.
pub(crate) fn mapped(simulation: &mut Simulation, granules: u64) -> (u64, Vec<u64>) {
    let base = reserve(simulation, granules * GRANULE).unwrap();
    let handles: Vec<_> = (0..granules).map(|_| create(simulation, 0, GRANULE).unwrap()).collect();
    for (granule, handle) in (0..).zip(&handles) {
        map(simulation, base + granule * GRANULE, GRANULE, *handle).unwrap();
    }
    set_access(simulation, base, granules * GRANULE, &[grant(0, ACCESS_READ_WRITE)]).unwrap();
    (base, handles)
}

/// Ends what [`mapped`] made.
pub(crate) fn end(simulation: &mut Simulation, base: u64, handles: &[u64]) {
    let bytes = u64::try_from(handles.len()).unwrap() * GRANULE;
    unmap(simulation, base, bytes).unwrap();
    handles.iter().for_each(|handle| release(simulation, *handle).unwrap());
    free_addresses(simulation, base, bytes).unwrap();
}

/// Nothing is live and nobody broke a rule.
#[track_caller]
pub(crate) fn assert_clean(simulation: &Simulation) {
    assert!(simulation.memory.is_empty(), "{}", simulation.json());
    assert_eq!(simulation.memory.violations, [""; 0]);
}

/// The last violation, in words, and no other.
#[track_caller]
pub(crate) fn only_violation(simulation: &Simulation) -> &str {
    assert_eq!(simulation.memory.violations.len(), 1, "{:?}", simulation.memory.violations);
    &simulation.memory.violations[0]
}

pub(crate) const READ: u32 = ACCESS_READ;
pub(crate) const READ_WRITE: u32 = ACCESS_READ_WRITE;
pub(crate) const WRONG: Answer<()> = Err(Code::INVALID_VALUE);
