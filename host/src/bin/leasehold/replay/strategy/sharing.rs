//! Caches that grow in place, and whose prompts share what they have in common.
//!
//! The whole blocks of a prompt are prefixes: those that are known are mapped, the others are made, filled once, sealed
//! and mapped in the same way, so that the next prompt finds them. What is left of the prompt, and the output, is private
//! and grows behind them. Prefixes that no running request maps stay until the budget runs short.

use super::super::layout::BLOCK_TOKENS;
use super::super::prefix::PrefixUse;
use super::super::store::{CacheStore, StoreError};
use super::super::trace::Request;
use super::plane::Touch;
use super::rows::Rows;
use super::setting::Setting;
use leasehold::{
    Address, BlockHash, BufferSet, BufferSpec, Error, FoundPrefix, GrowthPolicy, PrefixCache, PrefixCacheSpec,
    PrefixPart, PrefixSpec, SharedPrefix,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The most units of one prefix. Longer ones take fewer map operations; shorter ones are given back one by one.
const MOST_UNITS: usize = 16;

/// A store of caches that share.
#[derive(Debug)]
pub(crate) struct SharingStore<'run> {
    setting: Setting<'run>,
    growth: GrowthPolicy,
    known: PrefixCache,
    /// The least that is shared: whole blocks of the trace in whole granules.
    unit: Unit,
    prefix_use: PrefixUse,
    /// What all caches see at their addresses.
    mapped_bytes: u64,
    /// What each request found when it came first: what it finds later may be its own.
    hit_units: HashMap<u64, usize>,
    /// The lines whose hits are counted: a request that comes back after a preemption finds its own blocks.
    counted: HashSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    blocks: usize,
    tokens: u64,
    plane_bytes: u64,
}

/// One cache, with where its planes began.
#[derive(Debug)]
pub(crate) struct SharingCache {
    planes: BufferSet,
    bases: Vec<Option<Address>>,
    /// Whose prompt it has mapped.
    line: Option<u64>,
    shared_tokens: u64,
    /// The ids of the prompt's blocks, which their rows depend on.
    hash_ids: Vec<u64>,
}

impl<'run> SharingStore<'run> {
    /// # Errors
    /// When the backing can't share.
    pub(crate) fn new(setting: Setting<'run>, growth: GrowthPolicy, unit_tokens: u64) -> Result<Self, Error> {
        let unit = Unit::new(&setting, unit_tokens);
        let spec = PrefixCacheSpec::new(setting.planes, unit.plane_bytes);
        let known = setting.host.prefix_cache(&setting.backing, &spec)?;
        let (prefix_use, hit_units, counted) = (PrefixUse::default(), HashMap::new(), HashSet::new());
        Ok(Self { setting, growth, known, unit, prefix_use, mapped_bytes: 0, hit_units, counted })
    }

    /// The identities of the units that a prompt fills.
    fn chain(&self, request: &Request) -> Vec<BlockHash> {
        let filled = usize::try_from(request.prompt_tokens / BLOCK_TOKENS).unwrap_or(usize::MAX);
        let ids = request.hash_ids.get(..filled).unwrap_or(&request.hash_ids);
        let bytes_of = |unit: &[u64]| unit.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
        BlockHash::root(b"replay").chain(ids.chunks_exact(self.unit.blocks).map(bytes_of))
    }

    /// Makes the prefixes that are not known yet, each for the units of a part of the chain.
    fn make(&self, chain: &[BlockHash], known: usize, ids: &[u64]) -> Result<Vec<PrefixPart>, StoreError> {
        let firsts = (known..chain.len()).step_by(MOST_UNITS);
        let made = firsts.map(|first| {
            let end = chain.len().min(first.saturating_add(MOST_UNITS));
            let prefix = self.fill_prefix(first..end, ids)?;
            self.known.insert(chain.get(..end).unwrap_or(chain), first, prefix.clone())?;
            Ok(prefix.whole())
        });
        made.collect()
    }

    /// A sealed prefix with some units of a prompt.
    fn fill_prefix(&self, units: Range<usize>, ids: &[u64]) -> Result<SharedPrefix, StoreError> {
        let count = |units: usize| u64::try_from(units).unwrap_or(u64::MAX);
        let bytes = self.unit.plane_bytes.saturating_mul(count(units.len()));
        let Setting { host, backing, planes, row_bytes, touch, .. } = &self.setting;
        let mut prefix = host.prefix(backing, &PrefixSpec::new(bytes).planes(*planes))?;
        let tokens = |units: usize| self.unit.tokens.saturating_mul(count(units));
        let (first, end) = (tokens(units.start), tokens(units.end));
        for plane in 0..*planes {
            let rows = Rows { row_bytes: *row_bytes, plane, first, ids };
            touch.write((&mut prefix, plane), rows, first..end)?;
        }
        Ok(prefix.seal().map_err(Error::from)?)
    }

    /// What is found, and what is made for the rest. Whoever holds a part of a prefix pins all of it: where the rest does
    /// not fit beside that, all is made anew.
    fn complete(
        &self,
        mut found: FoundPrefix,
        chain: &[BlockHash],
        ids: &[u64],
    ) -> Result<Vec<PrefixPart>, StoreError> {
        match self.make(chain, found.blocks, ids) {
            Ok(made) => {
                found.parts.extend(made);
                Ok(found.parts)
            }
            Err(StoreError::Exhausted(_)) if found.blocks > 0 => {
                drop(found);
                self.make(chain, 0, ids)
            }
            Err(error) => Err(error),
        }
    }

