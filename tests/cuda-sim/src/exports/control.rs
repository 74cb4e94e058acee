//! What controls the simulation: `leasehold_sim_*`. Each answers 0, or the driver's code for what is wrong with the
//! call.
#![expect(unsafe_code, reason = "C functions that read and write where their callers point")]

use super::pointers::{Out, slice_mut, text};
use super::{number, with};
use crate::abi::BookCounts;
use crate::codes::Code;
use crate::memory::Wish;
use crate::plans::Lasting;
use crate::settings::Settings;
use std::ffi::c_char;

/// Starts over, with the settings of the environment: counts, plans, violations and poison are gone, and `cuInit` is
/// needed again. `CUDA_ERROR_ILLEGAL_STATE`, and nothing is changed, while anything is live.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_reset() -> u32 {
    number(with(|simulation| simulation.reset(Settings::from_environment())))
}

/// Changes a setting: `devices`, `memory` (bytes of that device), `granularity` (all three), `recommended`,
/// `rdma_granularity`, `read_only` (0 or 1), `address_space` (bytes that may be reserved), `address_refusal` (the code
/// for what passes that), `fresh` (the byte that new memory reads as; change it only while nothing is live),
/// `reported_free` (bytes that `cuMemGetInfo` reports, true or not), `version`, `virtual_memory` (0 or 1),
/// `compute_mode`, `honoured_alignment` (the largest of a reservation). And with 0 or 1 what drivers may do one way or
/// the other: `access_everywhere` (`cuMemGetAccess` where nothing is mapped), `refuses_unmapped`
/// (`cuPointerGetAttribute` there), `gives_back_without_context` (`cuMemRelease`, `cuMemUnmap`, `cuMemAddressFree`),
/// `handles_again` (the numbers of handles that ended), `lets_write` (read-only access is not enforced), `descriptors`
/// (each handle takes one of the process). `device` counts for `memory` alone.
///
/// # Safety
///
/// `name` is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn leasehold_sim_set(name: *const c_char, device: i32, value: u64) -> u32 {
    number(with(|simulation| {
        // SAFETY: null or a C string, says the caller.
        let name = unsafe { text(name) }?;
        simulation.settings.set(name, device, value)
    }))
}

/// Says whether `device` can reach the memory of `peer`: 1 or 0. At first each can.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_set_peer(device: i32, peer: i32, reachable: u32) -> u32 {
    number(with(|simulation| {
        if reachable == 0 {
            simulation.settings.strangers.insert((device, peer));
        } else {
            simulation.settings.strangers.remove(&(device, peer));
        }
        Ok(())
    }))
}

/// Plans a failure: the `nth` call from now (1 is the next) of `function` answers `code` and does nothing; with
/// `lasting` 1 every later one too. A function's name may end in a star, for all that begin so.
///
/// # Safety
///
/// `function` is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn leasehold_sim_plan(function: *const c_char, nth: u64, lasting: u32, code: u32) -> u32 {
    number(with(|simulation| {
        // SAFETY: null or a C string, says the caller.
        let function = unsafe { text(function) }?;
        let lasting = if lasting == 0 { Lasting::Once } else { Lasting::ForEver };
        simulation.plans.add(function, nth, lasting, Code(code));
        Ok(())
    }))
}

/// Plans a failure of `cuMemUnmap` or `cuMemSetAccess` that comes half-way: the call acts on the first half of the
/// mappings in its range (on none, where there is one), and answers `code`. Else as `leasehold_sim_plan`.
///
/// # Safety
///
/// `function` is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn leasehold_sim_plan_halfway(function: *const c_char, nth: u64, lasting: u32, code: u32) -> u32 {
    number(with(|simulation| {
        // SAFETY: null or a C string, says the caller.
        let function = unsafe { text(function) }?;
        let lasting = if lasting == 0 { Lasting::Once } else { Lasting::ForEver };
        simulation.plans.add_halfway(function, nth, lasting, Code(code))
    }))
}

/// Forgets all plans.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_heal() -> u32 {
    number(with(|simulation| {
        simulation.plans.clear();
        Ok(())
    }))
}

/// Has every later call in the device's primary context answer `code`, as after a kernel that failed.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_poison(device: i32, code: u32) -> u32 {
    number(with(|simulation| simulation.contexts.poison(device, Code(code))))
}

/// Says that some thread begins (1) or ends (0) to capture a graph, in the mode that minds what other threads do.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_capture(begins: u32) -> u32 {
    number(with(|simulation| {
        simulation.streams.is_capturing = begins != 0;
        Ok(())
    }))
}

/// What a kernel's load (`store` 0) or store (`store` 1) at an address does on that device:
/// `CUDA_ERROR_ILLEGAL_ADDRESS` where it has no such access, and its context is poisoned then.
#[unsafe(no_mangle)]
extern "C" fn leasehold_sim_touch(device: i32, address: u64, store: u32) -> u32 {
    let wish = if store == 0 { Wish::Read } else { Wish::Write };
    number(with(|simulation| simulation.touch(device, address, wish)))
}

/// Writes how much is live.
///
/// # Safety
///
/// `counts` is null or valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn leasehold_sim_books(counts: *mut BookCounts) -> u32 {
    number(with(|simulation| {
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(counts) }?.set(simulation.counts());
        Ok(())
    }))
}

/// Writes the books as JSON, as much as fits, and always how many bytes there are: `CUDA_ERROR_INVALID_VALUE` where
/// they are more than `room`.
///
/// # Safety
///
/// `target` is null or valid for `room` bytes, `bytes` is null or valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn leasehold_sim_books_json(target: *mut u8, room: usize, bytes: *mut usize) -> u32 {
    number(with(|simulation| {
        let json = simulation.json();
        // SAFETY: null or valid for that many bytes, says the caller.
        let target = unsafe { slice_mut(target, room) }?;
        // SAFETY: null or valid, says the caller.
        unsafe { Out::new(bytes) }?.set(json.len());
        target.iter_mut().zip(json.bytes()).for_each(|(to, from)| *to = from);
        if json.len() > room { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }))
}
