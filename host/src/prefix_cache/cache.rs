//! The index under a lock, the prefixes that it leads to, and their eviction.

use super::hash::BlockHash;
use super::index::{Found, Index, Payload};
use super::snapshot::{Eviction, PrefixCacheSnapshot};
use super::spec::PrefixCacheSpec;
use crate::admission;
use crate::backing::CheckedBacking;
use crate::error::{BufferError, Error, Operation, PrefixError};
use crate::governor::{Governor, Reclaim, ReclaimOrder, Registration, Shortfall};
use crate::prefix::{PrefixPart, SharedPrefix};
use leasehold_plugin_api::Accounting;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared prefixes, found by the blocks of tokens that they hold. Clones share it. When the budget of its domain runs
/// short it gives back what nobody uses, the least recently used first.
#[derive(Clone, Debug)]
pub struct PrefixCache {
    shelf: Arc<Shelf>,
    /// Ends with the last clone.
    _registration: Arc<Registration>,
}

/// The longest known beginning of a chain. It holds its prefixes, so that nobody evicts them.
#[derive(Clone, Debug, Default)]
pub struct FoundPrefix {
    /// What to map, in this order; see [`BufferSet::map_prefixes`](crate::BufferSet::map_prefixes).
    pub parts: Vec<PrefixPart>,
    /// The blocks of the chain that they hold.
    pub blocks: usize,
}

/// What the clones of a cache share.
#[derive(Debug)]
struct Shelf {
    spec: PrefixCacheSpec,
    backing: Arc<CheckedBacking>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    index: Index<SharedPrefix>,
    blocks_asked: u64,
    blocks_found: u64,
    evicted: Eviction,
}

impl PrefixCache {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &Governor,
        spec: &PrefixCacheSpec,
    ) -> Result<Self, Error> {
        admission::check_books(backing, governor.core())?;
        admission::require_shared_mapping(backing)?;
        check(backing, spec)?;
        let spec = *spec;
        let state = State { index: Index::new(), blocks_asked: 0, blocks_found: 0, evicted: Eviction::default() };
        let shelf = Arc::new(Shelf { spec, backing: Arc::clone(backing), state: Mutex::new(state) });
        let order = ReclaimOrder::new().priority(spec.priority);
        let reclaimer: Arc<dyn Reclaim> = Arc::<Shelf>::clone(&shelf);
        let registration = governor.on_pressure(backing.books().domain(), order, reclaimer)?;
        Ok(Self { shelf, _registration: Arc::new(registration) })
    }

    /// The longest beginning of the chain that is known. It counts as used from now on. In a forked child none is.
    #[must_use]
    pub fn find(&self, chain: &[BlockHash]) -> FoundPrefix {
        let Some(mut state) = self.shelf.lock() else { return FoundPrefix::default() };
        let runs = state.index.find(chain);
        let mut found = FoundPrefix::default();
        for run in &runs {
            // A run lies within its prefix, in whole blocks: that was checked when it came.
            let Ok(part) = self.shelf.part(run) else { break };
            found.parts.push(part);
            found.blocks = found.blocks.saturating_add(run.blocks);
        }
        state.blocks_asked = state.blocks_asked.saturating_add(count(chain.len()));
        state.blocks_found = state.blocks_found.saturating_add(count(found.blocks));
        found
    }

    /// Adds a prefix that holds the blocks of the chain from the one numbered `first` on. Blocks that are known already,
    /// since somebody else was faster, stay where they are; where all of them are, or the blocks before `first` are known no
    /// longer, the cache does not keep the prefix. Answers how many are new. A prefix that is in the cache already is from
    /// now on found by this chain alone.
    ///
    /// # Errors
    ///
    /// [`ForeignPrefix`](crate::ErrorKind::ForeignPrefix) when another backing made it,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it has not as many planes or bytes as the blocks need,
    /// [`OutOfService`](crate::ErrorKind::OutOfService) in a forked child.
    pub fn insert(&self, chain: &[BlockHash], first: usize, prefix: SharedPrefix) -> Result<usize, Error> {
        let blocks = chain.len().saturating_sub(first);
        self.shelf.check_prefix(&prefix, blocks)?;
        self.shelf.backing.check_process(Operation::MapPrefix)?;
        let inserted = self.shelf.lock().map(|mut state| state.index.insert(chain, first, prefix));
        // What is not kept is dropped here, with no lock held: it may go back to the backing.
        Ok(inserted.and_then(Result::ok).unwrap_or(0))
    }

    /// Gives prefixes back that nobody else holds, the least recently used first, until `bytes` bytes were really given
    /// back to the budget, or none is left to give. A forked child gives none.
    pub fn evict(&self, bytes: u64) -> Eviction {
        self.shelf.evict(bytes)
    }

    /// What it holds, and what it did; nothing in a forked child.
    #[must_use]
    pub fn snapshot(&self) -> PrefixCacheSnapshot {
        let Some(state) = self.shelf.lock() else { return PrefixCacheSnapshot::default() };
        let prefixes = state.index.payloads();
        let mut snapshot = PrefixCacheSnapshot {
            prefixes: prefixes.len(),
            prefixes_in_use: 0,
            blocks: state.index.blocks(),
            owned_bytes: 0,
            blocks_asked: state.blocks_asked,
            blocks_found: state.blocks_found,
            evicted: state.evicted,
        };
        for prefix in prefixes {
            snapshot.owned_bytes = snapshot.owned_bytes.saturating_add(prefix.owned_bytes());
            snapshot.prefixes_in_use = snapshot.prefixes_in_use.saturating_add(usize::from(!is_cold(prefix)));
        }
        snapshot
    }
}

