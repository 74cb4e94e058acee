//! Backings whose memory the CPU can touch, to stand behind faults, and the claim of what stands before them.
#![expect(unsafe_code, reason = "claims that the CPU can touch what stands behind the faults")]

use super::FaultyBacking;
use crate::parking::ParkingBacking;
use leasehold_host_mmap::HostMmap;
use leasehold_host_pool::HostPool;
use leasehold_plugin_api::{Backing, BackingFactory, HostAccess};

/// A backing whose memory the CPU can touch. It can't be cloned, and what it is made of is moved into it.
pub struct HostMemory {
    /// Invariant 1: a type that claims direct access, or a [`ParkingBacking`] over one, which passes every address on as it
    /// is and takes memory away only when it is asked to. This value is its one handle.
    backing: Box<dyn Backing>,
}

impl std::fmt::Debug for HostMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HostMemory").finish_non_exhaustive()
    }
}

impl From<HostMmap> for HostMemory {
    fn from(backing: HostMmap) -> Self {
        const { assert!(HostMmap::HOST_ACCESS.access().is_direct()) };
        Self { backing: Box::new(backing) }
    }
}

impl From<HostPool> for HostMemory {
    fn from(backing: HostPool) -> Self {
        const { assert!(HostPool::HOST_ACCESS.access().is_direct()) };
        Self { backing: Box::new(backing) }
    }
}

impl HostMemory {
    /// The same, which parks what is decommitted, and says that it has `parked_bytes` parked already.
    #[must_use]
    pub fn parking(self, parked_bytes: u64) -> Self {
        Self { backing: Box::new(ParkingBacking::new(self.backing, parked_bytes)) }
    }

    /// The backing alone, without a claim.
    #[must_use]
    pub fn into_backing(self) -> Box<dyn Backing> {
        self.backing
    }
}

impl FaultyBacking {
    /// What a host may do with the memory behind the faults.
    // SAFETY: the memory is that of a `HostMemory` (its invariant 1), which this type owns and does not lend out. It passes
    // addresses on as they are. A fault that was planned fails a call, or does less than was asked, and says so. Nothing is
    // claimed of a forked child, since host-pool claims nothing of one.
    pub const ACCESS: HostAccess<Self> = unsafe { HostAccess::direct() };
}
