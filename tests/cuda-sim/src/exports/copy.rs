//! CUDA Driver API: Memory Management: plain allocations, copies, fills. They are under way until somebody has waited for
//! their stream, which is the legacy stream where they name none; see [`Waits`].
#![expect(unsafe_code, reason = "C functions that read and write where their callers point")]

use super::pointers::{Out, slice, slice_mut};
use super::stream::{Stream, from_c};
use super::{answer, wide};
use crate::codes::{Answer, Code};
use crate::memory::{Memory, Wish};
use crate::simulation::Need;
use crate::streams::StreamId;

/// On a stream, and when the call itself waits for that.
struct On(StreamId, Waits);

/// CUDA Driver API: API synchronization behavior. Host memory is pageable here, all of it.
enum Waits {
    /// A copy from pageable memory of the host: what is on the stream is done before, and itself it is staged only.
    Before,
    /// A copy to the host.
    After,
    /// A fill, a copy within devices, and whatever names its stream.
    Never,
}

const LEGACY: StreamId = 0;

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
        let truth = simulation.memory.free(&simulation.settings, device);
        free.set(narrow(simulation.settings.reported_free.unwrap_or(truth))?);
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
    answer("cuMemFree_v2", Need::Context, |simulation, _| {
        let bytes = simulation.memory.free_allocation(address)?;
        simulation.check_idle("cuMemFree_v2", address, bytes);
        Ok(())
    })
}

/// One call on a stream. `act` does it on the memory, and answers what it touches.
fn run<const N: usize>(
    function: &'static str,
    On(stream, waits): On,
    act: impl FnOnce(&mut Memory, i32, u8) -> Answer<[(u64, u64, Wish); N]>,
) -> u32 {
    answer(function, Need::Context, |simulation, device| {
        let queue = simulation.queue(function, stream, device)?;
        let touches = act(&mut simulation.memory, device, simulation.settings.fresh)?;
        if matches!(waits, Waits::Before) {
            simulation.streams.wait(queue);
        }
        for touched in touches {
            simulation.begin(function, queue, touched)?;
        }
        if matches!(waits, Waits::After) {
            simulation.streams.wait(queue);
        }
        Ok(())
    })
}

/// Writes host memory to a device's.
fn copy_in(function: &'static str, to: u64, from: Answer<&[u8]>, on: On) -> u32 {
    run(function, on, |memory, device, fresh| {
        let from = from?;
        memory.write(device, to, from, fresh)?;
        Ok([(to, wide(from.len())?, Wish::Write)])
    })
}

/// Reads a device's memory to the host's.
fn copy_out(function: &'static str, to: Answer<&mut [u8]>, from: u64, on: On) -> u32 {
    run(function, on, |memory, device, fresh| {
        let to = to?;
        memory.read(device, from, to, fresh)?;
        Ok([(from, wide(to.len())?, Wish::Read)])
    })
}

fn copy(function: &'static str, to: u64, from: u64, size: usize, on: On) -> u32 {
    run(function, on, |memory, device, fresh| {
        let bytes = wide(size)?;
        memory.copy(device, to, from, bytes, fresh)?;
        Ok([(from, bytes, Wish::Read), (to, bytes, Wish::Write)])
    })
}

fn fill(function: &'static str, to: u64, byte: u8, size: usize, on: On) -> u32 {
    run(function, on, |memory, device, fresh| {
        let bytes = wide(size)?;
        memory.fill(device, to, bytes, byte, fresh)?;
        Ok([(to, bytes, Wish::Write)])
    })
}

/// # Safety
///
/// `from` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, size: usize) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_in("cuMemcpyHtoD_v2", to, unsafe { slice(from, size) }, On(LEGACY, Waits::Before))
}

/// # Safety
///
/// `from` is null or valid for `size` bytes, until the stream was waited for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, size: usize, stream: Stream) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_in("cuMemcpyHtoDAsync_v2", to, unsafe { slice(from, size) }, On(from_c(stream), Waits::Never))
}

/// # Safety
///
/// `to` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, size: usize) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_out("cuMemcpyDtoH_v2", unsafe { slice_mut(to, size) }, from, On(LEGACY, Waits::After))
}

/// # Safety
///
/// `to` is null or valid for `size` bytes, until the stream was waited for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, size: usize, stream: Stream) -> u32 {
    // SAFETY: null or valid for that many bytes, says the caller.
    copy_out("cuMemcpyDtoHAsync_v2", unsafe { slice_mut(to, size) }, from, On(from_c(stream), Waits::Never))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> u32 {
    copy("cuMemcpyDtoD_v2", to, from, size, On(LEGACY, Waits::Never))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: Stream) -> u32 {
    copy("cuMemcpyDtoDAsync_v2", to, from, size, On(from_c(stream), Waits::Never))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(to: u64, byte: u8, size: usize) -> u32 {
    fill("cuMemsetD8_v2", to, byte, size, On(LEGACY, Waits::Never))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, byte: u8, size: usize, stream: Stream) -> u32 {
    fill("cuMemsetD8Async", to, byte, size, On(from_c(stream), Waits::Never))
}
