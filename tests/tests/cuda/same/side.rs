//! One of the two backings that are compared: does what an operation says, and tells all that can be seen.

use leasehold::{
    Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Change, Domain, Error, ErrorKind, Eviction,
    HolderId, Host, Prefix, PrefixCache, PrefixCacheSnapshot, PrefixCacheSpec, PrefixPart, PrefixSpec, SharedPrefix,
};
use leasehold_plugin_api::Options;
use leasehold_tests::blocks::{self, chain};
use leasehold_tests::fault::creator;
use leasehold_tests::model::{CACHE_PLANES, CAPACITY, LIMIT, Operation, PAGE, Piece, Rest, SLOTS};

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).expect("is small")
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("is small")
}

/// What an operation answered.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Whether it was done, or of which kind its failure was.
    Done(Result<(), ErrorKind>),
    Cost(Result<Change, ErrorKind>, Result<(), ErrorKind>),
    /// Blocks that were known, whether they were mapped, how many were added.
    Served(usize, Result<(), ErrorKind>, Result<usize, ErrorKind>),
    Eviction(Eviction),
    Trimmed(Result<u64, ErrorKind>),
    Reaped(usize),
}

/// What can be seen of one set: length, committed, shared, owned, mapped, and the bytes of each plane.
type SetSeen = (u64, u64, u64, u64, u64, Vec<Vec<u8>>);
/// What can be seen of one prefix: owned, newly owned while it is not sealed, how many hold it, and the bytes of each plane.
type PrefixSeen = (u64, Option<u64>, usize, Vec<Vec<u8>>);

/// All that can be seen.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    used: u64,
    peak: u64,
    sets: [Option<SetSeen>; SLOTS],
    allocations: [Option<(u64, Vec<u8>)>; SLOTS],
    prefixes: [Option<PrefixSeen>; SLOTS],
    cache: Option<PrefixCacheSnapshot>,
}

enum Handle {
    Writable(Prefix),
    Sealed(SharedPrefix),
}

/// One of the two backings, with what is made on it.
pub(super) struct Side {
    host: Host,
    backing: BackingHandle,
    domain: Domain,
    holder: fn(usize) -> HolderId,
    sets: [Option<BufferSet>; SLOTS],
    allocations: [Option<Allocation>; SLOTS],
    prefixes: [Option<Handle>; SLOTS],
    cache: Option<PrefixCache>,
}

fn kind<T>(outcome: Result<T, Error>) -> Result<T, ErrorKind> {
    outcome.map_err(|error| error.kind())
}

