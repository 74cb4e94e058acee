//! Which blocks are where, and who was used last: no memory, no lock.
//!
//! A *run* is what one prefix holds: consecutive blocks of one chain. A chain is found block by block, so a run without
//! the blocks before it can't be reached. Whoever uses a chain is noted from its end to its beginning: what comes first
//! is always used later than what follows it, and the least recently used run is one that nothing needs to reach
//! another.

use super::hash::BlockHash;
use std::collections::{BTreeMap, HashMap};

/// Blocks → the run that holds each, with the payload `T` of the run.
#[derive(Debug)]
pub(super) struct Index<T> {
    /// Invariant 1: each block's run is in `runs` and names the block.
    blocks: HashMap<BlockHash, Place>,
    runs: HashMap<RunId, Run<T>>,
    /// Invariant 3: each run by the identity of its payload, which is in no other.
    by_payload: HashMap<u64, RunId>,
    /// Invariant 2: each run by the moment of its last use, the least recent first.
    by_use: BTreeMap<u64, RunId>,
    /// Counts runs and uses: later than every moment in `by_use`, no run's number.
    next: u64,
}

type RunId = u64;

#[derive(Clone, Copy, Debug)]
struct Place {
    run: RunId,
    /// Which block of the run's payload it is.
    index: usize,
}

#[derive(Debug)]
struct Run<T> {
    payload: T,
    /// The blocks that are found here: those that were not known before.
    blocks: Vec<BlockHash>,
    last_use: u64,
}

/// What a run holds: each is in the index once.
pub(super) trait Payload: Clone {
    /// Equal for clones of one thing, different for different things.
    fn identity(&self) -> u64;
}

/// Consecutive blocks of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<T> {
    pub(super) payload: T,
    /// The first block in the run's payload.
    pub(super) first: usize,
    /// How many.
    pub(super) blocks: usize,
}

impl<T: Payload> Index<T> {
    pub(super) fn new() -> Self {
        let (blocks, runs, by_payload) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { blocks, runs, by_payload, by_use: BTreeMap::new(), next: 0 }
    }

