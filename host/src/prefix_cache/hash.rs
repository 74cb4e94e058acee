//! The identity of a block of tokens, and of everything before it.

use sha2::{Digest, Sha256};
use std::fmt;

/// The identity of one block of tokens after all blocks before it: two are equal where the whole way there is.
///
/// SHA-256 over the parent's identity and the block's own bytes, so that nobody can make a block that passes for another
/// one: no collision of it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash([u8; 32]);

impl BlockHash {
    /// Where chains begin: SHA-256 over `leasehold prefix chain` and the salt. Chains of different salts never meet: give
    /// tenants that must not share a salt each, and whatever else changes what a block's memory holds (the model, say).
    #[must_use]
    pub fn root(salt: &[u8]) -> Self {
        Self::digest(&[b"leasehold prefix chain", salt])
    }

    /// The block with these bytes after this one: the ids of its tokens in one encoding, as little-endian `u32` say.
    #[must_use]
    pub fn then(self, block: &[u8]) -> Self {
        Self::digest(&[&self.0, block])
    }

    /// The chain of blocks that goes on from here: one identity for each block.
    #[must_use]
    pub fn chain<B: AsRef<[u8]>>(self, blocks: impl IntoIterator<Item = B>) -> Vec<Self> {
        let step = |last: &mut Self, block: B| {
            *last = last.then(block.as_ref());
            Some(*last)
        };
        blocks.into_iter().scan(self, step).collect()
    }

    /// The identity with these bytes, for engines that make their own.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    fn digest(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(formatter, "BlockHash({:08x}…)", u32::from_be_bytes([a, b, c, d]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_the_whole_way_to_it() {
        let root = BlockHash::root(b"");
        let one = root.chain(["a", "b", "c"]);
        let other = root.chain(["a", "x", "c"]);
        assert_eq!(one[0], other[0]);
        assert!(one[1] != other[1] && one[2] != other[2], "the same block after another one");
        assert_eq!(one[2], root.then(b"a").then(b"b").then(b"c"));
    }

    #[test]
    fn chains_of_different_salts_never_meet() {
        let chain = |salt: &[u8]| BlockHash::root(salt).chain(["a"]);
        assert_ne!(chain(b"one tenant"), chain(b"another"));
    }

    #[test]
    fn the_identity_is_the_documented_digest() {
        let root = BlockHash::from_bytes([7; 32]);
        let whole = Sha256::digest([&[7_u8; 32][..], b"tokens"].concat());
        assert_eq!(root.then(b"tokens").to_bytes()[..], whole[..]);
    }
}
