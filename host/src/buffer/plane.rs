//! One region, what is charged for it, and what of it may be used.
//!
//! The two differ only while nobody can tell what a call left behind: a shrink that failed half-way, a commit that broke
//! off. Then the worst holds on both sides: all that may be there is charged, only what is there for certain is used.
#![expect(unsafe_code, reason = "lends committed memory out as slices")]

use super::bytes;
use crate::backing::CheckedBacking;
use crate::error::BufferError;
use leasehold_plugin_api::{Address, Region, RegionId};

/// One region with what is committed of it.
#[derive(Debug)]
pub(super) struct Plane {
    /// Invariant 1: a live region, as a [`CheckedBacking`] reserved it, which overlaps no other; nobody else has it.
    region: Region,
    /// The most that may be committed; this much is charged.
    charged: u64,
    /// Invariant 2: what is committed for certain; at most `charged`. It falls before a decommit is asked for or
    /// settled, and rises only by what the backing answered to a commit.
    certain: u64,
}

impl Plane {
    /// A plane of which nothing is committed.
    pub(super) fn new(region: Region) -> Self {
        Self { region, charged: 0, certain: 0 }
    }

    pub(super) fn id(&self) -> RegionId {
        self.region.id
    }

    pub(super) fn base(&self) -> Address {
        self.region.base
    }

    /// The first `len` bytes; fewer where less is committed for certain.
    pub(super) fn bytes(&self, backing: &CheckedBacking, len: u64) -> Result<&[u8], BufferError> {
        // SAFETY: by invariants 1 and 2 the bytes are committed; they stay so while the plane is shared, since whatever
        // changes `certain` needs it exclusively, and only the plane's owner writes to them.
        unsafe { bytes::of(backing, self.region.base, len.min(self.certain)) }
    }

    /// As [`bytes`](Self::bytes), to write.
    pub(super) fn bytes_mut(&mut self, backing: &CheckedBacking, len: u64) -> Result<&mut [u8], BufferError> {
        // SAFETY: as above; and the plane is borrowed exclusively.
        unsafe { bytes::of_mut(backing, self.region.base, len.min(self.certain)) }
    }

    pub(super) fn charged(&self) -> u64 {
        self.charged
    }

    pub(super) fn certain(&self) -> u64 {
        self.certain
    }

    /// So many bytes are committed, beyond doubt.
    pub(super) fn settle(&mut self, committed: u64) {
        (self.charged, self.certain) = (committed, committed);
    }

    /// A commit up to `bytes` broke off: they may be there.
    pub(super) fn doubt_growth(&mut self, bytes: u64) {
        self.charged = self.charged.max(bytes);
    }

    /// A decommit down to `bytes` failed: the rest may be gone.
    pub(super) fn doubt_shrink(&mut self, bytes: u64) {
        self.certain = self.certain.min(bytes);
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.certain < self.charged
    }
}
