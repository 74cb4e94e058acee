//! A stand-in for the CUDA driver, for tests: the calls that Leasehold makes, with the documented rules enforced and
//! books kept of everything.
//!
//! ```text
//! exports/   the driver's C functions, and leasehold_sim_* to control it     raw pointers (unsafe is only here)
//!    └─► Simulation::call     counts the call, fails it where a test planned that, asks for cuInit and a context
//!           ├─► contexts      primary contexts, and which one is current on a thread
//!           ├─► memory        reservations, physical memory, mappings, access, plain allocations: the rules
//!           │     └─► store   the bytes: one file in memory, never mapped
//!           ├─► streams       what is under way on which stream, and whether a graph is captured
//!           ├─► settings      how many devices, how much memory, which granularity: environment, then tests
//!           └─► books         what is live, which calls were made, what nobody may do and somebody did
//! ```
//!
//! Addresses are real: each reservation is inaccessible address space of this process, so a CPU that touches "device"
//! memory faults. The bytes are elsewhere, in a file, and only copies and fills of the simulator reach them; two
//! mappings of one handle are the same bytes. Fresh memory reads as 0xD1, since nobody promises zeroes.
//!
//! A rule that the documentation states is answered with its code. What the documentation leaves undefined (a dead
//! handle, a second release, a copy to what is not mapped or not to be written) is answered with a code too, and kept
//! in the books as a *violation*, so that a test can say that there was none. Work has its effect at once, and counts
//! as under way until somebody has waited for its stream.
//!
//! Stricter than the documentation: every call on memory wants a current context, also those whose documented codes
//! don't list `CUDA_ERROR_INVALID_CONTEXT`; a setting lets those that give back go without. Where the documentation leaves a
//! choice to the driver, or drivers were seen to deviate, a setting has it either way: alignments that are not honoured,
//! free memory that is reported wrong, handle numbers that come again, what is reported of unmapped addresses.
//!
//! After a reset the next primary context has the address of the one before, and streams of that one are dead. In a child
//! that was forked after `cuInit` every call fails with `CUDA_ERROR_NOT_INITIALIZED`.
//!
//! Any thread may call anything; one lock orders the calls. Nothing panics across the C boundary. "CUDA Driver API" in
//! comments is <https://docs.nvidia.com/cuda/cuda-driver-api/>, with the function that the page describes.

mod abi;
mod books;
mod codes;
mod contexts;
mod exports;
mod memory;
mod plans;
mod settings;
mod simulation;
mod store;
mod streams;

#[cfg(test)]
mod tests;
