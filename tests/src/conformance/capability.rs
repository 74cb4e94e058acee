//! What a case may need of a backing.

use super::subject::is_direct;
use leasehold_plugin_api::Backing;
use std::fmt;

/// What a case may need of a backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Memory that grows behind a fixed address.
    VirtualBacking,
    /// One physical prefix in many regions.
    SharedMapping,
    /// Its bytes can be read and written, by the CPU or by transfers.
    Bytes,
}

/// What host-mmap lacks, and why.
pub const HOST_MMAP_LACKS: (Capability, &str) =
    (Capability::SharedMapping, "its memory is anonymous and private, so that no second address can show it");

/// What cuda-vmm lacks, and why.
pub const CUDA_VMM_LACKS: (Capability, &str) =
    (Capability::SharedMapping, "its handles go before their mapping, so that no second address can show them");

impl Capability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::VirtualBacking, Self::SharedMapping, Self::Bytes];

    /// Whether a backing offers it.
    #[must_use]
    pub fn is_offered_by(self, backing: &dyn Backing) -> bool {
        match self {
            Self::VirtualBacking => backing.as_virtual_backing().is_some(),
            Self::SharedMapping => backing.as_shared_mapping().is_some(),
            Self::Bytes => is_direct(backing) || backing.as_transfer().is_some(),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::VirtualBacking => "virtual-backing",
            Self::SharedMapping => "shared-mapping",
            Self::Bytes => "bytes that can be read",
        })
    }
}
