//! CUDA Driver API: Virtual Memory Management.
#![expect(unsafe_code, reason = "C functions that read and write where their callers point")]

use super::pointers::{Out, read, slice};
use super::{answer, wide};
use crate::abi::{AccessDesc, AllocationProp, MemLocation};
use crate::codes::Code;
use crate::memory;
use crate::simulation::Need;

/// `CU_POINTER_ATTRIBUTE_MAPPED`.
const MAPPED: i32 = 13;

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAllocationGranularity(size: *mut usize, prop: *const AllocationProp, option: u32) -> u32 {
    answer("cuMemGetAllocationGranularity", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let size = unsafe { Out::new(size) }?;
        // SAFETY: as above.
        let prop = unsafe { read(prop) }?;
        let granularity = memory::granularity(&simulation.settings, &prop, option)?;
        size.set(usize::try_from(granularity).map_err(|_| Code::UNKNOWN)?);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressReserve(address: *mut u64, size: usize, align: usize, hint: u64, flags: u64) -> u32 {
    answer("cuMemAddressReserve", Need::Context, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let address = unsafe { Out::new(address) }?;
        let (size, align) = (wide(size)?, wide(align)?);
        address.set(simulation.memory.reserve(&simulation.settings, size, align, hint, flags)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAddressFree(address: u64, size: usize) -> u32 {
    answer("cuMemAddressFree", Need::GivingBack, |simulation, _| simulation.memory.free_addresses(address, wide(size)?))
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemCreate(handle: *mut u64, size: usize, prop: *const AllocationProp, flags: u64) -> u32 {
    answer("cuMemCreate", Need::Context, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let handle = unsafe { Out::new(handle) }?;
        // SAFETY: as above.
        let prop = unsafe { read(prop) }?;
        handle.set(simulation.memory.create(&simulation.settings, wide(size)?, &prop, flags)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemRelease(handle: u64) -> u32 {
    answer("cuMemRelease", Need::GivingBack, |simulation, _| simulation.memory.release(handle))
}

/// # Safety
///
/// `handle` is null or valid: see the module `exports`. The address is a device's, and is not followed.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemRetainAllocationHandle(handle: *mut u64, address: usize) -> u32 {
    answer("cuMemRetainAllocationHandle", Need::Context, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let handle = unsafe { Out::new(handle) }?;
        handle.set(simulation.memory.retain_handle(wide(address)?)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64) -> u32 {
    answer("cuMemMap", Need::Context, |simulation, _| {
        simulation.memory.map(address, wide(size)?, wide(offset)?, handle, flags)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemUnmap(address: u64, size: usize) -> u32 {
    answer("cuMemUnmap", Need::GivingBack, |simulation, _| {
        simulation.memory.unmap(address, wide(size)?)?;
        simulation.check_idle("cuMemUnmap", address, wide(size)?);
        Ok(())
    })
}

/// # Safety
///
/// `descriptions` is null or valid for `count` of them: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemSetAccess(address: u64, size: usize, descriptions: *const AccessDesc, count: usize) -> u32 {
    answer("cuMemSetAccess", Need::Context, |simulation, _| {
        // SAFETY: null or valid for that many, says the caller.
        let descriptions = unsafe { slice(descriptions, count) }?;
        simulation.memory.set_access(&simulation.settings, address, wide(size)?, descriptions)?;
        simulation.check_idle("cuMemSetAccess", address, wide(size)?);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAccess(flags: *mut u64, location: *const MemLocation, address: u64) -> u32 {
    answer("cuMemGetAccess", Need::Context, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let flags = unsafe { Out::new(flags) }?;
        // SAFETY: as above.
        let location = unsafe { read(location) }?;
        flags.set(simulation.memory.access(&simulation.settings, location, address)?);
        Ok(())
    })
}

/// Of the attributes it has the one that shows whether anything is mapped at an address.
///
/// # Safety
///
/// `data` is null or valid for what the attribute is: see the module `exports`. The address is a device's, and is not
/// followed.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(data: *mut u32, attribute: i32, address: u64) -> u32 {
    answer("cuPointerGetAttribute", Need::Context, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let data = unsafe { Out::new(data) }?;
        if attribute != MAPPED {
            return Err(Code::NOT_SUPPORTED);
        }
        data.set(u32::from(simulation.memory.is_mapped(&simulation.settings, address)?));
        Ok(())
    })
}