impl Shelf {
    fn part(&self, run: &Found<SharedPrefix>) -> Result<PrefixPart, Error> {
        let bytes = |blocks: usize| self.spec.block_bytes.saturating_mul(count(blocks));
        run.payload.part(bytes(run.first), bytes(run.blocks))
    }

    fn check_prefix(&self, prefix: &SharedPrefix, blocks: usize) -> Result<(), PrefixError> {
        prefix.check_made_by(&self.backing)?;
        let wanted = self.spec.block_bytes.saturating_mul(count(blocks));
        if prefix.planes() == self.spec.planes && prefix.plane_bytes() == wanted {
            return Ok(());
        }
        Err(PrefixError::NotTheBlocks {
            backing: Arc::clone(self.backing.name()),
            planes: prefix.planes(),
            plane_bytes: prefix.plane_bytes(),
            blocks,
            wanted_planes: self.spec.planes,
            wanted,
        })
    }

    /// Round by round, since a prefix may give back less than it holds: its memory may be kept by others.
    fn evict(&self, bytes: u64) -> Eviction {
        let mut evicted = Eviction::default();
        while evicted.owned_bytes < bytes {
            let victims = self.take_cold(bytes.saturating_sub(evicted.owned_bytes));
            if victims.is_empty() {
                break;
            }
            let (mut round, mut is_any_given) = (Eviction::default(), false);
            for (prefix, blocks) in victims {
                let GivenBack { owned_bytes, is_whole } = self.give_back(prefix);
                round = round.and(Eviction { prefixes: 1, blocks, owned_bytes });
                is_any_given |= is_whole || owned_bytes > 0;
            }
            evicted = evicted.and(round);
            if !is_any_given {
                break; // more of the same would empty the cache for nothing
            }
        }
        if let Some(mut state) = self.lock() {
            state.evicted = state.evicted.and(evicted);
        }
        evicted
    }

    /// Takes cold prefixes out that hold `bytes` bytes together, or all of them.
    fn take_cold(&self, bytes: u64) -> Vec<(SharedPrefix, usize)> {
        let mut left = bytes;
        let Some(mut state) = self.lock() else { return Vec::new() };
        state.index.take_cold(is_cold, |prefix| {
            left = left.saturating_sub(prefix.owned_bytes());
            left == 0
        })
    }

    /// Gives one prefix back. A backing may park its memory, which then is owned still: that is given up too, unless it
    /// served somebody by then.
    fn give_back(&self, prefix: SharedPrefix) -> GivenBack {
        let bytes = prefix.owned_bytes();
        // What could not be given back is in the quarantine, and in the log.
        let (remaining, refunded) = self.backing.measure_refunds(|| prefix.give_back());
        let released = match self.backing.accounting() {
            Accounting::Buffer => bytes.saturating_sub(remaining),
            Accounting::Backing { .. } => refunded,
        };
        let parked = bytes.saturating_sub(released);
        // Why it could not be given up is in the log; the books tell that it was not.
        let trimmed = if parked > 0 { self.backing.trim(parked).ok() } else { Some(0) };
        GivenBack {
            owned_bytes: released.saturating_add(trimmed.unwrap_or(0)),
            is_whole: remaining == 0 && trimmed.is_some(),
        }
    }

    /// The index; not in a forked child, where another thread of the parent may hold it for ever.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let is_here = self.backing.is_of_this_process();
        is_here.then(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What came of giving a prefix back.
struct GivenBack {
    /// What the books got back.
    owned_bytes: u64,
    /// Whether nothing failed: the rest is behind other things by then.
    is_whole: bool,
}

impl Reclaim for Shelf {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.evict(shortfall.bytes).owned_bytes
    }
}

impl Payload for SharedPrefix {
    fn identity(&self) -> u64 {
        self.id().get()
    }
}

/// Whether nobody but the cache holds it. Only the cache can then make it more, under its lock.
fn is_cold(prefix: &SharedPrefix) -> bool {
    prefix.holders() == 1
}

fn check(backing: &CheckedBacking, spec: &PrefixCacheSpec) -> Result<(), BufferError> {
    let PrefixCacheSpec { planes, block_bytes, .. } = *spec;
    let granule = backing.granule();
    let refuse = |why| BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "prefix cache", why };
    if planes == 0 || block_bytes == 0 {
        return Err(refuse(format!(
            "blocks of {planes} planes of {block_bytes} bytes hold nothing; ask for at least one of each"
        )));
    }
    if !block_bytes.is_multiple_of(granule) {
        return Err(refuse(format!(
            "blocks of {block_bytes} bytes a plane are no whole granules of {granule}, and a granule is shared as a whole \
             or not at all; take blocks of more tokens (see CacheGeometry::shareability), or a backing with a smaller granule"
        )));
    }
    Ok(())
}

/// Exact wherever a `usize` has at most 64 bits.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
