//! Which addresses are taken, so that no two live ranges overlap.
//!
//! Whatever the CPU can touch is in one map for the whole process, whichever host, domain or backing it belongs to; the
//! other devices of a host have a map each, by domain.

use crate::machine::PerProcess;
use leasehold_plugin_api::Address;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The live ranges of one address space.
#[derive(Debug, Default)]
pub(crate) struct AddressMap {
    /// Invariant 1: from base to end, never empty, never overlapping.
    ranges: Mutex<BTreeMap<u64, u64>>,
}

static MAPS: PerProcess<Arc<AddressMap>> = PerProcess::new();

impl AddressMap {
    /// The addresses of this process.
    pub(crate) fn of_process() -> Arc<Self> {
        Arc::clone(MAPS.here())
    }

    /// Takes a range, or answers the live range that it overlaps. `end` is past the last byte and after `base`.
    pub(crate) fn take(&self, base: Address, end: Address) -> Result<(), (Address, Address)> {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let neighbour = ranges.range(..end.get()).next_back().map(|(base, end)| (*base, *end));
        if let Some((taken, taken_end)) = neighbour.filter(|(_, taken_end)| *taken_end > base.get()) {
            return Err((Address::new(taken), Address::new(taken_end)));
        }
        ranges.insert(base.get(), end.get());
        Ok(())
    }

    /// Gives the range that begins at `base` back.
    pub(crate) fn give_back(&self, base: Address) {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).remove(&base.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(map: &AddressMap, base: u64, end: u64) -> bool {
        map.take(Address::new(base), Address::new(end)).is_ok()
    }

    #[test]
    fn a_range_that_overlaps_a_live_one_is_refused() {
        let map = AddressMap::default();
        assert!(take(&map, 100, 200));
        for (base, end) in [(100, 200), (50, 101), (199, 300), (120, 130), (50, 300)] {
            assert!(!take(&map, base, end), "{base}..{end}");
        }
        assert!(take(&map, 200, 300) && take(&map, 50, 100));
        map.give_back(Address::new(100));
        assert!(take(&map, 100, 200));
    }
}
