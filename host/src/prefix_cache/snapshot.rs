//! What a cache holds, and what it did.

/// What a round of eviction gave back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Prefixes that are gone.
    pub prefixes: usize,
    /// Blocks that are found no longer.
    pub blocks: usize,
    /// Physical bytes that were really given back to the budget meanwhile. Less than the prefixes held where something
    /// else keeps their memory.
    pub owned_bytes: u64,
}

/// What a cache holds, and what it did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefixCacheSnapshot {
    /// Prefixes in it.
    pub prefixes: usize,
    /// Those of them that somebody else holds too.
    pub prefixes_in_use: usize,
    /// Blocks that can be found.
    pub blocks: usize,
    /// Bytes of the prefixes in it, each owned once.
    pub owned_bytes: u64,
    /// Blocks that were asked for.
    pub blocks_asked: u64,
    /// Blocks of those that were found.
    pub blocks_found: u64,
    /// All that was evicted.
    pub evicted: Eviction,
}

impl Eviction {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            prefixes: self.prefixes.saturating_add(other.prefixes),
            blocks: self.blocks.saturating_add(other.blocks),
            owned_bytes: self.owned_bytes.saturating_add(other.owned_bytes),
        }
    }
}
