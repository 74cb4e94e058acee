//! Prefixes, their mappings, and the cache.

use super::super::cache::Gone;
use super::super::memory::{Handle, Memory, Part};
use super::super::operation::{Piece, Rest};
use super::super::set::stranger;
use super::super::{CACHE_PLANES, PAGE, bytes, len};
use super::{World, holder};
use crate::blocks;
use leasehold::{BlockHash, ErrorKind, PrefixPart, PrefixSpec};
use std::rc::Rc;

impl World {
    pub(super) fn create_prefix(&mut self, slot: usize, planes: usize, granules: u64) {
        if self.cache.is_none() {
            return;
        }
        let (used, needed) = (self.used(), granules * PAGE * bytes(planes));
        let spec = PrefixSpec::new(granules * PAGE).planes(planes).holder(holder(slot));
        let made = self.host.prefix(&self.backing, &spec);
        self.note_evicted(used, needed);
        match made {
            Ok(prefix) => {
                let memory = Memory::of(&prefix);
                for plane in 0..planes {
                    let seen = prefix.plane(plane).expect("is there");
                    assert_eq!(stranger(seen, &self.marks[slot]), None, "it shows bytes that are not its holder's");
                }
                self.memories.push(Rc::downgrade(&memory));
                self.prefixes[slot] = Some(Handle::Writable(prefix, memory));
            }
            Err(error) => {
                self.check_exhausted(&error, needed);
                self.refused(error, &[ErrorKind::TierExhausted]);
            }
        }
    }

    pub(super) fn write_prefix(&mut self, slot: usize, plane: usize, at: u64, mark: u8) {
        let mark = self.mark(slot, mark);
        let Some(Handle::Writable(prefix, memory)) = &mut self.prefixes[slot] else { return };
        let plane = plane % memory.planes();
        let (from, end) = (len(at), memory.plane_bytes().min(len(at) + 5000));
        if from < end {
            prefix.plane_mut(plane).expect("is writable")[from..end].fill(mark);
            memory.fill(plane, from..end, mark);
        }
    }

    pub(super) fn seal(&mut self, slot: usize) {
        match self.prefixes[slot].take() {
            Some(Handle::Writable(prefix, memory)) => match prefix.seal() {
                Ok(sealed) => self.prefixes[slot] = Some(Handle::Sealed(sealed, memory)),
                Err(unsealed) => {
                    self.refused(unsealed.error, &[]);
                    self.prefixes[slot] = Some(Handle::Writable(unsealed.prefix, memory));
                }
            },
            other => self.prefixes[slot] = other,
        }
    }

    pub(super) fn share(&mut self, from: usize, to: usize) {
        if let Some(Handle::Sealed(prefix, memory)) = &self.prefixes[from] {
            self.prefixes[to] = Some(Handle::Sealed(prefix.clone(), Rc::clone(memory)));
        }
    }

    pub(super) fn close_prefix(&mut self, slot: usize) {
        let outcome = match self.prefixes[slot].take() {
            None => Ok(()),
            Some(Handle::Writable(prefix, _)) => prefix.close(),
            Some(Handle::Sealed(prefix, _)) => prefix.close(),
        };
        self.allow(outcome, &[ErrorKind::NotReleased]);
    }

    pub(super) fn map_pieces(&mut self, slot: usize, pieces: &[Piece]) {
        let found: Option<Vec<_>> = pieces.iter().map(|piece| self.piece(*piece)).collect();
        if let Some(found) = found {
            let (parts, models): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            self.map(slot, &parts, models);
        }
    }

    fn piece(&self, piece: Piece) -> Option<(PrefixPart, Part)> {
        let Some(Handle::Sealed(prefix, memory)) = &self.prefixes[piece.slot] else { return None };
        let granules = memory.plane_bytes() / len(PAGE);
        let first = piece.first % granules;
        let (first, count) = match piece.granules {
            0 => (0, granules),
            count => (first, 1 + count % (granules - first)),
        };
        let (offset, size) = (first * len(PAGE), count * len(PAGE));
        let part = match piece.granules {
            0 => prefix.whole(),
            _ => prefix.part(bytes(offset), bytes(size)).expect("lies within"),
        };
        Some((part, Part { memory: Rc::clone(memory), offset, bytes: size }))
    }

