//! Blocks of tokens for the suites of sharing: what a block holds is a function of its identity, so that whoever sees it can
//! tell whether it is the right one.

use crate::contents::{Contents, ContentsMut};
use crate::is_all;
use leasehold::{BackingHandle, BlockHash, Error, HolderId, Host, Prefix, PrefixSpec};

/// The chain of these blocks.
#[must_use]
pub fn chain(blocks: &[u8]) -> Vec<BlockHash> {
    BlockHash::root(b"tests").chain(blocks.iter().map(|block| [*block]))
}

/// The value of every byte of a block in one plane: it depends on the block and on all before it. Never less than
/// [`LEAST`].
#[must_use]
pub fn content(hash: BlockHash, plane: usize) -> u8 {
    let plane = u8::try_from(plane % 7).expect("is small");
    LEAST + (hash.to_bytes()[0] % 7 + plane) % 14
}

/// No block has a byte less than this.
pub const LEAST: u8 = 241;

/// A prefix that holds blocks of `block_bytes` bytes in each of `planes` planes. It belongs to nobody, and so must read as
/// zero before it is written.
///
/// # Errors
///
/// What making and writing it answers.
///
/// # Panics
///
/// When it shows bytes that somebody left.
pub fn write(
    host: &Host,
    backing: &BackingHandle,
    planes: usize,
    block_bytes: u64,
    blocks: &[BlockHash],
) -> Result<Prefix, Error> {
    let bytes = block_bytes * u64::try_from(blocks.len()).expect("fits");
    let spec = PrefixSpec::new(bytes).planes(planes).holder(HolderId::NOBODY);
    let mut prefix = host.prefix(backing, &spec)?;
    for plane in 0..planes {
        assert!(is_all(&prefix.seen(plane), 0), "a new prefix shows what somebody left");
        for (begin, hash) in (0..).step_by(usize::try_from(block_bytes).expect("fits")).zip(blocks) {
            prefix.paint_part(plane, begin, block_bytes, content(*hash, plane));
        }
    }
    Ok(prefix)
}

/// Whether the bytes of a plane are these blocks, one behind the other.
#[must_use]
pub fn shows(bytes: &[u8], plane: usize, block_bytes: u64, blocks: &[BlockHash]) -> bool {
    let mut seen = bytes.chunks_exact(usize::try_from(block_bytes).expect("fits"));
    blocks.iter().all(|hash| seen.next().is_some_and(|bytes| is_all(bytes, content(*hash, plane))))
}
