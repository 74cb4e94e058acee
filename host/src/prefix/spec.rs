//! What a prefix is to be, and which wishes could never be granted.

use crate::backing::CheckedBacking;
use crate::error::BufferError;
use leasehold_plugin_api::{HolderId, MemoryRole};
use std::sync::Arc;

/// What a prefix is to be.
#[derive(Clone, Copy, Debug)]
pub struct PrefixSpec {
    pub(super) plane_bytes: u64,
    pub(super) planes: usize,
    pub(super) role: MemoryRole,
    pub(super) holder: HolderId,
}

impl PrefixSpec {
    /// A prefix of one plane of `plane_bytes` bytes, in whole granules: a granule is shared as a whole or not at all.
    #[must_use]
    pub fn new(plane_bytes: u64) -> Self {
        Self { plane_bytes, planes: 1, role: MemoryRole::KvCache, holder: HolderId::NOBODY }
    }

    /// The same, with that many planes of `plane_bytes` bytes each: as many as the buffers have that map it.
    #[must_use]
    pub fn planes(mut self, planes: usize) -> Self {
        self.planes = planes;
        self
    }

    /// The same, for another use than a KV cache.
    #[must_use]
    pub fn role(mut self, role: MemoryRole) -> Self {
        self.role = role;
        self
    }

    /// The same, on somebody's behalf.
    #[must_use]
    pub fn holder(mut self, holder: HolderId) -> Self {
        self.holder = holder;
        self
    }

    /// The bytes of all planes, unless they are nothing, no whole granules, or more than there are addresses.
    pub(super) fn total_bytes(&self, backing: &CheckedBacking) -> Result<u64, BufferError> {
        let Self { plane_bytes, planes, .. } = *self;
        let granule = backing.granule();
        let refuse =
            |why: String| BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "prefix", why };
        if plane_bytes == 0 || planes == 0 {
            return Err(refuse(format!(
                "{planes} planes of {plane_bytes} bytes hold nothing; ask for at least one of each"
            )));
        }
        if !plane_bytes.is_multiple_of(granule) {
            return Err(refuse(format!(
                "planes of {plane_bytes} bytes are no whole granules of {granule}, and a granule is shared as a whole \
                 or not at all; share fewer tokens (see CacheGeometry::shareability), and keep the rest private"
            )));
        }
        let total = u64::try_from(planes).ok().and_then(|planes| plane_bytes.checked_mul(planes));
        total.ok_or_else(|| {
            refuse(format!("{planes} planes of {plane_bytes} bytes pass the address space; ask for less"))
        })
    }
}