    fn map(&mut self, slot: usize, parts: &[PrefixPart], models: Vec<Part>) {
        let Some(mut model) = self.sets[slot].take() else { return };
        let wanted = model.refusal(&models);
        let size: usize = models.iter().map(|part| part.bytes * model.planes()).sum();
        match model.set.mapping_cost(parts) {
            Ok(cost) => assert_eq!((cost.owned_bytes, cost.mapped_bytes), (0, bytes(size)), "it costs nothing more"),
            Err(error) => self.refused(error, wanted.as_slice()),
        }
        let outcome = model.set.map_prefixes(parts);
        let is_fit = outcome.is_ok();
        // A failed shrink may have left less in the way than was known before.
        assert!(!self.clean || is_fit == wanted.is_none(), "wanted {wanted:?}");
        if self.allow(outcome, wanted.as_slice()) {
            model.mapped(models);
        }
        self.sets[slot] = Some(model);
    }

    /// Finds what is known of a chain, maps it, and makes the rest.
    pub(super) fn serve(&mut self, slot: usize, tokens: &[u8], rest: Rest) {
        let Some(cache) = self.cache.clone() else { return };
        let chain = blocks::chain(tokens);
        let (found, models) = (cache.find(&chain), self.cached.find(&chain));
        let known: usize = models.iter().map(|part| part.bytes / len(PAGE)).sum();
        assert_eq!((found.blocks, found.parts.len()), (known, models.len()), "what is known of {tokens:?}");
        for plane in 0..CACHE_PLANES {
            let mut bytes = Vec::new();
            models.iter().for_each(|part| part.append_to(plane, &mut bytes));
            assert!(blocks::shows(&bytes, plane, PAGE, &chain[..known]), "a block is another one");
        }
        self.map(slot, &found.parts, models.clone());
        if known < chain.len() && matches!(rest, Rest::Made) {
            self.make_blocks(&chain, known);
        }
    }

    fn make_blocks(&mut self, chain: &[BlockHash], known: usize) {
        let Some(cache) = self.cache.clone() else { return };
        let (used, needed) = (self.used(), bytes(CACHE_PLANES * (chain.len() - known)) * PAGE);
        let made = blocks::write(&self.host, &self.backing, CACHE_PLANES, PAGE, &chain[known..]);
        self.note_evicted(used, needed);
        let prefix = match made {
            Ok(prefix) => prefix,
            Err(error) => {
                self.check_exhausted(&error, needed);
                return self.refused(error, &[ErrorKind::TierExhausted]);
            }
        };
        let memory = Memory::of(&prefix);
        self.memories.push(Rc::downgrade(&memory));
        match prefix.seal() {
            Ok(sealed) => {
                let new = cache.insert(chain, known, sealed).expect("it fits");
                assert_eq!(new, self.cached.insert(chain, known, memory));
            }
            Err(unsealed) => self.refused(unsealed.error, &[]),
        }
    }

    pub(super) fn evict(&mut self, size: u64) {
        let Some(cache) = &self.cache else { return };
        let used = self.used();
        let evicted = cache.evict(size);
        assert_eq!(evicted.owned_bytes, used - self.used(), "what the books got back");
        let gone = self.forget_evicted();
        if self.clean {
            assert!(evicted.owned_bytes >= size || self.cached.cold_bytes() == 0, "nothing that is cold is left");
            check_no_more_than(&gone, size);
        }
    }

    pub(super) fn trim(&mut self, size: u64) {
        let used = self.used();
        match self.host.trim(&self.backing, size) {
            Ok(given) => {
                assert_eq!(given, used - self.used(), "what the books got back");
                let all = size == u64::MAX && self.clean;
                assert!(!all || self.used() == self.charged(), "nothing is parked any more");
            }
            Err(error) => self.refused(error, &[]),
        }
    }

    /// Takes out of the model what was evicted for a charge: the least recently used that nobody held, and no more of them
    /// than the shortfall needed.
    pub(super) fn note_evicted(&mut self, used: u64, needed: u64) {
        let gone = self.forget_evicted();
        if self.clean {
            check_no_more_than(&gone, (used + needed).saturating_sub(self.limit));
        }
    }

    fn forget_evicted(&mut self) -> Vec<Gone> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let evicted = cache.snapshot().evicted;
        let gone = self.cached.evict(evicted.prefixes - self.evicted.prefixes);
        let blocks: usize = gone.iter().map(|gone| gone.blocks).sum();
        assert_eq!(evicted.blocks - self.evicted.blocks, blocks, "others were evicted");
        self.evicted = evicted;
        gone
    }
}

/// Without the last of them there would still have been too little.
fn check_no_more_than(gone: &[Gone], wanted: u64) {
    let Some((_, before)) = gone.split_last() else { return };
    let before: u64 = before.iter().map(|gone| gone.owned_bytes).sum();
    assert!(before < wanted, "{before} bytes were enough for {wanted}, and more was evicted");
}
