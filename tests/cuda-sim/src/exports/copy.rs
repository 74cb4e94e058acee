//! CUDA Driver API: Memory Management: plain allocations, copies, fills. All is done when a call returns.
#![expect(unsafe_code, reason = "C functions that read and write where their callers point")]

use super::pointers::{Out, slice, slice_mut};
use super::{answer, wide};
use crate::codes::{Answer, Code};
use crate::simulation::Need;

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

/// # Safety
///
/// `from` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, size: usize) -> u32 {
    answer("cuMemcpyHtoD_v2", Need::Context, |simulation, device| {
        // SAFETY: null or valid for that many bytes, says the caller.
        let from = unsafe { slice(from, size) }?;
        simulation.memory.write(device, to, from, simulation.settings.fresh)
    })
}

/// # Safety
///
/// `to` is null or valid for `size` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, size: usize) -> u32 {
    answer("cuMemcpyDtoH_v2", Need::Context, |simulation, device| {
        // SAFETY: null or valid for that many bytes, says the caller.
        let to = unsafe { slice_mut(to, size) }?;
        simulation.memory.read(device, from, to, simulation.settings.fresh)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> u32 {
    answer("cuMemcpyDtoD_v2", Need::Context, |simulation, device| {
        simulation.memory.copy(device, to, from, wide(size)?, simulation.settings.fresh)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(to: u64, byte: u8, size: usize) -> u32 {
    answer("cuMemsetD8_v2", Need::Context, |simulation, device| {
        simulation.memory.fill(device, to, wide(size)?, byte, simulation.settings.fresh)
    })
}
