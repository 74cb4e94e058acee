//! One region: what prefixes take of it, what is charged behind those, and what of it may be used.
//!
//! ```text
//!   base ──── shared ──────────── certain ────────── charged ──────── capacity
//!     │ sealed    │ committed, private │ may be committed │ reserved only │
//! ```
//!
//! The last two marks differ only while nobody can tell what a call left behind: a shrink that failed half-way, a commit that broke
//! off. Then the worst holds on both sides: all that may be there is charged, only what is there for certain is used.
#![expect(unsafe_code, reason = "lends committed memory out as slices")]

use crate::backing::{CheckedBacking, bytes};
use crate::error::BufferError;
use leasehold_plugin_api::{Address, Region, RegionId};

/// One region with what is committed of it.
#[derive(Debug)]
pub(super) struct Plane {
    /// Invariant 1: a live region, as a [`CheckedBacking`] reserved it, which overlaps no other; nobody else has it.
    region: Region,
    /// Invariant 3: the first `shared` bytes are of sealed prefixes, mapped whole; at most `certain`.
    shared: u64,
    /// The end of what may be committed; what lies between `shared` and this is charged.
    charged: u64,
    /// Invariant 2: the end of what is committed or mapped for certain; at most `charged`. It falls before a decommit is
    /// asked for or settled, and rises only by what the backing answered to a commit or a mapping.
    certain: u64,
}

impl Plane {
    /// A plane of which nothing is committed.
    pub(super) fn new(region: Region) -> Self {
        Self { region, shared: 0, charged: 0, certain: 0 }
    }

    pub(super) fn id(&self) -> RegionId {
        self.region.id
    }

    pub(super) fn base(&self) -> Address {
        self.region.base
    }

    /// The first `len` bytes; fewer where less is there for certain.
    pub(super) fn bytes(&self, backing: &CheckedBacking, len: u64) -> Result<&[u8], BufferError> {
        // SAFETY: by invariants 1 and 2 the bytes are committed or mapped; they stay so while the plane is shared, since
        // whatever changes `certain` needs it exclusively. Only the plane's owner writes to the private ones, and nobody
        // to the others (3).
        unsafe { bytes::of(backing, self.region.base, len.min(self.certain)) }
    }

    /// What of the first `len` bytes is private, to write; fewer where less is there for certain.
    pub(super) fn private_mut(&mut self, backing: &CheckedBacking, len: u64) -> Result<&mut [u8], BufferError> {
        let private = len.min(self.certain).saturating_sub(self.shared);
        let begin = self.region.base.checked_add(self.shared).unwrap_or(self.region.base);
        // SAFETY: as above; by invariant 3 none of these bytes is a prefix's, and the plane is borrowed exclusively.
        unsafe { bytes::of_mut(backing, begin, private) }
    }

    /// The end of what may be committed.
    pub(super) fn charged(&self) -> u64 {
        self.charged
    }

    /// The bytes that are charged.
    pub(super) fn owned(&self) -> u64 {
        self.charged.saturating_sub(self.shared)
    }

    /// So many bytes more are mapped in front, where nothing private is.
    pub(super) fn map(&mut self, bytes: u64) {
        self.shared = self.shared.saturating_add(bytes);
        (self.charged, self.certain) = (self.shared, self.shared);
    }

    /// Nothing is mapped or committed any more.
    pub(super) fn clear(&mut self) {
        (self.shared, self.charged, self.certain) = (0, 0, 0);
    }

    pub(super) fn certain(&self) -> u64 {
        self.certain
    }

    /// What lies before `committed` is committed or mapped, beyond doubt.
    pub(super) fn settle(&mut self, committed: u64) {
        (self.charged, self.certain) = (committed, committed);
    }

    /// A commit up to `bytes` broke off: they may be there.
    pub(super) fn doubt_growth(&mut self, bytes: u64) {
        self.charged = self.charged.max(bytes);
    }

    /// A decommit down to `bytes`, at least what is shared, failed: the rest may be gone.
    pub(super) fn doubt_shrink(&mut self, bytes: u64) {
        self.certain = self.certain.min(bytes);
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.certain < self.charged
    }
}