    fn share(&mut self, cache: &mut SharingCache, request: &Request) -> Result<(), StoreError> {
        let chain = self.chain(request);
        let found = self.known.find(&chain);
        let hit_units = *self.hit_units.entry(request.line).or_insert(found.blocks);
        let parts = self.complete(found, &chain, &request.hash_ids)?;
        if cache.line.is_some() {
            cache.planes.clear()?;
            (cache.line, cache.shared_tokens) = (None, 0);
        }
        cache.planes.map_prefixes(&parts)?;
        let units = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        cache.line = Some(request.line);
        cache.shared_tokens = self.unit.tokens.saturating_mul(units(chain.len()));
        cache.hash_ids.clone_from(&request.hash_ids);
        if self.counted.insert(request.line) {
            self.note_hits(units(hit_units));
        }
        Ok(())
    }

    /// A cache had `before` bytes of each plane, and has `now`.
    fn note_mapped(&mut self, before: u64, now: u64) {
        let planes = u64::try_from(self.setting.planes).unwrap_or(u64::MAX);
        let (gone, come) = (before.saturating_mul(planes), now.saturating_mul(planes));
        self.mapped_bytes = self.mapped_bytes.saturating_sub(gone).saturating_add(come);
    }

    fn note_hits(&mut self, units: u64) {
        let planes = u64::try_from(self.setting.planes).unwrap_or(u64::MAX);
        let bytes = self.unit.plane_bytes.saturating_mul(planes).saturating_mul(units);
        let PrefixUse { hit_tokens, bytes_not_stored_twice } = &mut self.prefix_use;
        *hit_tokens = hit_tokens.saturating_add(self.unit.tokens.saturating_mul(units));
        *bytes_not_stored_twice = bytes_not_stored_twice.saturating_add(bytes);
    }
}

impl Unit {
    /// As many blocks as are whole units of `unit_tokens` tokens.
    fn new(setting: &Setting<'_>, unit_tokens: u64) -> Self {
        let whole = |blocks: &u64| blocks.saturating_mul(BLOCK_TOKENS).is_multiple_of(unit_tokens);
        let blocks = (1..=unit_tokens).find(whole).unwrap_or(1); // unit_tokens blocks are
        let tokens = blocks.saturating_mul(BLOCK_TOKENS);
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        Self { blocks, tokens, plane_bytes: setting.plane_bytes(tokens) }
    }
}

impl CacheStore for SharingStore<'_> {
    type Cache = SharingCache;

    fn fits(&self, tokens: u64) -> Result<(), String> {
        self.setting.fits(tokens, self.setting.plane_bytes(tokens))
    }

    fn open(&mut self) -> Result<SharingCache, StoreError> {
        let Setting { host, backing, planes, context, .. } = &self.setting;
        let spec = BufferSpec::new(self.setting.plane_bytes(*context)).growth(self.growth);
        let planes = host.buffer_set(backing, *planes, &spec)?;
        let bases = bases_of(&planes);
        Ok(SharingCache { planes, bases, line: None, shared_tokens: 0, hash_ids: Vec::new() })
    }

    fn begin(&mut self, cache: &mut SharingCache, request: &Request) -> Result<(), StoreError> {
        if cache.line == Some(request.line) {
            return Ok(());
        }
        let before = cache.planes.committed();
        let shared = self.share(cache, request);
        self.note_mapped(before, cache.planes.committed());
        shared
    }

    fn grow(&mut self, cache: &mut SharingCache, tokens: u64) -> Result<(), StoreError> {
        let before = cache.planes.committed();
        let grown = cache.planes.grow_to(self.setting.plane_bytes(tokens));
        if cache.planes.committed() != before {
            self.note_mapped(before, cache.planes.committed());
        }
        Ok(grown?)
    }

    fn fill(&mut self, cache: &mut SharingCache, from: u64, to: u64) -> Result<(), StoreError> {
        if self.setting.touch == Touch::Nothing {
            return Ok(());
        }
        let first = cache.shared_tokens;
        for plane in 0..cache.planes.planes() {
            let rows = Rows { row_bytes: self.setting.row_bytes, plane, first, ids: &cache.hash_ids };
            self.setting.touch.write((&mut cache.planes, plane), rows, from.max(first)..to)?;
        }
        Ok(())
    }

    fn close(&mut self, cache: SharingCache, tokens: u64) -> Result<(), StoreError> {
        if bases_of(&cache.planes) != cache.bases {
            return Err(StoreError::Broken("a plane moved".to_owned()));
        }
        for plane in 0..cache.planes.planes() {
            let rows = Rows { row_bytes: self.setting.row_bytes, plane, first: 0, ids: &cache.hash_ids };
            self.setting.touch.check((&cache.planes, plane), rows, tokens)?;
        }
        self.note_mapped(cache.planes.committed(), 0);
        cache.planes.close().map_err(|error| StoreError::Broken(error.to_string()))
    }

    fn owned_bytes(&self) -> u64 {
        self.setting.owned_bytes()
    }

    fn peak_owned_bytes(&self) -> u64 {
        self.setting.peak_owned_bytes()
    }

    fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    fn prefix_use(&self) -> PrefixUse {
        self.prefix_use
    }
}

fn bases_of(planes: &BufferSet) -> Vec<Option<Address>> {
    (0..planes.planes()).map(|plane| planes.base(plane)).collect()
}
