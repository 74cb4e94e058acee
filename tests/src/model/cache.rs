//! Which blocks a prefix cache holds, and who was used last.

use super::PAGE;
use super::memory::{Memory, Part};
use leasehold::BlockHash;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What a prefix cache holds.
#[derive(Debug, Default)]
pub(super) struct CacheModel {
    /// Each block's run, and which block of its prefix it is.
    blocks: HashMap<BlockHash, (u64, usize)>,
    runs: BTreeMap<u64, Run>,
    /// Counts runs and uses.
    clock: u64,
}

/// Blocks that one prefix holds.
#[derive(Debug)]
struct Run {
    memory: Rc<Memory>,
    blocks: Vec<BlockHash>,
    last_use: u64,
}

/// A run that was evicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) owned_bytes: u64,
    pub(super) blocks: usize,
}

impl CacheModel {
    /// The longest known beginning of a chain.
    pub(super) fn find(&mut self, chain: &[BlockHash]) -> Vec<Part> {
        let page = super::len(PAGE);
        let mut found: Vec<(u64, usize, usize)> = Vec::new();
        for (run, index) in chain.iter().map_while(|hash| self.blocks.get(hash)).copied() {
            match found.last_mut() {
                Some((last, first, count)) if *last == run && *first + *count == index => *count += 1,
                _ => found.push((run, index, 1)),
            }
        }
        for (run, ..) in found.iter().rev() {
            self.runs.get_mut(run).expect("is there").last_use = self.clock;
            self.clock += 1;
        }
        let part = |(run, first, count): &(u64, usize, usize)| {
            let memory = Rc::clone(&self.runs[run].memory);
            Part { memory, offset: first * page, bytes: count * page }
        };
        found.iter().map(part).collect()
    }

    /// Adds the blocks of a chain from `first` on. Answers how many are new.
    pub(super) fn insert(&mut self, chain: &[BlockHash], first: usize, memory: Rc<Memory>) -> usize {
        let run = self.clock;
        self.clock += 1;
        let mut blocks = Vec::new();
        for (index, hash) in chain[first..].iter().enumerate() {
            self.blocks.entry(*hash).or_insert_with(|| {
                blocks.push(*hash);
                (run, index)
            });
        }
        let new = blocks.len();
        if new > 0 {
            self.runs.insert(run, Run { memory, blocks, last_use: run });
            self.find(&chain[..first]);
        }
        new
    }

    /// Those that nobody else holds, the least recently used first.
    fn cold(&self) -> Vec<u64> {
        let mut cold: Vec<_> = self.runs.iter().filter(|(_, run)| Rc::strong_count(&run.memory) == 1).collect();
        cold.sort_by_key(|(_, run)| run.last_use);
        cold.into_iter().map(|(id, _)| *id).collect()
    }

    /// Bytes that an eviction could give back.
    pub(super) fn cold_bytes(&self) -> u64 {
        self.cold().iter().map(|run| self.runs[run].memory.owned_bytes()).sum()
    }

    /// Evicts so many.
    pub(super) fn evict(&mut self, count: usize) -> Vec<Gone> {
        let cold = self.cold();
        assert!(count <= cold.len(), "{count} prefixes were evicted, {} are cold", cold.len());
        let mut gone = Vec::new();
        for id in &cold[..count] {
            let run = self.runs.remove(id).expect("is there");
            self.blocks.retain(|hash, _| !run.blocks.contains(hash));
            gone.push(Gone { owned_bytes: run.memory.owned_bytes(), blocks: run.blocks.len() });
        }
        gone
    }

    /// Prefixes, those of them that somebody else holds too, blocks, and bytes.
    pub(super) fn figures(&self) -> (usize, usize, usize, u64) {
        let owned_bytes = self.runs.values().map(|run| run.memory.owned_bytes()).sum();
        (self.runs.len(), self.runs.len() - self.cold().len(), self.blocks.len(), owned_bytes)
    }
}
