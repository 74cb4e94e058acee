//! All that can be seen of one of the two backings, so that a comparison that fails can be read.

use super::side::{Handle, length};
use crate::setup::SetFigures;
use leasehold::{Allocation, BufferSet, Error, PrefixCacheSnapshot};
use leasehold_tests::model::SLOTS;
use std::fmt;

/// Bytes, in words as runs of equal ones.
#[derive(PartialEq, Eq)]
pub(super) struct Bytes(Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|one, next| one == next);
        formatter.debug_list().entries(runs.map(|run| Run { byte: run[0], times: run.len() })).finish()
    }
}

struct Run {
    byte: u8,
    times: usize,
}

impl fmt::Debug for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {:#04x}", self.times, self.byte)
    }
}

/// All that can be seen.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) used: u64,
    pub(super) peak: u64,
    pub(super) sets: [Option<SetSeen>; SLOTS],
    pub(super) allocations: [Option<AllocationSeen>; SLOTS],
    pub(super) prefixes: [Option<PrefixSeen>; SLOTS],
    pub(super) cache: Option<PrefixCacheSnapshot>,
}

/// What can be seen of one set.
#[derive(Debug, PartialEq)]
pub(super) struct SetSeen {
    figures: SetFigures,
    planes: Vec<Bytes>,
}

/// What can be seen of one allocation.
#[derive(Debug, PartialEq)]
pub(super) struct AllocationSeen {
    owned_bytes: u64,
    bytes: Bytes,
}

/// What can be seen of one prefix.
#[derive(Debug, PartialEq)]
pub(super) struct PrefixSeen {
    owned_bytes: u64,
    /// While it is not sealed.
    newly_owned_bytes: Option<u64>,
    holders: usize,
    planes: Vec<Bytes>,
}

impl SetSeen {
    pub(super) fn of(set: &BufferSet) -> Self {
        let planes = (0..set.planes()).map(|plane| read(set.len(), |into| set.read(plane, 0, into)));
        Self { figures: SetFigures::of(set), planes: planes.collect() }
    }
}

impl AllocationSeen {
    pub(super) fn of(allocation: &Allocation) -> Self {
        let bytes = read(allocation.len(), |into| allocation.read(0, into));
        Self { owned_bytes: allocation.owned_bytes(), bytes }
    }
}

impl PrefixSeen {
    pub(super) fn of(handle: &Handle) -> Self {
        match handle {
            Handle::Writable(prefix) => {
                let plane = |plane| read(prefix.plane_bytes(), |into| prefix.read(plane, 0, into));
                Self {
                    owned_bytes: prefix.owned_bytes(),
                    newly_owned_bytes: Some(prefix.newly_owned_bytes()),
                    holders: 1,
                    planes: (0..prefix.planes()).map(plane).collect(),
                }
            }
            Handle::Sealed(prefix) => {
                let plane = |plane| read(prefix.plane_bytes(), |into| prefix.read(plane, 0, into));
                Self {
                    owned_bytes: prefix.owned_bytes(),
                    newly_owned_bytes: None,
                    holders: prefix.holders(),
                    planes: (0..prefix.planes()).map(plane).collect(),
                }
            }
        }
    }
}

fn read(bytes: u64, read: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Bytes {
    let mut seen = vec![0xee; length(bytes)];
    read(&mut seen).expect("what is there can be read");
    Bytes(seen)
}
