//! A prefix that is mapped, beside one that is copied on the device.

use crate::hosts::Settings;
use crate::table::Table;
use leasehold::{BufferSpec, PrefixSpec};
use std::error::Error;
use std::time::{Duration, Instant};

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    let what = format!("a prefix of {} MiB in a buffer", settings.size >> 20);
    match mapped_and_copied(settings) {
        Ok((mapped, copied)) => {
            let times = copied.as_secs_f64() / mapped.as_secs_f64();
            table.add(what, format!("mapped {mapped:.2?}, copied on the device {copied:.2?}: {times:.1} × faster"));
        }
        Err(error) => table.add(what, format!("not measured: {error}")),
    }
}

fn mapped_and_copied(settings: &Settings) -> Result<(Duration, Duration), Box<dyn Error>> {
    let (host, backing) = settings.host("cuda-pool");
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(settings.size))?;
    prefix.write(0, settings.size - 6, b"shared")?;
    let prefix = prefix.seal()?;
    let mut buffer = host.buffer_set(&backing, 1, &BufferSpec::new(settings.size))?;
    let begin = Instant::now();
    buffer.map_prefix(&prefix)?;
    let mapped = begin.elapsed();
    let mut seen = [0; 6];
    buffer.read(0, settings.size - 6, &mut seen)?;
    if &seen != b"shared" {
        return Err("the mapping shows something else than the prefix".into());
    }
    buffer.close()?;
    prefix.close()?;
    let device = &settings.device;
    let (from, to) = (device.allocate(settings.size)?, device.allocate(settings.size)?);
    let copy = || -> Result<Duration, Box<dyn Error>> {
        let begin = Instant::now();
        to.span(0, settings.size)?.copy_from(&from.span(0, settings.size)?)?;
        device.wait_for_all()?;
        Ok(begin.elapsed())
    };
    copy()?; // the first one is slower
    Ok((mapped, copy()?))
}