fn read(bytes: u64, read: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Vec<u8> {
    let mut seen = vec![0xee; length(bytes)];
    read(&mut seen).expect("what is there can be read");
    seen
}

impl Side {
    pub(super) fn new(domain: Domain, name: &'static str, options: Options, holder: fn(usize) -> HolderId) -> Self {
        let builder = Host::builder().limit(domain, LIMIT).with_backing(name, creator(name, options));
        let host = builder.load().expect("needs nothing");
        let backing = host.backing(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(backing.capabilities().granularity(), Some(PAGE), "{name}");
        let spec = PrefixCacheSpec::new(CACHE_PLANES, PAGE);
        let cache =
            backing.capabilities().has_shared_mapping().then(|| host.prefix_cache(&backing, &spec).expect("it shares"));
        let (sets, allocations, prefixes) = Default::default();
        Self { host, backing, domain, holder, sets, allocations, prefixes, cache }
    }

    pub(super) fn apply(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::New { slot, planes, policy } => {
                self.sets[*slot] = None;
                let spec = BufferSpec::new(CAPACITY).growth(*policy).holder((self.holder)(*slot));
                let made = kind(self.host.buffer_set(&self.backing, *planes, &spec));
                Answer::Done(made.map(|set| self.sets[*slot] = Some(set)))
            }
            Operation::Grow { slot, len } => self.on_set(*slot, |set| set.grow_to(*len)),
            Operation::Shrink { slot, len } => self.on_set(*slot, |set| set.shrink_to(*len)),
            Operation::Write { slot, plane, at, mark } => self.on_set(*slot, |set| write(set, *plane, *at, *mark)),
            Operation::Clear { slot } => self.on_set(*slot, BufferSet::clear),
            Operation::Drop { slot } => {
                self.sets[*slot] = None;
                Answer::Done(Ok(()))
            }
            Operation::Close { slot } => Answer::Done(kind(self.sets[*slot].take().map_or(Ok(()), BufferSet::close))),
            Operation::Allocate { slot, bytes } => Answer::Done(kind(self.allocate(*slot, *bytes))),
            Operation::Release { slot } => {
                Answer::Done(kind(self.allocations[*slot].take().map_or(Ok(()), Allocation::close)))
            }
            Operation::Reap => Answer::Reaped(self.host.reap().remaining),
            Operation::SetLimit { bytes } => Answer::Done(kind(self.host.governor().set_limit(self.domain, *bytes))),
            Operation::Fail { .. } | Operation::Heal => Answer::Done(Ok(())),
            sharing => self.share(sharing),
        }
    }

    fn on_set(&mut self, slot: usize, act: impl FnOnce(&mut BufferSet) -> Result<(), Error>) -> Answer {
        Answer::Done(kind(self.sets[slot].as_mut().map_or(Ok(()), act)))
    }

    fn allocate(&mut self, slot: usize, bytes: u64) -> Result<(), Error> {
        self.allocations[slot] = None;
        let spec = AllocationSpec::new(bytes).holder((self.holder)(slot));
        let mut made = self.host.allocate(&self.backing, &spec)?;
        made.fill(bytes / 2, bytes / 4, 0xa5)?;
        made.write(bytes - 1, &[0x5a])?;
        self.allocations[slot] = Some(made);
        Ok(())
    }

    /// What is done with prefixes and the cache.
    fn share(&mut self, operation: &Operation) -> Answer {
        let Some(cache) = self.cache.clone() else { return Answer::Done(Ok(())) };
        match operation {
            Operation::CreatePrefix { slot, planes, granules } => {
                let spec = PrefixSpec::new(granules * PAGE).planes(*planes).holder((self.holder)(*slot));
                let made = kind(self.host.prefix(&self.backing, &spec));
                Answer::Done(made.map(|prefix| self.prefixes[*slot] = Some(Handle::Writable(prefix))))
            }
            Operation::WritePrefix { slot, plane, at, mark } => match &mut self.prefixes[*slot] {
                Some(Handle::Writable(prefix)) => Answer::Done(kind(prefix.write(*plane, *at, &[*mark; 100]))),
                _ => Answer::Done(Ok(())),
            },
            Operation::Seal { slot } => Answer::Done(self.seal(*slot)),
            Operation::Share { from, to } => {
                if let Some(Handle::Sealed(prefix)) = &self.prefixes[*from] {
                    self.prefixes[*to] = Some(Handle::Sealed(prefix.clone()));
                }
                Answer::Done(Ok(()))
            }
            Operation::Map { slot, parts } => self.map_pieces(*slot, parts),
            Operation::DropPrefix { slot } => {
                self.prefixes[*slot] = None;
                Answer::Done(Ok(()))
            }
            Operation::ClosePrefix { slot } => Answer::Done(kind(match self.prefixes[*slot].take() {
                None => Ok(()),
                Some(Handle::Writable(prefix)) => prefix.close(),
                Some(Handle::Sealed(prefix)) => prefix.close(),
            })),
            Operation::Serve { slot, blocks, rest } => self.serve(&cache, *slot, blocks, *rest),
            Operation::Evict { bytes } => Answer::Eviction(cache.evict(*bytes)),
            Operation::Trim { bytes } => Answer::Trimmed(kind(self.host.trim(&self.backing, *bytes))),
            other => panic!("{other:?} shares nothing"),
        }
    }

    fn seal(&mut self, slot: usize) -> Result<(), ErrorKind> {
        match self.prefixes[slot].take() {
            Some(Handle::Writable(prefix)) => {
                let sealed = prefix.seal().map_err(|unsealed| unsealed.error.kind())?;
                self.prefixes[slot] = Some(Handle::Sealed(sealed));
            }
            other => self.prefixes[slot] = other,
        }
        Ok(())
    }

    fn map_pieces(&mut self, slot: usize, pieces: &[Piece]) -> Answer {
        let parts: Option<Vec<_>> = pieces.iter().map(|piece| self.part(*piece)).collect();
        let (Some(parts), Some(set)) = (parts, &mut self.sets[slot]) else { return Answer::Done(Ok(())) };
        Answer::Cost(kind(set.mapping_cost(&parts)), kind(set.map_prefixes(&parts)))
    }

    fn part(&self, piece: Piece) -> Option<PrefixPart> {
        let Some(Handle::Sealed(prefix)) = &self.prefixes[piece.slot] else { return None };
        if piece.granules == 0 {
            return Some(prefix.whole());
        }
        let granules = prefix.plane_bytes() / PAGE;
        let first = number(piece.first) % granules;
        let count = 1 + number(piece.granules) % (granules - first);
        Some(prefix.part(first * PAGE, count * PAGE).expect("lies within"))
    }

    /// Maps what is known of a chain, and makes the rest known.
    fn serve(&mut self, cache: &PrefixCache, slot: usize, tokens: &[u8], rest: Rest) -> Answer {
        let chain = chain(tokens);
        let found = cache.find(&chain);
        let mapped = self.sets[slot].as_mut().map_or(Ok(()), |set| set.map_prefixes(&found.parts));
        let known = found.blocks;
        drop(found);
        let made = || {
            let spec = PrefixSpec::new(PAGE * number(chain.len() - known)).planes(CACHE_PLANES);
            let mut prefix = self.host.prefix(&self.backing, &spec)?;
            for (at, hash) in (0..).zip(&chain[known..]) {
                for plane in 0..CACHE_PLANES {
                    prefix.write(plane, at * PAGE, &vec![blocks::content(*hash, plane); length(PAGE)])?;
                }
            }
            cache.insert(&chain, known, prefix.seal()?)
        };
        let added = if known < chain.len() && matches!(rest, Rest::Made) { made() } else { Ok(0) };
        Answer::Served(known, kind(mapped), kind(added))
    }

    pub(super) fn seen(&self) -> Seen {
        let books = self.host.snapshot().domain(self.domain).expect("the domain has books").clone();
        Seen {
            used: books.used_bytes,
            peak: books.peak_bytes,
            sets: std::array::from_fn(|slot| self.sets[slot].as_ref().map(set_seen)),
            allocations: std::array::from_fn(|slot| {
                let allocation = self.allocations[slot].as_ref()?;
                Some((allocation.owned_bytes(), read(allocation.len(), |into| allocation.read(0, into))))
            }),
            prefixes: std::array::from_fn(|slot| self.prefixes[slot].as_ref().map(prefix_seen)),
            cache: self.cache.as_ref().map(PrefixCache::snapshot),
        }
    }
}

/// Writes some bytes by `write`, and some behind them by `fill`.
fn write(set: &mut BufferSet, plane: usize, at: u64, mark: u8) -> Result<(), Error> {
    let plane = plane % set.planes();
    set.write(plane, at, &[mark; 77])?;
    let rest = set.len().saturating_sub(at + 77).min(3000);
    set.fill(plane, at + 77, rest, mark.wrapping_add(1))
}

fn set_seen(set: &BufferSet) -> SetSeen {
    let planes = (0..set.planes()).map(|plane| read(set.len(), |into| set.read(plane, 0, into)));
    (set.len(), set.committed(), set.shared(), set.owned_bytes(), set.mapped_bytes(), planes.collect())
}

fn prefix_seen(handle: &Handle) -> PrefixSeen {
    match handle {
        Handle::Writable(prefix) => {
            let plane = |plane| read(prefix.plane_bytes(), |into| prefix.read(plane, 0, into));
            let bytes = (0..prefix.planes()).map(plane).collect();
            (prefix.owned_bytes(), Some(prefix.newly_owned_bytes()), 1, bytes)
        }
        Handle::Sealed(prefix) => {
            let plane = |plane| read(prefix.plane_bytes(), |into| prefix.read(plane, 0, into));
            (prefix.owned_bytes(), None, prefix.holders(), (0..prefix.planes()).map(plane).collect())
        }
    }
}
