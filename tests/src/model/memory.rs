//! The bytes of one prefix.
//!
//! Whoever holds a prefix in the model has an `Rc` of its memory: the slots, each part that a set maps, each run of the
//! cache, and what is in quarantine. So its count must be what the library counts, and the memory is owned for as long
//! as there is one.

use leasehold::{Prefix, SharedPrefix};
use std::cell::RefCell;
use std::rc::Rc;

/// The bytes of one prefix, plane by plane.
#[derive(Debug)]
pub(super) struct Memory {
    planes: RefCell<Vec<Vec<u8>>>,
    plane_bytes: usize,
    count: usize,
}

/// The same part of every plane of a prefix.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) memory: Rc<Memory>,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// A handle of a prefix.
#[derive(Debug)]
pub(super) enum Handle {
    Writable(Prefix, Rc<Memory>),
    Sealed(SharedPrefix, Rc<Memory>),
}

impl Memory {
    /// What a prefix reads as now.
    pub(super) fn of(prefix: &Prefix) -> Rc<Self> {
        let planes: Vec<_> =
            (0..prefix.planes()).map(|plane| prefix.plane(plane).expect("is there").to_vec()).collect();
        let (plane_bytes, count) = (super::len(prefix.plane_bytes()), planes.len());
        Rc::new(Self { planes: RefCell::new(planes), plane_bytes, count })
    }

    /// Bytes of all planes.
    pub(super) fn owned_bytes(&self) -> u64 {
        super::bytes(self.plane_bytes * self.count)
    }

    pub(super) fn planes(&self) -> usize {
        self.count
    }

    pub(super) fn plane_bytes(&self) -> usize {
        self.plane_bytes
    }

    pub(super) fn fill(&self, plane: usize, at: std::ops::Range<usize>, mark: u8) {
        self.planes.borrow_mut()[plane][at].fill(mark);
    }

    /// Whether a plane reads as these bytes.
    pub(super) fn reads(&self, plane: usize, bytes: &[u8]) -> bool {
        self.planes.borrow()[plane] == bytes
    }
}

impl Part {
    pub(super) fn append_to(&self, plane: usize, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.memory.planes.borrow()[plane][self.offset..self.offset + self.bytes]);
    }
}

impl Handle {
    pub(super) fn memory(&self) -> &Rc<Memory> {
        match self {
            Self::Writable(_, memory) | Self::Sealed(_, memory) => memory,
        }
    }

    /// Its bytes are right, and as many hold it as the model says.
    pub(super) fn check(&self) {
        for plane in 0..self.memory().planes() {
            let seen = match self {
                Self::Writable(prefix, _) => prefix.plane(plane),
                Self::Sealed(prefix, _) => prefix.plane(plane),
            };
            assert!(self.memory().reads(plane, seen.expect("is there")), "plane {plane} of a prefix");
        }
        if let Self::Sealed(prefix, memory) = self {
            assert_eq!(prefix.owned_bytes(), memory.owned_bytes());
            assert_eq!(prefix.holders(), Rc::strong_count(memory), "who holds it");
        }
    }
}
