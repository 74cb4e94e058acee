//! What each call of the driver costs, one granule at a time.

use crate::hosts::Settings;
use crate::table::{Table, spread};
use leasehold_cuda_driver::{Access, Fault, Grant, PhysicalHandle, Reservation};
use std::time::{Duration, Instant};

/// Granules that are made, mapped and taken away.
const GRANULES: u64 = 256;

fn timed<T>(times: &mut Vec<Duration>, call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let begin = Instant::now();
    let answer = call()?;
    times.push(begin.elapsed());
    Ok(answer)
}

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    if let Err(fault) = each_call(settings, table) {
        table.add("cost of the driver's calls", format!("not measured: {fault}"));
    }
}

fn each_call(settings: &Settings, table: &mut Table) -> Result<(), Fault> {
    let Settings { device, properties, granule, .. } = settings;
    let _bound = device.bind()?;
    let space = device.reserve(GRANULES * granule, *granule)?;
    let grants = [Grant { ordinal: device.ordinal(), access: Access::ReadWrite }];
    let (mut creates, mut maps, mut accesses, mut fills) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut unmaps, mut releases) = (Vec::new(), Vec::new());
    let mut handles = Vec::new();
    for index in 0..GRANULES {
        let offset = index * granule;
        let handle = timed(&mut creates, || device.create(*properties, *granule))?;
        timed(&mut maps, || space.map(offset, &handle))?;
        timed(&mut accesses, || space.set_access(offset, *granule, &grants))?;
        timed(&mut fills, || {
            space.span(offset, *granule)?.fill(0)?;
            device.wait_for_default_stream()
        })?;
        handles.push(handle);
    }
    for (index, handle) in (0..GRANULES).zip(handles) {
        timed(&mut unmaps, || space.unmap(index * granule, *granule))?;
        timed(&mut releases, || handle.close().map_err(|(_, fault): (PhysicalHandle, Fault)| fault))?;
    }
    space.close().map_err(|(_, fault): (Reservation, Fault)| fault)?;
    for (name, times) in [
        ("cuMemCreate", creates),
        ("cuMemMap", maps),
        ("cuMemSetAccess", accesses),
        ("cuMemsetD8 of a granule, waited for", fills),
        ("cuMemUnmap", unmaps),
        ("cuMemRelease", releases),
    ] {
        table.add(name, spread(times));
    }
    Ok(())
}
