//! Finds shared prefixes by the blocks of tokens that they hold, and gives cold ones back when memory runs short.
//!
//! ```text
//!   tokens ─► BlockHash::chain ─► find ─► FoundPrefix ─► BufferSet::map_prefixes      what is there already
//!                                  │
//!                                  └─ the rest: Host::prefix ─► write ─► seal ─► insert      what is new
//!
//!   pressure ─► evict: the least recently used that nobody holds ─► release ─► trim ─► bytes really given back
//! ```
//!
//! * `hash`: a block's identity, which holds everything before it.
//! * `index`: which blocks are where and who was used last. Pure.
//! * `cache`: the index under a lock, its prefixes, and their eviction. No lock is held while a backing is called.
//! * `spec`, `snapshot`: what a cache is to be, and what it did.
//!
//! A prefix is in use while anybody but the cache holds it: a clone, a part, a buffer that maps it. Such a one is never
//! evicted, and an evicted one is never found again. Any thread may call.

mod cache;
mod hash;
mod index;
mod snapshot;
mod spec;

pub use cache::{FoundPrefix, PrefixCache};
pub use hash::BlockHash;
pub use snapshot::{Eviction, PrefixCacheSnapshot};
pub use spec::PrefixCacheSpec;
