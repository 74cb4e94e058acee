//! Plays operations, and compares the library with the model after each.
//!
//! A failure is one that the model knows a reason for, or comes from a call that failed as planned. Until the first fault is
//! planned the figures must agree exactly; afterwards what the backing holds decides.

mod buffers;
mod sharing;

use super::cache::CacheModel;
use super::memory::{Handle, Memory};
use super::operation::{Half, Operation};
use super::set::SetModel;
use super::{CACHE_PLANES, LIMIT, PAGE, SLOTS, bytes};
use crate::fault::{Call, Fault, Faults, Held, Strikes, Under};
use leasehold::{Allocation, BackingHandle, Domain, Error, ErrorKind, Eviction, Host, PrefixCache, PrefixCacheSpec};
use leasehold_plugin_api::{self as api, ReleaseTarget};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};

struct World {
    under: Under,
    faults: Faults,
    host: Host,
    backing: BackingHandle,
    sets: [Option<SetModel>; SLOTS],
    allocations: [Option<(Allocation, Vec<u8>)>; SLOTS],
    prefixes: [Option<Handle>; SLOTS],
    cache: Option<PrefixCache>,
    cached: CacheModel,
    /// What the cache has evicted in all, as far as the model knows.
    evicted: Eviction,
    /// Every prefix that was made.
    memories: Vec<Weak<Memory>>,
    /// Regions that could not be released, with the prefixes that are mapped there still.
    quarantine: Vec<(ReleaseTarget, Vec<Rc<Memory>>)>,
    /// Every mark that a holder ever wrote, and zero: memory that comes back to it may read as any of them.
    marks: [BTreeSet<u8>; SLOTS],
    limit: u64,
    /// How many calls had failed as planned before this operation.
    struck: u64,
    /// No fault was planned yet: then every refusal has a reason that the model knows.
    clean: bool,
    /// The backing could always tell what a failed shrink left.
    tells: bool,
    /// The backing took back all that it was given back.
    takes_back: bool,
}

/// Plays operations on a new host, and gives everything back in the end.
///
/// # Panics
///
/// When the library and the model disagree.
pub fn play(under: Under, operations: &[Operation]) {
    let mut world = World::new(under);
    for operation in operations {
        world.apply(operation);
        world.check();
    }
    world.end();
}

impl World {
    fn new(under: Under) -> Self {
        let faults = Faults::new();
        let host = under.host(&faults, LIMIT);
        let backing = host.backing("faulty").expect("is ready");
        let spec = PrefixCacheSpec::new(CACHE_PLANES, PAGE);
        let cache = under.shares().then(|| host.prefix_cache(&backing, &spec).expect("it shares"));
        Self {
            under,
            faults,
            host,
            backing,
            sets: Default::default(),
            allocations: Default::default(),
            prefixes: Default::default(),
            cache,
            cached: CacheModel::default(),
            evicted: Eviction::default(),
            memories: Vec::new(),
            quarantine: Vec::new(),
            marks: std::array::from_fn(|_| BTreeSet::from([0])),
            limit: LIMIT,
            struck: 0,
            clean: true,
            tells: true,
            takes_back: true,
        }
    }

    fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).expect("the host keeps books").used_bytes
    }

    fn apply(&mut self, operation: &Operation) {
        self.struck = self.faults.struck();
        match operation {
            Operation::New { slot, planes, policy } => self.make(*slot, *planes, *policy),
            Operation::Grow { slot, len } => self.grow(*slot, *len),
            Operation::Shrink { slot, len } => self.shrink(*slot, *len),
            Operation::Write { slot, plane, at, mark } => self.write(*slot, *plane, *at, *mark),
            Operation::Clear { slot } => self.clear(*slot),
            Operation::Drop { slot } => self.end_set(*slot, drop),
            Operation::Close { slot } => self.close(*slot),
            Operation::Allocate { slot, bytes } => self.allocate(*slot, *bytes),
            Operation::Release { slot } => {
                let outcome = self.allocations[*slot].take().map_or(Ok(()), |(allocation, _)| allocation.close());
                self.allow(outcome, &[ErrorKind::NotReleased]);
            }
            Operation::CreatePrefix { slot, planes, granules } => self.create_prefix(*slot, *planes, *granules),
            Operation::WritePrefix { slot, plane, at, mark } => self.write_prefix(*slot, *plane, *at, *mark),
            Operation::Seal { slot } => self.seal(*slot),
            Operation::Share { from, to } => self.share(*from, *to),
            Operation::Map { slot, parts } => self.map_pieces(*slot, parts),
            Operation::DropPrefix { slot } => drop(self.prefixes[*slot].take()),
            Operation::ClosePrefix { slot } => self.close_prefix(*slot),
            Operation::Serve { slot, blocks, rest } => self.serve(*slot, blocks, *rest),
            Operation::Evict { bytes } => self.evict(*bytes),
            Operation::Trim { bytes } => self.trim(*bytes),
            Operation::Fail { call, nth, strikes, half } => self.fail(*call, *nth, *strikes, *half),
            Operation::Heal => self.faults.heal(),
            Operation::Reap => {
                let before = self.used();
                let report = self.host.reap();
                assert!(self.used() <= before && (report.remaining == 0 || !self.clean));
            }
            Operation::SetLimit { bytes } => {
                self.host.governor().set_limit(Domain::Host, *bytes).expect("the host keeps books");
                self.limit = *bytes;
            }
        }
    }

    /// Takes an outcome; a failure is one that the operation may have, or comes from a call that failed as planned.
    fn allow(&self, outcome: Result<(), Error>, expected: &[ErrorKind]) -> bool {
        let Err(error) = outcome else { return true };
        let struck = self.faults.struck() > self.struck;
        let may_be = match error.kind() {
            ErrorKind::Backing => struck,
            ErrorKind::NotReleased => expected.contains(&error.kind()) && struck,
            kind => expected.contains(&kind),
        };
        assert!(may_be, "{error}");
        false
    }

    /// Takes a failure, as `allow` does.
    fn refused(&self, error: Error, expected: &[ErrorKind]) {
        self.allow(Err(error), expected);
    }

    /// A refusal because there is no room, while nothing fails: there would be none even if all that nobody needs were
    /// given up.
    fn check_exhausted(&self, error: &Error, needed: u64) {
        if error.kind() != ErrorKind::TierExhausted {
            return;
        }
        let needless = self.cached.cold_bytes();
        let needful = self.charged() - needless;
        assert!(!self.clean || needful + needed > self.limit, "{needful} + {needed} fit into {}", self.limit);
    }

    fn fail(&mut self, call: Call, nth: u64, strikes: Strikes, half: Half) {
        self.clean = false;
        self.tells &= call != Call::CommittedBytes;
        self.takes_back &= !matches!(call, Call::Release | Call::ReleasePrefix);
        let kind = api::ErrorKind::Internal;
        let fault = match half {
            Half::Nothing => Fault::Refuse(kind),
            Half::Half => Fault::HalfWay(kind),
        };
        self.faults.plan(call, nth, strikes, fault);
    }

    /// The prefixes that anybody holds.
    fn live_prefixes(&self) -> Vec<Rc<Memory>> {
        self.memories.iter().filter_map(Weak::upgrade).collect()
    }

    /// What is charged for what is in use, where the backing took back all that it was given back.
    fn charged(&self) -> u64 {
        let sets: u64 = self.sets.iter().flatten().map(|model| model.set.owned_bytes()).sum();
        let allocations: u64 = self.allocations.iter().flatten().map(|(made, _)| made.owned_bytes()).sum();
        let prefixes: u64 = self.live_prefixes().iter().map(|memory| memory.owned_bytes()).sum();
        sets + allocations + prefixes
    }

    fn check(&mut self) {
        self.memories.retain(|memory| memory.strong_count() > 0);
        let faults = &self.faults;
        self.quarantine.retain(|(target, _)| faults.is_live(*target));
        self.check_books();
        for model in self.sets.iter().flatten() {
            model.check(self.clean);
        }
        for (allocation, model) in self.allocations.iter().flatten() {
            assert_eq!(allocation.as_slice().expect("is there"), model);
        }
        self.prefixes.iter().flatten().for_each(Handle::check);
        self.check_cache();
    }

    fn check_books(&self) {
        let (used, held, park) = (self.used(), self.faults.held(), self.under.park());
        let is_of = |bytes: u64| (bytes..=bytes + park).contains(&used);
        if self.tells && self.takes_back {
            assert!(is_of(self.charged()), "{used} are charged, {} in use, at most {park} parked", self.charged());
            assert_eq!(held.prefixes, self.live_prefixes().len(), "a prefix ends with its last hold");
        }
        if self.tells || !self.under.leases() {
            let owned = held.owned_bytes;
            assert!(is_of(owned), "{used} are charged, {owned} owned, quarantined or not, at most {park} parked");
        } else {
            assert!(used >= held.owned_bytes, "all that may be owned is charged");
        }
    }

    fn check_cache(&self) {
        let Some(cache) = &self.cache else { return };
        let seen = cache.snapshot();
        let figures = (seen.prefixes, seen.prefixes_in_use, seen.blocks, seen.owned_bytes);
        assert_eq!(figures, self.cached.figures());
        assert_eq!(seen.evicted, self.evicted, "an eviction that nobody asked for");
    }

    /// Gives everything back; nothing may be left.
    fn end(mut self) {
        self.faults.heal();
        self.sets = Default::default();
        self.allocations = Default::default();
        self.prefixes = Default::default();
        self.cache = None;
        assert_eq!(self.host.reap().remaining, 0);
        let parked = self.used();
        assert!(parked <= self.under.park(), "{parked} bytes are left");
        assert_eq!(self.host.trim(&self.backing, u64::MAX).expect("nothing fails any more"), parked);
        assert_eq!((self.used(), self.faults.held()), (0, Held::default()));
    }

    /// A mark of its own for each holder, so that one's bytes are told from another's.
    fn mark(&mut self, slot: usize, mark: u8) -> u8 {
        let mark = mark % 80 + 1 + u8::try_from(slot).expect("is small") * 80;
        self.marks[slot].insert(mark);
        mark
    }
}

/// On whose behalf things in a slot are.
fn holder(slot: usize) -> leasehold::HolderId {
    leasehold::HolderId::new(bytes(slot) + 1)
}
