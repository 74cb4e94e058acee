//! What a buffer is to be, and which wishes could never be granted.

use super::growth::{GrowthPolicy, round_up};
use crate::backing::{CheckedBacking, Placement};
use crate::error::BufferError;
use leasehold_plugin_api::{HolderId, MemoryRole};
use std::sync::Arc;

/// What a buffer is to be.
#[derive(Clone, Copy, Debug)]
pub struct BufferSpec {
    capacity: u64,
    align: u64,
    pub(super) role: MemoryRole,
    pub(super) holder: HolderId,
    pub(super) growth: GrowthPolicy,
}

impl BufferSpec {
    /// A buffer that can grow to `capacity` bytes, rounded up to whole granules. Capacity costs address space only.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self { capacity, align: 1, role: MemoryRole::KvCache, holder: HolderId::NOBODY, growth: GrowthPolicy::Exact }
    }

    /// The same, with a base that is a multiple of `align` bytes, a power of two; the granularity at least.
    #[must_use]
    pub fn align(mut self, align: u64) -> Self {
        self.align = align;
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

    /// The same, committing ahead.
    #[must_use]
    pub fn growth(mut self, growth: GrowthPolicy) -> Self {
        self.growth = growth;
        self
    }

    /// Checks what can be known without the backing; answers the placement of one plane.
    pub(super) fn placement(&self, backing: &CheckedBacking, granule: u64) -> Result<Placement, BufferError> {
        let refuse =
            |why: String| BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "buffer", why };
        if self.capacity == 0 {
            return Err(refuse("a capacity of 0 bytes can hold nothing; ask for at least one".to_owned()));
        }
        check_align(self.align).map_err(refuse)?;
        if self.growth == GrowthPolicy::Step(0) {
            return Err(refuse("a growth step of 0 bytes never arrives; ask for a positive one".to_owned()));
        }
        let bytes = round_up(self.capacity, granule).ok_or_else(|| {
            refuse(format!("a capacity of {} bytes passes the address space; ask for less", self.capacity))
        })?;
        Ok(Placement { bytes, align: self.align.max(granule), role: self.role, holder: self.holder })
    }
}

/// Refuses an alignment that no address has.
pub(super) fn check_align(align: u64) -> Result<(), String> {
    if align.is_power_of_two() {
        return Ok(());
    }
    Err(format!("an alignment of {align} bytes is no power of two; ask for one"))
}
