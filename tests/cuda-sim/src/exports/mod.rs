//! The C functions: the driver's, with its names and signatures, and those that control the simulation.
//!
//! Each reads what its pointers give, makes one [`Simulation::call`], and writes what came of it. Pointers are the
//! caller's: null, which is `CUDA_ERROR_INVALID_VALUE`, or valid for as long as the call lasts. Nothing keeps one. No
//! function blocks but on the lock of the simulation, and a failed call leaves everything as it was, unless a test
//! planned that it stops half-way.

mod context;
mod control;
mod copy;
mod device;
mod pointers;
mod stream;
mod virtual_memory;

use crate::codes::{Answer, Code};
use crate::plans::Plans;
use crate::settings::Settings;
use crate::simulation::{Need, Simulation};
use std::panic::AssertUnwindSafe;
use std::sync::{LazyLock, Mutex, PoisonError};

static SIMULATION: LazyLock<Mutex<Simulation>> = LazyLock::new(|| {
    let mut simulation = Simulation::new(Settings::from_environment());
    simulation.plans = Plans::of_text(&std::env::var("LEASEHOLD_SIM_PLAN").unwrap_or_default());
    Mutex::new(simulation)
});

/// Acts on the simulation of this process. What panics is kept in the books as a violation: nothing unwinds into C.
fn with<T>(act: impl FnOnce(&mut Simulation) -> Answer<T>) -> Answer<T> {
    let mut simulation = SIMULATION.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| act(&mut simulation)));
    outcome.unwrap_or_else(|payload| {
        std::mem::forget(payload);
        simulation.memory.violation("the simulator panicked: this is a mistake of its own".to_owned());
        Err(Code::UNKNOWN)
    })
}

/// One call of the driver's functions, as its `CUresult`.
fn answer(function: &'static str, need: Need, act: impl FnOnce(&mut Simulation, i32) -> Answer<()>) -> u32 {
    number(with(|simulation| simulation.call(function, need, act)))
}

fn number(outcome: Answer<()>) -> u32 {
    outcome.map_or_else(|Code(code)| code, |()| 0)
}

/// A size or an offset of C as the simulation writes it.
fn wide(size: usize) -> Answer<u64> {
    u64::try_from(size).map_err(|_| Code::INVALID_VALUE)
}
