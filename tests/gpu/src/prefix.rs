//! A prefix that is mapped, beside one that is copied on the device.

use crate::hosts::Settings;
use crate::table::{Table, Trouble};
use leasehold::{BufferSpec, PrefixSpec};
use std::time::{Duration, Instant};

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    let figure = mapped_and_copied(settings).map(|(mapped, copied)| {
        let times = copied.as_secs_f64() / mapped.as_secs_f64();
        format!("mapped {mapped:.2?}, copied on the device {copied:.2?}: the copy takes {times:.1} × as long")
    });
    table.add(format!("a prefix of {} MiB in a buffer", settings.sizes.size >> 20), figure);
}

fn mapped_and_copied(settings: &Settings) -> Result<(Duration, Duration), Trouble> {
    let (host, backing) = settings.host("cuda-pool")?;
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(settings.sizes.size))?;
    prefix.write(0, settings.sizes.size - 6, b"shared")?;
    let prefix = prefix.seal().map_err(leasehold::Error::from)?;
    let mut buffer = host.buffer_set(&backing, 1, &BufferSpec::new(settings.sizes.size))?;
    let begin = Instant::now();
    buffer.map_prefix(&prefix)?;
    let mapped = begin.elapsed();
    let mut seen = [0; 6];
    buffer.read(0, settings.sizes.size - 6, &mut seen)?;
    if &seen != b"shared" {
        return Err(Trouble::wrong("the mapping shows something else than the prefix"));
    }
    buffer.close()?;
    prefix.close()?;
    let device = &settings.device;
    let (from, to) = (device.allocate(settings.sizes.size)?, device.allocate(settings.sizes.size)?);
    let copy = || -> Result<Duration, Trouble> {
        let begin = Instant::now();
        to.span(0, settings.sizes.size)?.copy_from(&from.span(0, settings.sizes.size)?)?;
        Ok(begin.elapsed())
    };
    copy()?; // the first one is slower
    Ok((mapped, copy()?))
}
