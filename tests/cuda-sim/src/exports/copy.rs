//! CUDA Driver API: Memory Management: plain allocations, copies, fills. What names a stream is under way until somebody
//! has waited for that; the rest is done when its call returns.
#![expect(unsafe_code, reason = "C functions that read and write where their callers point")]

use super::pointers::{Out, slice, slice_mut};
use super::stream::{Stream, from_c};
use super::{answer, wide};
use crate::codes::{Answer, Code};
use crate::memory::Wish;
use crate::simulation::Need;
use crate::streams::StreamId;

const DEFAULT_STREAM: StreamId = 0;

fn narrow(size: u64) -> Answer<usize> {
    usize::try_from(size).map_err(|_| Code::UNKNOWN)
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    answer("cuMemGetInfo_v2", Need::Context, |simulation, device| {
        // SAFETY: null or valid, says the caller.
        let free = unsafe { Out::new(free) }?;
        // SAFETY: as above.
        let total = unsafe { Out::new(total) }?;
        free.set(narrow(simulation.memory.free(&simulation.settings, device))?);
        total.set(narrow(simulation.settings.limit(device))?);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, size: usize) -> u32 {
    answer("cuMemAlloc_v2", Need::Context, |simulation, device| {
        // SAFETY: null or valid, says the caller.
        let address = unsafe { Out::new(address) }?;
        address.set(simulation.memory.allocate(&simulation.settings, device, wide(size)?)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    answer("cuMemFree_v2", Need::Context, |simulation, _| simulation.memory.free_allocation(address))
}

/// Writes host memory to a device's, on a stream.
fn copy_in(function: &'static str, to: u64, from: Answer<&[u8]>, stream: StreamId) -> u32 {
    answer(function, Need::Context, |simulation, device| {
        let from = from?;
        simulation.check_stream(function, stream, device)?;
        simulation.memory.write(device, to, from, simulation.settings.fresh)?;
        simulation.begin(function, (stream, device), (to, wide(from.len())?, Wish::Write))
    })
}

/// Reads a device's memory to the host's, on a stream.
fn copy_out(function: &'static str, to: Answer<&mut [u8]>, from: u64, stream: StreamId) -> u32 {
    answer(function, Need::Context, |simulation, device| {
        let to = to?;
        simulation.check_stream(function, stream, device)?;
        simulation.memory.read(device, from, to, simulation.settings.fresh)?;
        simulation.begin(function, (stream, device), (from, wide(to.len())?, Wish::Read))
    })
}

fn copy(function: &'static str, to: u64, from: u64, size: usize, stream: StreamId) -> u32 {
    answer(function, Need::Context, |simulation, device| {
        let bytes = wide(size)?;
        simulation.check_stream(function, stream, device)?;
        simulation.memory.copy(device, to, from, bytes, simulation.settings.fresh)?;
        simulation.begin(function, (stream, device), (from, bytes, Wish::Read))?;
        simulation.begin(function, (stream, device), (to, bytes, Wish::Write))
    })
}

fn fill(function: &'static str, to: u64, byte: u8, size: usize, stream: StreamId) -> u32 {
    answer(function, Need::Context, |simulation, device| {
        let bytes = wide(size)?;
        simulation.check_stream(function, stream, device)?;
        simulation.memory.fill(device, to, bytes, byte, simulation.settings.fresh)?;
        simulation.begin(function, (stream, device), (to, bytes, Wish::Write))
    })
}

/// # Safety
///
/// `from` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, size: usize) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_in("cuMemcpyHtoD_v2", to, unsafe { slice(from, size) }, DEFAULT_STREAM)
}

/// # Safety
///
/// `from` is null or valid for `size` bytes, until the stream was waited for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, size: usize, stream: Stream) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_in("cuMemcpyHtoDAsync_v2", to, unsafe { slice(from, size) }, from_c(stream))
}

/// # Safety
///
/// `to` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, size: usize) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_out("cuMemcpyDtoH_v2", unsafe { slice_mut(to, size) }, from, DEFAULT_STREAM)
}

/// # Safety
///
/// `to` is null or valid for `size` bytes, until the stream was waited for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, size: usize, stream: Stream) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_out("cuMemcpyDtoHAsync_v2", unsafe { slice_mut(to, size) }, from, from_c(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> u32 {
    copy("cuMemcpyDtoD_v2", to, from, size, DEFAULT_STREAM)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: Stream) -> u32 {
    copy("cuMemcpyDtoDAsync_v2", to, from, size, from_c(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(to: u64, byte: u8, size: usize) -> u32 {
    fill("cuMemsetD8_v2", to, byte, size, DEFAULT_STREAM)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, byte: u8, size: usize, stream: Stream) -> u32 {
    fill("cuMemsetD8Async", to, byte, size, from_c(stream))
}
