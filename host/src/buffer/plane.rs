//! One region, what is charged for it, and what of it may be used.
//!
//! The two differ only while nobody can tell what a call left behind: a shrink that failed half-way, a commit that broke
//! off. Then the worst holds on both sides: all that may be there is charged, only what is there for certain is used.

use leasehold_plugin_api::Region;

/// One region with what is committed of it.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) region: Region,
    /// Invariant 1: the most that may be committed; this much is charged.
    charged: u64,
    /// Invariant 2: what is committed for certain; at most `charged`.
    certain: u64,
}

impl Plane {
    /// A plane of which nothing is committed.
    pub(super) fn new(region: Region) -> Self {
        Self { region, charged: 0, certain: 0 }
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
