//! CUDA Driver API: Event Management, and the default streams. Work is done when its call returns, so nothing waits.
#![expect(unsafe_code, reason = "C functions that write where their callers point")]

use super::answer;
use super::pointers::Out;
use crate::codes::{Answer, Code};
use crate::simulation::{Need, Simulation};

/// Events cross as pointers that nobody follows.
type Event = usize;

/// The streams that there are: null, `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`.
const STREAMS: usize = 3;

/// All flags of `cuEventCreate`: blocking, no timing, interprocess.
const EVENT_FLAGS: u32 = 7;

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut Event, flags: u32) -> u32 {
    answer("cuEventCreate", Need::Context, |simulation, device| {
        // SAFETY: null or valid, says the caller.
        let event = unsafe { Out::new(event) }?;
        if flags & !EVENT_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        simulation.events_made += 1;
        let made = (0xE7 << 40) + simulation.events_made * 64;
        simulation.events.insert(made, device);
        event.set(Event::try_from(made).map_err(|_| Code::UNKNOWN)?);
        Ok(())
    })
}

/// `cuEventRecord`: event and stream are of one context.
#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: Event, stream: usize) -> u32 {
    answer("cuEventRecord", Need::Context, |simulation, device| {
        check_stream(simulation, "cuEventRecord", stream)?;
        let owner = check_event(simulation, "cuEventRecord", event)?;
        if owner == device { Ok(()) } else { Err(Code::INVALID_HANDLE) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: Event) -> u32 {
    answer("cuEventSynchronize", Need::Context, |simulation, _| {
        check_event(simulation, "cuEventSynchronize", event).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: Event) -> u32 {
    answer("cuEventQuery", Need::Context, |simulation, _| check_event(simulation, "cuEventQuery", event).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: Event) -> u32 {
    answer("cuEventDestroy_v2", Need::Context, |simulation, _| {
        check_event(simulation, "cuEventDestroy_v2", event)?;
        simulation.events.remove(&u64::try_from(event).unwrap_or(0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: usize) -> u32 {
    answer("cuStreamSynchronize", Need::Context, |simulation, _| {
        check_stream(simulation, "cuStreamSynchronize", stream)
    })
}

/// The device of an event. A dead one is undefined.
fn check_event(simulation: &mut Simulation, function: &str, event: Event) -> Answer<i32> {
    if let Some(device) = simulation.events.get(&u64::try_from(event).unwrap_or(0)) {
        return Ok(*device);
    }
    simulation.memory.violation(format!("{function}: {event:#x} is no live event"));
    Err(Code::INVALID_HANDLE)
}

/// A dead stream is undefined.
fn check_stream(simulation: &mut Simulation, function: &str, stream: usize) -> Answer<()> {
    if stream < STREAMS {
        return Ok(());
    }
    simulation.memory.violation(format!("{function}: {stream:#x} is no stream that this driver made"));
    Err(Code::INVALID_HANDLE)
}
