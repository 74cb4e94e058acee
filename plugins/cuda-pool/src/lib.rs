//! A Leasehold backing for memory of a CUDA device from a pool of physical handles: what is decommitted is parked and serves
//! the next commit, and one prefix is mapped into many regions.
//!
//! ```text
//! backing ──► DeviceRegions (cuda-regions) ─► Device (cuda-driver) ──► the driver, found at run time
//!    │              │
//!    └─► options    └─► pool ──► parked     which handles are owned and behind nothing (pure)
//!                        └─► books          charge before a handle is made, refund when it is given back
//! ```
//!
//! It charges the governor itself ([`Accounting::Backing`](leasehold_plugin_api::Accounting)), for parked memory too.
//! What one holder left is zeroed before another one gets it. A prefix is published behind a synchronisation of the
//! device's primary context: seal between steps, beside no capture, and after waiting for whatever wrote it in another
//! context. Where the device can't map read-only, sealing is refused, and from then on making a prefix is. Without a
//! driver it is `unavailable`, and says what is missing. Any thread may call, with whatever context is current on it.

mod backing;
mod books;
mod options;
mod parked;
mod pool;

pub use backing::CudaPool;
pub use options::CudaPoolOptions;

leasehold_plugin_api::export_backing!(CudaPool);
