//! What this machine and this process are: how much memory there is, whether the environment may be trusted, and whether
//! this is still the process that made a host.
//!
//! `cgroup`, `memory` and `privilege` have a pure reader each of a text that the kernel gives, and a thin one that
//! fetches the text.

mod cgroup;
mod memory;
mod per_process;
mod privilege;
mod process;

pub(crate) use memory::HostMemory;
pub(crate) use per_process::PerProcess;
pub use privilege::EnvironmentTrust;
pub(crate) use process::ProcessMark;
