//! The values of the contract: plain data that crosses from host to backing and back.
//!
//! Every size and offset is in bytes and a `u64`; every address is an [`Address`], never a pointer, because a device
//! address isn't one. Nothing here owns anything.

mod accounting;
mod address;
mod description;
mod host_access;
mod identity;
mod outcome;
mod place;
mod region;
mod role;

pub use accounting::Accounting;
pub use address::Address;
pub use description::Description;
pub use host_access::{CpuAccess, HostAccess};
pub use identity::{AllocationId, AuthorityId, HolderId, PrefixId, RegionId};
pub use outcome::{Change, ReleaseOutcome, ReleaseTarget};
pub use place::{DeviceKey, Domain, ParseDomainError, Tier};
pub use region::{AllocateRequest, Allocation, CommitRange, Region, ReserveRequest};
pub use role::{MemoryRole, StepScope};
