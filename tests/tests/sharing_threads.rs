//! Four threads play random operations, each on its own sets, while they share prefixes and one cache under a budget that
//! never suffices.
//!
//! What a block holds is a function of its hash, and what is private of a set holds its thread's mark: so every byte that
//! anybody sees can be checked without asking another thread. A watcher reads the books all the time.

use leasehold::{
    Allocation, AllocationSpec, BlockHash, BufferSet, BufferSpec, Domain, Error, ErrorKind, HolderId, PrefixCache,
    PrefixCacheSpec, PrefixPart, ReapReport, SharedPrefix,
};
use leasehold_tests::rig::{LIMIT, TestRig, sharing_host_rigs};
use leasehold_tests::{blocks, is_all};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

const THREADS: u8 = 4;
const STEPS: usize = 2000;
const PLANES: usize = 2;
/// Sets of each thread.
const SETS: usize = 2;
/// Prefixes that lie on the board.
const BOARD: usize = 4;
/// The budget, in granules: less than the sets alone would take.
const BUDGET: u64 = 48;
/// The most that is private of a plane, in granules.
const PRIVATE: u64 = 6;

/// A prefix, with the blocks that it holds.
type Posted = (SharedPrefix, Vec<BlockHash>);

/// What the threads share.
struct Commons<'g> {
    rig: &'g TestRig,
    cache: PrefixCache,
    board: Mutex<Vec<Posted>>,
}

/// One thread's own.
struct Worker<'c> {
    commons: &'c Commons<'c>,
    random: u64,
    mark: u8,
    sets: [Option<Kept>; SETS],
    allocation: Option<Allocation>,
}

/// A set, with the blocks that are mapped in front. Behind them every byte is its thread's mark.
struct Kept {
    set: BufferSet,
    blocks: Vec<BlockHash>,
}

/// Takes what a call answered; a budget that does not suffice is no failure here.
fn granted<T>(outcome: Result<T, Error>) -> Option<T> {
    outcome.inspect_err(|error| assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}")).ok()
}

impl Commons<'_> {
    fn make(&self, chain: &[BlockHash]) -> Option<SharedPrefix> {
        let TestRig { host, backing, granule, .. } = self.rig;
        let prefix = granted(blocks::write(host, backing, PLANES, *granule, chain))?;
        Some(prefix.seal().unwrap())
    }

    fn taken_from_board(&self, number: usize) -> Option<Posted> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }

    /// Puts a prefix on the board; what it takes the place of is dropped with no lock held.
    fn post(&self, number: usize, posted: Posted) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match board.get_mut(number) {
            Some(place) => Some(std::mem::replace(place, posted)),
            None => {
                board.push(posted);
                None
            }
        };
        drop(board);
        drop(before);
    }
}

impl<'c> Worker<'c> {
    fn new(commons: &'c Commons<'c>, number: u8) -> Self {
        let random = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { commons, random, mark: number, sets: Default::default(), allocation: None }
    }

