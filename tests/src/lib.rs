//! What the suites share.
//!
//! To run on:
//! * [`rig`]: one host for each way in to each backing; [`plugins`]: where the libraries are, and registry files;
//! * [`cuda`]: the simulated CUDA driver; [`build`]: plugins that a test builds itself;
//! * [`child`]: tests that run in a process of their own; [`fork`]: children that inherit what a test holds;
//!   [`traffic`]: requests as an engine batches them.
//!
//! Backings and owners that behave as a test needs it:
//! * [`fault`]: a backing that fails where it is told to; [`parking`]: one that parks memory;
//! * [`victim`]: a buffer that gives way; [`asked`]: reclaimers, and who of them was asked.
//!
//! What must come out:
//! * [`conformance`]: what the contract asks of every backing; [`model`]: a plain model, and random operations on it;
//! * [`contents`]: the bytes of buffers and prefixes; [`blocks`]: blocks of tokens that can be told apart;
//! * [`observe`]: what the kernel says of this process; [`log`]: what the host logs.
//! * [`baseline`]: what operations cost, as it is checked in, and the comparison of a run with it.

pub mod asked;
pub mod baseline;
pub mod blocks;
pub mod build;
pub mod child;
pub mod conformance;
pub mod contents;
pub mod cuda;
pub mod descriptors;
pub mod fault;
pub mod fork;
pub mod log;
pub mod model;
pub mod observe;
pub mod parking;
pub mod plugins;
pub mod rig;
pub mod traffic;
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
