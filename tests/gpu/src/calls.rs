//! What each call of the driver costs, one granule at a time.

use crate::hosts::Settings;
use crate::table::{Table, Trouble, spread};
use leasehold_cuda_driver::{Access, Fault, Grant, PhysicalHandle, Reservation};
use std::time::{Duration, Instant};

/// Granules that are made, mapped and taken away, unless the size has fewer.
const GRANULES: u64 = 256;

/// The calls that are timed.
const CALLS: [&str; 6] = [
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemsetD8Async of a granule, waited for",
    "cuMemUnmap",
    "cuMemRelease",
];

fn timed<T>(times: &mut Vec<Duration>, call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let begin = Instant::now();
    let answer = call()?;
    times.push(begin.elapsed());
    Ok(answer)
}

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    match each_call(settings) {
        Ok(times) => CALLS.into_iter().zip(times).for_each(|(name, times)| table.add(name, Ok(spread(times)))),
        Err(fault) => table.add("cost of the driver's calls", Err(Trouble::from(fault))),
    }
}

fn each_call(settings: &Settings) -> Result<[Vec<Duration>; 6], Fault> {
    let _bound = settings.device.bind()?;
    let granule = settings.sizes.granule;
    let space = settings.device.reserve(settings.sizes.granules(GRANULES) * granule, granule)?;
    let (mut times, mut handles) = ([const { Vec::new() }; 6], Vec::new());
    let grown = grow(settings, &space, &mut times, &mut handles);
    let shrunk = shrink(settings, &space, &mut times, handles);
    let closed = space.close().map_err(|(_, fault): (Reservation, Fault)| fault);
    grown.and(shrunk).and(closed).map(|()| times)
}

fn grow(
    settings: &Settings,
    space: &Reservation,
    [creates, maps, accesses, fills, ..]: &mut [Vec<Duration>; 6],
    handles: &mut Vec<PhysicalHandle>,
) -> Result<(), Fault> {
    let Settings { device, properties, sizes, .. } = settings;
    let granule = sizes.granule;
    let grants = [Grant { ordinal: device.ordinal(), access: Access::ReadWrite }];
    for index in 0..sizes.granules(GRANULES) {
        let offset = index * granule;
        let handle = timed(creates, || device.create(*properties, granule))?;
        timed(maps, || space.map(offset, &handle))?;
        handles.push(handle);
        timed(accesses, || space.set_access(offset, granule, &grants))?;
        timed(fills, || {
            space.span(offset, granule)?.zero()?;
            device.wait_for_zeroing()
        })?;
    }
    Ok(())
}

/// Takes away what is mapped, however far that went.
fn shrink(
    settings: &Settings,
    space: &Reservation,
    [.., unmaps, releases]: &mut [Vec<Duration>; 6],
    handles: Vec<PhysicalHandle>,
) -> Result<(), Fault> {
    for (index, handle) in (0..).zip(handles) {
        timed(unmaps, || space.unmap(index * settings.sizes.granule, settings.sizes.granule))?;
        timed(releases, || handle.close().map_err(|(_, fault): (PhysicalHandle, Fault)| fault))?;
    }
    Ok(())
}
