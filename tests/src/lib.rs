//! What the suites share: a backing that fails where it is told to, what the kernel says of a process, what the host
//! logs, and where the plugins are.

pub mod build;
pub mod fault;
pub mod log;
pub mod observe;
pub mod plugins;

// Linked in, so that the suites can run over the built-in twin of each library.
use leasehold_host_mmap as _;
use leasehold_host_pool as _;
use leasehold_rogue as _;