    /// Blocks that are known.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn payloads(&self) -> impl ExactSizeIterator<Item = &T> {
        self.runs.values().map(|run| &run.payload)
    }

    /// The longest known beginning of a chain, run by run. It is used from now on.
    pub(super) fn find(&mut self, chain: &[BlockHash]) -> Vec<Found<T>> {
        let places = self.places(chain);
        let payload = |(place, blocks): &(Place, usize)| {
            let run = self.runs.get(&place.run)?; // there, by invariant 1
            Some(Found { payload: run.payload.clone(), first: place.index, blocks: *blocks })
        };
        let found = places.iter().filter_map(payload).collect();
        self.note_uses(&places);
        found
    }

    /// Where the known beginning of a chain is: places of first blocks, and how many blocks follow there.
    fn places(&self, chain: &[BlockHash]) -> Vec<(Place, usize)> {
        let mut places: Vec<(Place, usize)> = Vec::new();
        for place in chain.iter().map_while(|hash| self.blocks.get(hash)) {
            match places.last_mut() {
                Some((first, count)) if first.run == place.run && first.index.saturating_add(*count) == place.index => {
                    *count = count.saturating_add(1);
                }
                _ => places.push((*place, 1)),
            }
        }
        places
    }

    /// Adds the blocks of a chain from the one numbered `first` on, which `payload` holds. What is known already stays
    /// where it is. Answers how many blocks are new; where there are none, or nobody could find them since a block before
    /// `first` is not known, the payload is given back. A payload that was here before is from now on found by this chain
    /// alone.
    pub(super) fn insert(&mut self, chain: &[BlockHash], first: usize, payload: T) -> Result<usize, T> {
        let identity = payload.identity();
        if let Some(former) = self.by_payload.get(&identity).copied() {
            self.remove(former);
        }
        if !chain.iter().take(first).all(|hash| self.blocks.contains_key(hash)) {
            return Err(payload);
        }
        let run = self.tick();
        let mut new = Vec::new();
        for (index, hash) in chain.iter().skip(first).enumerate() {
            self.blocks.entry(*hash).or_insert_with(|| {
                new.push(*hash);
                Place { run, index }
            });
        }
        let count = new.len();
        if count == 0 {
            return Err(payload);
        }
        self.runs.insert(run, Run { payload, blocks: new, last_use: run });
        self.by_use.insert(run, run);
        self.by_payload.insert(identity, run);
        self.note_uses(&self.places(chain));
        Ok(count)
    }

    /// Takes runs out that are cold, the least recently used first, until enough was taken. Answers their payloads, each
    /// with the number of blocks that are known no longer.
    pub(super) fn take_cold(
        &mut self,
        is_cold: impl Fn(&T) -> bool,
        mut is_enough: impl FnMut(&T) -> bool,
    ) -> Vec<(T, usize)> {
        let mut taken = Vec::new();
        for run in self.by_use.values() {
            let Some(payload) = self.runs.get(run).map(|run| &run.payload).filter(|payload| is_cold(payload)) else {
                continue;
            };
            taken.push(*run);
            if is_enough(payload) {
                break;
            }
        }
        taken.into_iter().filter_map(|run| self.remove(run)).collect()
    }

    fn remove(&mut self, run: RunId) -> Option<(T, usize)> {
        let run = self.runs.remove(&run)?;
        self.by_use.remove(&run.last_use);
        self.by_payload.remove(&run.payload.identity());
        for hash in &run.blocks {
            self.blocks.remove(hash);
        }
        Some((run.payload, run.blocks.len()))
    }

    /// Notes the use of a chain from its end to its beginning: what comes first is used later than what follows it.
    fn note_uses(&mut self, places: &[(Place, usize)]) {
        places.iter().rev().for_each(|(place, _)| self.note_use(place.run));
    }

    fn note_use(&mut self, run: RunId) {
        let now = self.tick();
        if let Some(used) = self.runs.get_mut(&run) {
            self.by_use.remove(&used.last_use);
            used.last_use = now;
            self.by_use.insert(now, run);
        }
    }

    fn tick(&mut self) -> u64 {
        let now = self.next;
        self.next = self.next.saturating_add(1);
        now
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "small numbers")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Payload for u32 {
        fn identity(&self) -> u64 {
            (*self).into()
        }
    }

    /// A chain of the given blocks.
    fn chain(blocks: &[u8]) -> Vec<BlockHash> {
        BlockHash::root(b"").chain(blocks.iter().map(|block| [*block]))
    }

    fn all_cold(index: &mut Index<u32>) -> Vec<u32> {
        index.take_cold(|_| true, |_| false).into_iter().map(|(payload, _)| payload).collect()
    }

    #[test]
    fn a_chain_is_found_run_by_run_as_far_as_it_is_known() {
        let mut index = Index::new();
        assert_eq!(index.insert(&chain(&[1, 2, 3]), 0, 10), Ok(3));
        assert_eq!(index.insert(&chain(&[1, 2, 7, 8]), 2, 20), Ok(2));
        let found = |payload, first, blocks| Found { payload, first, blocks };
        assert_eq!(index.find(&chain(&[1, 2, 7, 8, 9])), [found(10, 0, 2), found(20, 0, 2)]);
        assert_eq!(index.find(&chain(&[1, 2, 3])), [found(10, 0, 3)]);
        assert_eq!(index.find(&chain(&[2, 3])), []);
    }

    #[test]
    fn of_a_run_that_is_known_in_part_only_the_rest_is_new() {
        let mut index = Index::new();
        assert_eq!(index.insert(&chain(&[1, 2]), 0, 10), Ok(2));
        assert_eq!(index.insert(&chain(&[1, 2]), 0, 20), Err(20), "nothing new");
        assert_eq!(index.insert(&chain(&[1, 2, 3]), 0, 30), Ok(1));
        let third = Found { payload: 30, first: 2, blocks: 1 };
        assert_eq!(index.find(&chain(&[1, 2, 3])).last(), Some(&third));
    }

    #[test]
    fn what_follows_goes_before_what_it_follows() {
        let mut index = Index::new();
        index.insert(&chain(&[1]), 0, 1).expect("new");
        index.insert(&chain(&[1, 2]), 1, 2).expect("new");
        index.insert(&chain(&[1, 2, 3]), 2, 3).expect("new");
        index.insert(&chain(&[5]), 0, 5).expect("new");
        index.find(&chain(&[1, 2]));
        assert_eq!(all_cold(&mut index), [3, 5, 2, 1]);
        assert_eq!(index.blocks(), 0);
    }

    #[test]
    fn what_was_known_before_a_longer_run_came_stays_reachable_longer_than_its_end() {
        let mut index = Index::new();
        index.insert(&chain(&[1, 2]), 0, 12).expect("new");
        index.insert(&chain(&[1, 2, 3]), 0, 123).expect("new");
        let gone = index.take_cold(|_| true, |_| true);
        assert_eq!(gone, [(123, 1)], "the end goes first, though it came last");
        assert_eq!(index.find(&chain(&[1, 2, 3])).len(), 1);
    }

    #[test]
    fn a_payload_that_comes_again_is_found_by_its_new_chain_alone() {
        let mut index = Index::new();
        index.insert(&chain(&[1, 2]), 0, 12).expect("new");
        index.insert(&chain(&[7, 8]), 0, 12).expect("new");
        assert_eq!((index.payloads().len(), index.blocks()), (1, 2));
        assert!(index.find(&chain(&[1])).is_empty() && !index.find(&chain(&[7])).is_empty());
    }

    #[test]
    fn a_run_that_nobody_could_find_is_not_kept() {
        let mut index = Index::new();
        assert_eq!(index.insert(&chain(&[1, 2]), 1, 10), Err(10));
        assert_eq!(index.blocks(), 0);
    }

    #[test]
    fn what_is_in_use_stays_and_no_more_goes_than_is_enough() {
        let mut index = Index::new();
        for block in 0..4_u8 {
            index.insert(&chain(&[block]), 0, block.into()).expect("new");
        }
        let mut taken = 0;
        let gone = index.take_cold(
            |payload| *payload != 1,
            |_| {
                taken += 1;
                taken == 2
            },
        );
        assert_eq!(gone, [(0, 1), (2, 1)]);
        assert!(index.find(&chain(&[0])).is_empty() && !index.find(&chain(&[1])).is_empty());
    }

    #[derive(Clone, Debug)]
    enum Act {
        Insert(Vec<u8>, usize),
        Find(Vec<u8>),
        Evict(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let blocks = || prop::collection::vec(0u8..3, 1..6);
        let act = prop_oneof![
            (blocks(), 0usize..4).prop_map(|(blocks, first)| Act::Insert(blocks, first)),
            blocks().prop_map(Act::Find),
            (1usize..3).prop_map(Act::Evict),
        ];
        prop::collection::vec(act, 0..60)
    }

    proptest! {
        /// Beside a plain map from each chain of blocks to its payload.
        #[test]
        fn it_finds_what_a_plain_map_finds(acts in acts()) {
            let mut index = Index::new();
            let mut plain: BTreeMap<Vec<u8>, (u32, usize)> = BTreeMap::new();
            for (number, act) in (0_u32..).zip(acts) {
                match act {
                    Act::Insert(blocks, first) => {
                        let first = first.min(blocks.len());
                        let reachable = (0..first).all(|end| plain.contains_key(&blocks[..=end]));
                        let fresh: Vec<_> = (first..blocks.len())
                            .filter(|end| reachable && !plain.contains_key(&blocks[..=*end]))
                            .collect();
                        let answer = index.insert(&chain(&blocks), first, number);
                        prop_assert_eq!(answer.ok(), (!fresh.is_empty()).then_some(fresh.len()));
                        plain.extend(fresh.into_iter().map(|end| (blocks[..=end].to_vec(), (number, end - first))));
                    }
                    Act::Find(blocks) => {
                        let found = index.find(&chain(&blocks));
                        let places = found.iter().flat_map(|run| (0..run.blocks).map(|at| (run.payload, run.first + at)));
                        let wanted = (1..=blocks.len()).map_while(|end| plain.get(&blocks[..end]).copied());
                        prop_assert_eq!(places.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
                    }
                    Act::Evict(count) => {
                        let mut left = count;
                        let gone = index.take_cold(|_| true, |_| { left -= 1; left == 0 });
                        for (payload, blocks) in gone {
                            let before = plain.len();
                            plain.retain(|_, (holder, _)| *holder != payload);
                            prop_assert_eq!(before - plain.len(), blocks);
                        }
                    }
                }
                prop_assert_eq!(index.blocks(), plain.len());
                // Whatever went, nothing is left that nobody could find.
                prop_assert!(plain.keys().all(|blocks| (1..blocks.len()).all(|end| plain.contains_key(&blocks[..end]))));
            }
        }
    }
}