    /// Some number less than `end`: xorshift, the same in every run.
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 32).unwrap() % end
    }

    fn chain(&mut self) -> Vec<BlockHash> {
        let length = 1 + self.below(4);
        let tokens: Vec<u8> = (0..length).map(|_| u8::try_from(self.below(3)).unwrap()).collect();
        blocks::chain(&tokens)
    }

    fn step(&mut self) {
        let slot = self.below(SETS);
        let Some(mut kept) = self.sets[slot].take() else { return self.make(slot) };
        match self.below(16) {
            0 => kept.set.close().unwrap(),
            1 => drop(kept),
            action => {
                self.act(action, &mut kept);
                self.check(&kept);
                self.sets[slot] = Some(kept);
            }
        }
        self.act_elsewhere();
    }

    fn make(&mut self, slot: usize) {
        let TestRig { host, backing, granule, .. } = self.commons.rig;
        let spec = BufferSpec::new(64 * granule).holder(HolderId::new(self.mark.into()));
        let set = host.buffer_set(backing, PLANES, &spec).unwrap();
        self.sets[slot] = Some(Kept { set, blocks: Vec::new() });
    }

    fn act(&mut self, action: usize, kept: &mut Kept) {
        match action {
            2 => kept.clear(),
            3..=5 => self.serve(kept),
            6..=8 => self.borrow(kept),
            9 => {
                let less = kept.set.len() / 2;
                kept.set.shrink_to(less.max(kept.set.shared())).unwrap();
            }
            _ => self.grow(kept),
        }
    }

    /// What has nothing to do with a set of its own.
    fn act_elsewhere(&mut self) {
        let Commons { rig, cache, .. } = self.commons;
        let bytes = rig.granule * u64::try_from(self.below(8)).unwrap();
        match self.below(12) {
            0 => drop(cache.evict(bytes)),
            1 => drop(rig.host.trim(&rig.backing, bytes).unwrap()),
            2 => {
                let chain = self.chain();
                let number = self.below(BOARD);
                if let Some(prefix) = self.commons.make(&chain) {
                    self.commons.post(number, (prefix, chain));
                }
            }
            3 => self.allocate(bytes + 1),
            _ => {}
        }
    }

    /// Finds what the cache knows of a chain, and adds the rest.
    fn serve(&mut self, kept: &mut Kept) {
        let (chain, cache) = (self.chain(), &self.commons.cache);
        kept.clear();
        let found = cache.find(&chain);
        kept.map(&found.parts, &chain[..found.blocks]);
        if found.blocks < chain.len()
            && let Some(rest) = self.commons.make(&chain[found.blocks..])
        {
            kept.map(&[rest.whole()], &chain[found.blocks..]);
            cache.insert(&chain, found.blocks, rest).unwrap();
        }
    }

    /// Maps a part of what lies on the board.
    fn borrow(&mut self, kept: &mut Kept) {
        let number = self.below(BOARD);
        let Some((prefix, chain)) = self.commons.taken_from_board(number) else { return };
        let (first, granule) = (self.below(chain.len()), self.commons.rig.granule);
        let count = 1 + self.below(chain.len() - first);
        let bytes = |blocks: usize| granule * u64::try_from(blocks).unwrap();
        let part = prefix.part(bytes(first), bytes(count)).unwrap();
        drop(prefix);
        if kept.set.owned_bytes() > 0 || kept.blocks.len() > 8 {
            kept.clear();
        }
        kept.map(&[part], &chain[first..first + count]);
    }

    fn grow(&mut self, kept: &mut Kept) {
        let most = usize::try_from(PRIVATE * self.commons.rig.granule).unwrap();
        let len = kept.set.shared() + u64::try_from(self.below(most)).unwrap();
        let before = kept.set.len().max(kept.set.shared()) - kept.set.shared();
        if granted(kept.set.grow_to(len)).is_none() {
            return;
        }
        for plane in 0..PLANES {
            let private = kept.set.private_mut(plane).unwrap();
            let fresh = &private[usize::try_from(before).unwrap()..];
            let own = |bytes: &[u8]| is_all(bytes, 0) || bytes.iter().all(|byte| [0, self.mark].contains(byte));
            assert!(fresh.chunks(4096).all(own), "another holder's bytes");
            private.fill(self.mark);
        }
    }

    fn allocate(&mut self, bytes: u64) {
        let TestRig { host, backing, .. } = self.commons.rig;
        let spec = AllocationSpec::new(bytes).holder(HolderId::new(self.mark.into()));
        self.allocation = granted(host.allocate(backing, &spec));
        if let Some(allocation) = &mut self.allocation {
            let memory = allocation.as_mut_slice().unwrap();
            assert!(is_all(memory, 0), "an allocation reads as zero");
            memory.fill(self.mark);
        }
    }

    fn check(&self, kept: &Kept) {
        let granule = self.commons.rig.granule;
        assert_eq!(kept.set.shared(), granule * u64::try_from(kept.blocks.len()).unwrap());
        for plane in 0..PLANES {
            let (front, back) = kept.set.plane(plane).unwrap().split_at(usize::try_from(kept.set.shared()).unwrap());
            assert!(blocks::shows(front, plane, granule, &kept.blocks), "a block shows another one");
            assert!(is_all(back, self.mark), "what is private shows another thread's bytes");
        }
        let allocation = self.allocation.as_ref();
        assert!(allocation.is_none_or(|made| is_all(made.as_slice().unwrap(), self.mark)), "an allocation");
    }
}

impl Kept {
    fn clear(&mut self) {
        self.set.clear().unwrap();
        self.blocks.clear();
    }

    fn map(&mut self, parts: &[PrefixPart], blocks: &[BlockHash]) {
        self.set.map_prefixes(parts).unwrap();
        self.blocks.extend_from_slice(blocks);
    }
}

/// Reads the books until the threads are done, and answers how often.
fn watch(rig: &TestRig, limit: u64, are_done: &AtomicBool) {
    while !are_done.load(Ordering::Acquire) {
        let used = rig.used();
        assert!(used <= limit, "{}: {used} of {limit} are charged", rig.name);
        std::thread::yield_now();
    }
}

fn play(commons: &Commons<'_>, number: u8) {
    let mut worker = Worker::new(commons, number);
    (0..STEPS).for_each(|_| worker.step());
}

#[test]
fn four_threads_share_under_pressure_and_everybody_sees_the_right_bytes() {
    for rig in &sharing_host_rigs() {
        let limit = BUDGET * rig.granule;
        let governor = rig.host.governor();
        governor.set_limit(Domain::Host, limit).unwrap();
        let spec = PrefixCacheSpec::new(PLANES, rig.granule);
        let cache = rig.host.prefix_cache(&rig.backing, &spec).unwrap();
        let commons = Commons { rig, cache, board: Mutex::default() };
        let are_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(rig, limit, &are_done));
            let commons = &commons;
            let workers: Vec<_> = (1..=THREADS).map(|number| scope.spawn(move || play(commons, number))).collect();
            let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            are_done.store(true, Ordering::Release);
            assert!(ends.iter().all(Result::is_ok), "{}", rig.name);
            watcher.join().unwrap();
        });
        let seen = commons.cache.snapshot();
        assert!(seen.evicted.prefixes > 0 && seen.blocks_found > 0, "{}: {seen:?}", rig.name);
        assert!(rig.host.snapshot().domain(Domain::Host).unwrap().peak_bytes <= limit, "{}", rig.name);
        drop(commons);
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!((rig.used(), rig.host.reap()), (0, ReapReport::default()), "{}", rig.name);
        governor.set_limit(Domain::Host, LIMIT).unwrap();
    }
}
