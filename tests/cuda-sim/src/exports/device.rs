//! CUDA Driver API: Initialization, Version Management, Error Handling, Device Management, Peer Context Memory Access.
#![expect(unsafe_code, reason = "C functions that write where their callers point")]

use super::answer;
use super::pointers::{Out, slice_mut};
use crate::codes::Code;
use crate::simulation::Need;
use std::ffi::c_char;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
const COMPUTE_MODE: i32 = 20;
/// `CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING`.
const UNIFIED_ADDRESSING: i32 = 41;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const CAPABILITY_MAJOR: i32 = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const CAPABILITY_MINOR: i32 = 76;
/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
const VIRTUAL_MEMORY: i32 = 102;
/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED`.
const RDMA: i32 = 110;
/// One past the last attribute of CUDA 12.8, `CU_DEVICE_ATTRIBUTE_MAX`.
const ATTRIBUTES: i32 = 140;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: u32) -> u32 {
    answer("cuInit", Need::Nothing, |simulation, _| simulation.initialise(flags))
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> u32 {
    answer("cuDriverGetVersion", Need::Nothing, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(version) }?.set(simulation.settings.version);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: u32, name: *mut *const c_char) -> u32 {
    // SAFETY: null or valid, says the caller.
    answer("cuGetErrorName", Need::Nothing, |_, _| unsafe { error_text(error, name) })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: u32, text: *mut *const c_char) -> u32 {
    // SAFETY: null or valid, says the caller.
    answer("cuGetErrorString", Need::Nothing, |_, _| unsafe { error_text(error, text) })
}

/// The text of a code, or null and `CUDA_ERROR_INVALID_VALUE`: `cuGetErrorName`.
///
/// # Safety
///
/// `target` is null or valid.
unsafe fn error_text(error: u32, target: *mut *const c_char) -> Result<(), Code> {
    let known = Code::name(error);
    // SAFETY: null or valid, says the caller.
    unsafe { Out::new(target) }?.set(known.map_or(std::ptr::null(), |name| name.as_ptr()));
    known.map(|_| ()).ok_or(Code::INVALID_VALUE)
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut i32) -> u32 {
    answer("cuDeviceGetCount", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(count) }?.set(simulation.settings.devices);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut i32, ordinal: i32) -> u32 {
    answer("cuDeviceGet", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let device = unsafe { Out::new(device) }?;
        simulation.check_device(ordinal)?;
        device.set(ordinal);
        Ok(())
    })
}

/// Writes as much of the name as there is room for, and a zero.
///
/// # Safety
///
/// `name` is null or valid for `length` bytes: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut u8, length: i32, device: i32) -> u32 {
    answer("cuDeviceGetName", Need::Initialised, |simulation, _| {
        let room = usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: null or valid for that many bytes, says the caller.
        let target = unsafe { slice_mut(name, room) }?;
        simulation.check_device(device)?;
        let (last, body) = target.split_last_mut().ok_or(Code::INVALID_VALUE)?;
        *last = 0;
        body.fill(0);
        let text = format!("Leasehold simulated device {device}");
        body.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) -> u32 {
    answer("cuDeviceTotalMem_v2", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let bytes = unsafe { Out::new(bytes) }?;
        simulation.check_device(device)?;
        bytes.set(usize::try_from(simulation.settings.limit(device)).map_err(|_| Code::UNKNOWN)?);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> u32 {
    answer("cuDeviceGetAttribute", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let value = unsafe { Out::new(value) }?;
        simulation.check_device(device)?;
        value.set(match attribute {
            UNIFIED_ADDRESSING | RDMA => 1,
            COMPUTE_MODE => simulation.settings.compute_mode,
            VIRTUAL_MEMORY => i32::from(simulation.settings.virtual_memory),
            CAPABILITY_MAJOR => 8,
            CAPABILITY_MINOR => 0,
            known if (1..ATTRIBUTES).contains(&known) => 0,
            _ => return Err(Code::INVALID_VALUE),
        });
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32) -> u32 {
    answer("cuDeviceGetUuid_v2", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let uuid = unsafe { Out::new(uuid) }?;
        simulation.check_device(device)?;
        let mut bytes = *b"leasehold-sim-00";
        bytes[15] += u8::try_from(device).map_err(|_| Code::INVALID_DEVICE)?;
        uuid.set(bytes);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> u32 {
    answer("cuDeviceCanAccessPeer", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let can = unsafe { Out::new(can) }?;
        simulation.check_device(device)?;
        simulation.check_device(peer)?;
        can.set(i32::from(device != peer && simulation.settings.can_reach(device, peer)));
        Ok(())
    })
}
