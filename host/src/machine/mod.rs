//! What this machine and this process are: how much memory there is, and whether the environment may be trusted.
//!
//! Each file has a pure reader of a text that the kernel gives, and a thin one that fetches the text.

mod cgroup;
mod memory;
mod privilege;

pub(crate) use memory::HostMemory;
pub use privilege::EnvironmentTrust;
