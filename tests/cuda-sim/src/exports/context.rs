//! CUDA Driver API: Primary Context Management, Context Management.
#![expect(unsafe_code, reason = "C functions that write where their callers point")]

use super::answer;
use super::pointers::Out;
use crate::codes::Code;
use crate::contexts::{self, ContextId};
use crate::simulation::Need;

/// Contexts cross as pointers that nobody follows: here they are numbers of the same size, 0 for null.
type Context = usize;

/// `CU_COMPUTEMODE_PROHIBITED`.
const PROHIBITED: i32 = 2;

fn to_c(id: ContextId) -> Result<Context, Code> {
    Context::try_from(id).map_err(|_| Code::UNKNOWN)
}

fn from_c(context: Context) -> Option<ContextId> {
    u64::try_from(context).ok().filter(|id| *id != 0)
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Context, device: i32) -> u32 {
    answer("cuDevicePrimaryCtxRetain", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let context = unsafe { Out::new(context) }?;
        simulation.check_device(device)?;
        if simulation.settings.compute_mode == PROHIBITED {
            // Seen, and not documented.
            return Err(Code::UNKNOWN);
        }
        context.set(to_c(simulation.contexts.retain(device))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: i32) -> u32 {
    answer("cuDevicePrimaryCtxRelease_v2", Need::Initialised, |simulation, _| simulation.release_context(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32 {
    answer("cuDevicePrimaryCtxReset_v2", Need::Initialised, |simulation, _| simulation.reset_context(device))
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) -> u32 {
    answer("cuDevicePrimaryCtxGetState", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let flags = unsafe { Out::new(flags) }?;
        // SAFETY: as above.
        let active = unsafe { Out::new(active) }?;
        simulation.check_device(device)?;
        flags.set(0);
        active.set(i32::from(simulation.contexts.retains_of(device) > 0));
        Ok(())
    })
}

/// A context that can't be used is refused, as `cuCtxSetCurrent` and `cuCtxPushCurrent` list
/// `CUDA_ERROR_INVALID_CONTEXT`; one that is poisoned may be current, and fails what is done in it.
#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: Context) -> u32 {
    answer("cuCtxSetCurrent", Need::Initialised, |simulation, _| {
        if let Some(id) = from_c(context) {
            simulation.may_be_current("cuCtxSetCurrent", id)?;
        }
        contexts::set_current(from_c(context));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: Context) -> u32 {
    answer("cuCtxPushCurrent_v2", Need::Initialised, |simulation, _| {
        let id = from_c(context).ok_or(Code::INVALID_CONTEXT)?;
        simulation.may_be_current("cuCtxPushCurrent_v2", id)?;
        contexts::push_current(id);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut Context) -> u32 {
    answer("cuCtxPopCurrent_v2", Need::Initialised, |_, _| {
        let popped = to_c(contexts::pop_current()?)?;
        if !context.is_null() {
            // SAFETY: not null, so valid, says the caller.
            unsafe { Out::new(context) }?.set(popped);
        }
        Ok(())
    })
}

/// Null where none is current; that is no error: `cuCtxGetCurrent`.
///
/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut Context) -> u32 {
    answer("cuCtxGetCurrent", Need::Initialised, |_, _| {
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(context) }?.set(contexts::current().map_or(Ok(0), to_c)?);
        Ok(())
    })
}

/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(device: *mut i32) -> u32 {
    answer("cuCtxGetDevice", Need::Context, |_, current| {
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(device) }?.set(current);
        Ok(())
    })
}

/// Of the current context where none is named.
///
/// # Safety
///
/// Pointers are null or valid: see the module `exports`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetId(context: Context, unique: *mut u64) -> u32 {
    answer("cuCtxGetId", Need::Initialised, |simulation, _| {
        // SAFETY: null or valid, says the caller.
        let unique = unsafe { Out::new(unique) }?;
        let id = from_c(context).or_else(contexts::current).ok_or(Code::INVALID_CONTEXT)?;
        unique.set(simulation.contexts.unique(id)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    answer("cuCtxSynchronize", Need::Context, |simulation, device| {
        if simulation.streams.is_capturing {
            simulation.memory.violation("cuCtxSynchronize: ends a graph that is captured in this context".to_owned());
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        simulation.streams.wait_for_device(device);
        Ok(())
    })
}
