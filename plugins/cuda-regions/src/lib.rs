//! Regions of device memory: address space that is reserved once, and physical handles that come and go behind it.
//!
//! ```text
//!   cuda-vmm, cuda-pool ──► DeviceRegions ─► transaction ──► region ──► Reservation (cuda-driver)
//!            │                    │               │            └─► contents   what is mapped where (pure)
//!            └── Source ◄─────────┴───────────────┘
//!                obtain, take back: where handles come from and go to
//! ```
//!
//! A region is mapped in *granules*, one handle each. Each call makes, for a contiguous run of n granules, n maps and one
//! set-access, or one unmap; nothing else that grows with n but what the source does. A call is all or nothing: what was
//! mapped when the driver refused is unmapped again. A call of the driver that fails may have acted on some of its range:
//! what it unmapped is found out, and access is set anew. Where the driver refuses to undo something, that stays behind as
//! *residue*: in nobody's use, and taken away before the region is used again, or with it. Memory that was made for the
//! call, that nothing maps and that the driver doesn't take back is a *debt* of the region that it was for, and goes the
//! same way: so what the host keeps charged for a region in doubt is what is held for that region.
//!
//! No lock is held while a source is called, since it may charge the host. Calls about different regions run at the same
//! time. Nothing panics.

mod broken;
mod contents;
mod contract;
mod handle_factory;
mod options;
mod prefix;
mod region;
mod regions;
mod source;
mod transaction;

pub use handle_factory::{HandleFactory, Released};
pub use options::{DeviceOptions, DeviceSetting, GranularityChoice};
pub use regions::DeviceRegions;
pub use source::{HandleRelease, Need, Piece, Returned, Source, Supply};
