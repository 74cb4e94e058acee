//! A Leasehold backing for memory of a CUDA device: address space is reserved once, physical memory comes when a granule is
//! committed and goes when it is decommitted, and the base never moves.
//!
//! ```text
//! backing ──► DeviceRegions (cuda-regions) ─► Device (cuda-driver) ──► the driver, found at run time
//!                   │
//!                   └─► direct      a handle for each granule: made at commit, given back before it is unmapped
//! ```
//!
//! It keeps no budget of bytes ([`Accounting::Buffer`](leasehold_plugin_api::Accounting)): that is the host's. The CPU
//! can't touch the memory; [`Transfer`](leasehold_plugin_api::Transfer) copies in and out. Without a driver it is
//! `unavailable`, and says what is missing. Any thread may call, with whatever context is current on it.

mod backing;
mod direct;

pub use backing::CudaVmm;
pub use leasehold_cuda_regions::{DeviceOptions, GranularityChoice};

leasehold_plugin_api::export_backing!(CudaVmm);
