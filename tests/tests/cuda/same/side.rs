//! One of the two backings that are compared: does what an operation says, and tells all that can be seen.

use super::seen::{AllocationSeen, PrefixSeen, Seen, SetSeen};
use leasehold::{
    Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Change, Domain, Error, ErrorKind, Eviction,
    HolderId, Host, HostBuilder, Prefix, PrefixCache, PrefixCacheSpec, PrefixPart, PrefixSpec, SharedPrefix,
};
use leasehold_host_mmap::HostMmap;
use leasehold_host_pool::HostPool;
use leasehold_plugin_api::{BackingError, BackingFactory, HostServices, Options};
use leasehold_tests::blocks::{self, chain};
use leasehold_tests::fault::creator;
use leasehold_tests::model::{CACHE_PLANES, CAPACITY, LIMIT, Operation, PAGE, Piece, Rest, SLOTS};

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).expect("is small")
}

pub(super) fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("is small")
}

/// What an operation answered.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Whether it was done, or of which kind its failure was.
    Done(Result<(), ErrorKind>),
    Mapped {
        cost: Result<Change, ErrorKind>,
        outcome: Result<(), ErrorKind>,
    },
    Served {
        known: usize,
        mapped: Result<(), ErrorKind>,
        added: Result<usize, ErrorKind>,
    },
    Eviction(Eviction),
    Trimmed(Result<u64, ErrorKind>),
    Reaped(usize),
}

/// A prefix, sealed or not.
pub(super) enum Handle {
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

/// Adds a backing that is linked in, with the claim of its type.
fn linked_in(builder: HostBuilder, name: &'static str, options: Options) -> HostBuilder {
    match name {
        HostMmap::NAME => builder.with_accessible_backing(name, HostMmap::HOST_ACCESS, made_of(options)),
        HostPool::NAME => builder.with_accessible_backing(name, HostPool::HOST_ACCESS, made_of(options)),
        _ => builder.with_backing(name, creator(name, options)),
    }
}

fn made_of<B: BackingFactory>(options: Options) -> impl FnOnce(HostServices) -> Result<B, BackingError> {
    move |services| B::create(options.read()?, services)
}

impl Side {
    pub(super) fn new(domain: Domain, name: &'static str, options: Options, holder: fn(usize) -> HolderId) -> Self {
        let host = linked_in(Host::builder().limit(domain, LIMIT), name, options).load().expect("needs nothing");
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
        Answer::Mapped { cost: kind(set.mapping_cost(&parts)), outcome: kind(set.map_prefixes(&parts)) }
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
        Answer::Served { known, mapped: kind(mapped), added: kind(added) }
    }

    pub(super) fn seen(&self) -> Seen {
        let books = self.host.snapshot().domain(self.domain).expect("the domain has books").clone();
        Seen {
            used: books.used_bytes,
            peak: books.peak_bytes,
            sets: self.sets.each_ref().map(|set| set.as_ref().map(SetSeen::of)),
            allocations: self.allocations.each_ref().map(|made| made.as_ref().map(AllocationSeen::of)),
            prefixes: self.prefixes.each_ref().map(|prefix| prefix.as_ref().map(PrefixSeen::of)),
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
