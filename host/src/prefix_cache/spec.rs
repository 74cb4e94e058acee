//! What a prefix cache is to be.

/// What a prefix cache is to be.
#[derive(Clone, Copy, Debug)]
pub struct PrefixCacheSpec {
    pub(super) planes: usize,
    pub(super) block_bytes: u64,
    pub(super) priority: i32,
}

impl PrefixCacheSpec {
    /// A cache of blocks that take `block_bytes` bytes of each of `planes` planes: whole granules, since a granule is
    /// shared as a whole or not at all ([`CacheGeometry::shareability`](crate::CacheGeometry::shareability) says how many
    /// tokens that are).
    #[must_use]
    pub fn new(planes: usize, block_bytes: u64) -> Self {
        Self { planes, block_bytes, priority: 0 }
    }

    /// The same, asked for room in that order: the higher, the earlier.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}
