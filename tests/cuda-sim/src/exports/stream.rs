//! CUDA Driver API: Stream Management. The graphs themselves are not simulated.
#![expect(unsafe_code, reason = "C functions that write where their callers point")]

use super::answer;
use super::pointers::{InOut, Out};
use crate::codes::{Answer, Code};
use crate::simulation::{Need, Simulation};
use crate::streams::{self, Queue, StreamId};

/// Streams cross as pointers that nobody follows.
pub(super) type Stream = usize;

pub(super) fn from_c(stream: Stream) -> StreamId {
    StreamId::try_from(stream).unwrap_or(StreamId::MAX)
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut Stream, flags: u32) -> u32 {
    answer("cuStreamCreate", Need::Context, |simulation, device| {
        // SAFETY: null or valid, says the caller.
        let stream = unsafe { Out::new(stream) }?;
        let made = simulation.streams.create(device, flags)?;
        stream.set(Stream::try_from(made).map_err(|_| Code::UNKNOWN)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: Stream) -> u32 {
    answer("cuStreamSynchronize", Need::Context, |simulation, device| {
        let queue = simulation.queue("cuStreamSynchronize", from_c(stream), device)?;
        simulation.streams.wait(queue);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: Stream) -> u32 {
    answer("cuStreamDestroy_v2", Need::Context, |simulation, device| destroy(simulation, from_c(stream), device))
}

/// A default stream can't be destroyed.
fn destroy(simulation: &mut Simulation, stream: StreamId, device: i32) -> Answer<()> {
    let Queue::Made { stream, .. } = simulation.queue("cuStreamDestroy_v2", stream, device)? else {
        return Err(Code::INVALID_HANDLE);
    };
    simulation.streams.destroy(stream);
    Ok(())
}

/// # Safety
///
/// `mode` is null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
    answer("cuThreadExchangeStreamCaptureMode", Need::Nothing, |_, _| {
        // SAFETY: null or valid, says the caller.
        unsafe { InOut::new(mode) }?.change(streams::exchange_capture_mode)
    })
}
