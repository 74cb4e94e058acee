//! A long growth a granule at a time, and growing from a pool beside growing without one.

use crate::hosts::Settings;
use crate::table::{Table, Trouble, spread};
use leasehold::{BackingHandle, BufferSpec, HolderId, Host};
use std::time::{Duration, Instant};

/// Times that growing and shrinking is repeated.
const ROUNDS: usize = 5;

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    let what =
        format!("growth to {} MiB by {} KiB, cuda-vmm", settings.sizes.growth >> 20, settings.sizes.granule >> 10);
    let figure = in_steps(settings).map(|(whole, steps)| format!("{whole:.2?}; a step: {}", spread(steps)));
    table.add(what, figure);
    let what = format!("{} MiB grown again and given back, median of {ROUNDS}", settings.sizes.size >> 20);
    let figure = pool_beside_none(settings).map(|(without, with)| {
        let times = without.as_secs_f64() / with.as_secs_f64();
        format!("cuda-vmm {without:.2?}, cuda-pool {with:.2?}: cuda-vmm takes {times:.1} × as long")
    });
    table.add(what, figure);
}

fn in_steps(settings: &Settings) -> Result<(Duration, Vec<Duration>), Trouble> {
    let (host, backing) = settings.host("cuda-vmm")?;
    let mut buffer = host.buffer(&backing, &BufferSpec::new(settings.sizes.growth))?;
    let base = buffer.base();
    let begin = Instant::now();
    let mut steps = Vec::new();
    for step in 1..=settings.sizes.growth / settings.sizes.granule {
        let before = Instant::now();
        buffer.grow_to(step * settings.sizes.granule)?;
        steps.push(before.elapsed());
    }
    let whole = begin.elapsed();
    if buffer.base() != base {
        return Err(Trouble::wrong("it moved"));
    }
    buffer.close()?;
    Ok((whole, steps))
}

fn pool_beside_none(settings: &Settings) -> Result<(Duration, Duration), Trouble> {
    let grown = |(host, backing): &(Host, BackingHandle)| -> Result<Duration, Trouble> {
        let spec = BufferSpec::new(settings.sizes.size).holder(HolderId::new(1));
        let mut buffer = host.buffer(backing, &spec)?;
        buffer.grow_to(settings.sizes.size)?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            buffer.shrink_to(0)?;
            buffer.grow_to(settings.sizes.size)?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        Ok(times[ROUNDS / 2])
    };
    Ok((grown(&settings.host("cuda-vmm")?)?, grown(&settings.parking_host()?)?))
}
