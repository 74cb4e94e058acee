//! Which handles are owned and behind nothing, and who left bytes in them: pure bookkeeping over any kind of handle.

use leasehold_plugin_api::HolderId;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Parked handles, the oldest first.
#[derive(Debug)]
pub(crate) struct Parked<H> {
    /// By the moment when each was parked.
    by_age: BTreeMap<u64, (HolderId, H)>,
    /// The moments of what each holder left, the oldest first.
    by_holder: HashMap<HolderId, VecDeque<u64>>,
    next: u64,
}

impl<H> Parked<H> {
    pub(crate) fn new() -> Self {
        Self { by_age: BTreeMap::new(), by_holder: HashMap::new(), next: 0 }
    }

    /// How many are parked.
    pub(crate) fn granules(&self) -> u64 {
        u64::try_from(self.by_age.len()).unwrap_or(u64::MAX)
    }

    /// Parks one.
    pub(crate) fn park(&mut self, holder: HolderId, handle: H) {
        self.by_age.insert(self.next, (holder, handle));
        self.by_holder.entry(holder).or_default().push_back(self.next);
        self.next = self.next.saturating_add(1);
    }

    /// Takes one: what this holder left last, else what was parked first.
    pub(crate) fn take(&mut self, holder: HolderId) -> Option<(HolderId, H)> {
        match self.end_of(holder, VecDeque::pop_back) {
            Some(age) => self.by_age.remove(&age),
            None => self.take_oldest(),
        }
    }

    /// Takes what was parked first.
    pub(crate) fn take_oldest(&mut self) -> Option<(HolderId, H)> {
        let (_, oldest) = self.by_age.pop_first()?;
        // The oldest of all is the oldest of its holder.
        let _ = self.end_of(oldest.0, VecDeque::pop_front);
        Some(oldest)
    }

    /// Takes a moment from one end of those of a holder.
    fn end_of(&mut self, holder: HolderId, pop: impl FnOnce(&mut VecDeque<u64>) -> Option<u64>) -> Option<u64> {
        let ages = self.by_holder.get_mut(&holder)?;
        let age = pop(ages);
        if ages.is_empty() {
            self.by_holder.remove(&holder);
        }
        age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HolderId = HolderId::new(1);
    const OTHER: HolderId = HolderId::new(2);

    #[test]
    fn a_holder_gets_what_it_left_before_what_others_did_and_those_the_oldest_first() {
        let mut parked = Parked::new();
        for (holder, handle) in [(OTHER, 'a'), (ONE, 'b'), (OTHER, 'c'), (ONE, 'd')] {
            parked.park(holder, handle);
        }
        let mut taken = || parked.take(ONE);
        let order = [taken(), taken(), taken(), taken(), taken()];
        assert_eq!(order, [Some((ONE, 'd')), Some((ONE, 'b')), Some((OTHER, 'a')), Some((OTHER, 'c')), None]);
        assert_eq!(parked.granules(), 0);
    }

    #[test]
    fn the_oldest_goes_first_whoever_left_it() {
        let mut parked = Parked::new();
        parked.park(ONE, 1);
        parked.park(OTHER, 2);
        assert_eq!((parked.take_oldest(), parked.granules()), (Some((ONE, 1)), 1));
        assert_eq!(parked.take(ONE), Some((OTHER, 2)));
    }
}
