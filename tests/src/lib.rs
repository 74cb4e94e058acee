//! What the suites share: rigs to run on, their bytes wherever they are, a backing that fails where it is told to, a plain
//! model with its operations, what the contract asks of every backing, what the kernel says of a process, what the host
//! logs, where the plugins are, a backing that parks memory, a buffer that gives way, the simulated CUDA driver, and tests that run in a process of
//! their own.

pub mod asked;
pub mod blocks;
pub mod build;
pub mod child;
pub mod conformance;
pub mod contents;
pub mod cuda;
pub mod fault;
pub mod log;
pub mod model;
pub mod observe;
pub mod parking;
pub mod plugins;
pub mod rig;
pub mod victim;

// Linked in, so that the suites can run over the built-in twin of each library.
use leasehold_cuda_pool as _;
use leasehold_cuda_vmm as _;
use leasehold_host_mmap as _;
use leasehold_host_pool as _;
use leasehold_rogue as _;

/// Whether every byte is `mark`: by comparing memory with itself, since a byte at a time is slow where nothing is
/// optimised.
#[must_use]
pub fn is_all(bytes: &[u8], mark: u8) -> bool {
    bytes.first().is_none_or(|first| *first == mark && bytes[1..] == bytes[..bytes.len() - 1])
}
