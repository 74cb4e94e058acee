//! One set as a plain program would keep it.

use super::memory::Part;
use super::{CAPACITY, PAGE, bytes, len};
use crate::is_all;
use leasehold::{Address, BufferSet, ErrorKind, GrowthPolicy};
use std::collections::BTreeSet;

/// One set as a plain program would keep it.
#[derive(Debug)]
pub(super) struct SetModel {
    pub(super) set: BufferSet,
    bases: Vec<Address>,
    policy: GrowthPolicy,
    /// What is mapped in front.
    pub(super) parts: Vec<Part>,
    /// What each plane holds: all of the prefixes, and behind them as far as the set is long.
    planes: Vec<Vec<u8>>,
    len: usize,
}

impl SetModel {
    pub(super) fn new(set: BufferSet, policy: GrowthPolicy) -> Self {
        let bases = (0..set.planes()).map(|plane| set.base(plane).expect("is there")).collect();
        let planes = vec![Vec::new(); set.planes()];
        Self { set, bases, policy, parts: Vec::new(), planes, len: 0 }
    }

    pub(super) fn bases(&self) -> &[Address] {
        &self.bases
    }

    pub(super) fn planes(&self) -> usize {
        self.planes.len()
    }

    /// Bytes of each plane that prefixes take.
    pub(super) fn shared(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// What growing to `len` takes beyond what is there.
    pub(super) fn needs(&self, len: u64) -> u64 {
        let shared = bytes(self.shared());
        let end = shared + len.saturating_sub(shared).next_multiple_of(PAGE);
        (bytes(self.planes()) * end).saturating_sub(self.set.mapped_bytes())
    }

    pub(super) fn check(&self, clean: bool) {
        let (set, shared) = (&self.set, bytes(self.shared()));
        assert_eq!((set.len(), set.shared()), (bytes(self.len), shared));
        assert!(set.len() <= set.committed() && shared <= set.committed() && set.committed() <= set.capacity());
        assert!(set.committed().is_multiple_of(PAGE) && set.capacity() == CAPACITY);
        assert_eq!(set.mapped_bytes(), set.owned_bytes() + shared * bytes(self.planes()));
        if clean && self.policy == GrowthPolicy::Exact {
            let private = set.len().saturating_sub(shared).next_multiple_of(PAGE);
            assert_eq!(set.owned_bytes(), private * bytes(self.planes()));
        }
        for (plane, model) in self.planes.iter().enumerate() {
            assert_eq!(set.base(plane), Some(self.bases[plane]), "a plane moved");
            assert!(set.plane(plane).expect("is there") == &model[..self.len], "plane {plane} reads as something else");
        }
    }

    /// It grew: what is new is zero, or one of the marks that its holder left.
    pub(super) fn grown(&mut self, len: usize, marks: &BTreeSet<u8>) {
        for (plane, model) in self.planes.iter_mut().enumerate().filter(|(_, model)| model.len() < len) {
            let fresh = &self.set.plane(plane).expect("is there")[model.len()..];
            assert_eq!(stranger(fresh, marks), None, "plane {plane} shows bytes that are not its holder's");
            model.extend_from_slice(fresh);
        }
        self.len = self.len.max(len);
    }

    pub(super) fn shrunk(&mut self, len: usize) {
        self.len = self.len.min(len);
        let left = self.len.max(self.shared());
        self.planes.iter_mut().for_each(|plane| plane.truncate(left));
    }

    /// A shrink failed: what is left is the library's to say; it is never more than before, nor less than was asked for.
    pub(super) fn left_over(&mut self, asked: usize) {
        let left = len(self.set.len());
        assert!(left <= self.len && left >= self.len.min(asked));
        self.shrunk(left);
    }

    pub(super) fn write(&mut self, plane: usize, at: usize, mark: u8) {
        let shared = self.shared();
        let (from, end) = (at.max(shared), self.len.min(at.saturating_add(5000)));
        if from < end {
            let private = self.set.private_mut(plane).expect("is there");
            private[from - shared..end - shared].fill(mark);
            self.planes[plane][from..end].fill(mark);
        }
    }

    /// Why these parts can't be mapped, where they can't.
    pub(super) fn refusal(&self, parts: &[Part]) -> Option<ErrorKind> {
        let more: usize = parts.iter().map(|part| part.bytes).sum();
        if parts.is_empty() {
            None
        } else if parts.iter().any(|part| part.memory.planes() != self.planes()) {
            Some(ErrorKind::InvalidRequest)
        } else if self.set.owned_bytes() > 0 {
            Some(ErrorKind::WrongState)
        } else {
            (bytes(self.shared() + more) > CAPACITY).then_some(ErrorKind::CapacityExceeded)
        }
    }

    pub(super) fn mapped(&mut self, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        for (plane, model) in self.planes.iter_mut().enumerate() {
            parts.iter().for_each(|part| part.append_to(plane, model));
        }
        self.parts.extend(parts);
        self.len = self.shared();
    }

    pub(super) fn cleared(&mut self) {
        self.parts.clear();
        self.shrunk(0);
    }
}

/// A byte that is none of the marks.
pub(super) fn stranger(bytes: &[u8], marks: &BTreeSet<u8>) -> Option<u8> {
    let strange = |chunk: &[u8]| {
        let few = if is_all(chunk, chunk[0]) { &chunk[..1] } else { chunk };
        few.iter().copied().find(|byte| !marks.contains(byte))
    };
    bytes.chunks(512).find_map(strange)
}
