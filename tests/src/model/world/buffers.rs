//! Sets and allocations.

use super::super::set::SetModel;
use super::super::{CAPACITY, PAGE, bytes, len};
use super::{World, holder};
use crate::is_all;
use leasehold::{AllocationSpec, BufferSet, BufferSpec, ErrorKind, GrowthPolicy};
use std::rc::Rc;

impl World {
    pub(super) fn make(&mut self, slot: usize, planes: usize, policy: GrowthPolicy) {
        let spec = BufferSpec::new(CAPACITY).growth(policy).holder(holder(slot));
        match self.host.buffer_set(&self.backing, planes, &spec) {
            Ok(set) => {
                self.end_set(slot, drop);
                self.sets[slot] = Some(SetModel::new(set, policy));
            }
            Err(error) => self.refused(error, &[]),
        }
    }

    pub(super) fn grow(&mut self, slot: usize, to: u64) {
        let Some(mut model) = self.sets[slot].take() else { return };
        let (used, needed) = (self.used(), model.needs(to));
        let outcome = model.set.grow_to(to);
        self.sets[slot] = Some(model);
        self.note_evicted(used, needed);
        match &outcome {
            Ok(()) => assert!(self.used() <= self.limit.max(used), "grew past the limit"),
            Err(error) => {
                assert!(error.kind() != ErrorKind::CapacityExceeded || to > CAPACITY);
                self.check_exhausted(error, needed);
            }
        }
        if self.allow(outcome, &[ErrorKind::TierExhausted, ErrorKind::CapacityExceeded])
            && let Some(model) = &mut self.sets[slot]
        {
            model.grown(len(to), &self.marks[slot]);
        }
    }

    pub(super) fn shrink(&mut self, slot: usize, to: u64) {
        let Some(mut model) = self.sets[slot].take() else { return };
        let outcome = model.set.shrink_to(to);
        if self.allow(outcome, &[]) {
            model.shrunk(len(to))
        } else {
            model.left_over(len(to))
        }
        self.sets[slot] = Some(model);
    }

    pub(super) fn write(&mut self, slot: usize, plane: usize, at: u64, mark: u8) {
        let mark = self.mark(slot, mark);
        if let Some(model) = &mut self.sets[slot] {
            model.write(plane % model.planes(), len(at), mark);
        }
    }

    pub(super) fn clear(&mut self, slot: usize) {
        let Some(mut model) = self.sets[slot].take() else { return };
        let outcome = model.set.clear();
        if self.allow(outcome, &[]) {
            model.cleared()
        } else {
            model.left_over(0)
        }
        self.sets[slot] = Some(model);
    }

    pub(super) fn close(&mut self, slot: usize) {
        let mut outcome = Ok(());
        self.end_set(slot, |set| outcome = set.close());
        self.allow(outcome, &[ErrorKind::NotReleased]);
    }

    /// Ends a set. What could not be released holds its prefixes until it is.
    pub(super) fn end_set(&mut self, slot: usize, end: impl FnOnce(BufferSet)) {
        let Some(model) = self.sets[slot].take() else { return };
        let regions: Vec<_> = model.bases().iter().filter_map(|base| self.faults.live_at(*base)).collect();
        assert_eq!(regions.len(), model.planes());
        end(model.set);
        let memories: Vec<_> = model.parts.into_iter().map(|part| part.memory).collect();
        for region in regions.into_iter().filter(|region| self.faults.is_live(*region)) {
            self.quarantine.push((region, memories.iter().map(Rc::clone).collect()));
        }
    }

    pub(super) fn allocate(&mut self, slot: usize, size: u64) {
        self.allocations[slot] = None;
        let (used, needed) = (self.used(), size.next_multiple_of(PAGE));
        let made = self.host.allocate(&self.backing, &AllocationSpec::new(size).holder(holder(slot)));
        self.note_evicted(used, needed);
        match made {
            Ok(mut allocation) => {
                let memory = allocation.as_mut_slice().expect("is there");
                assert!(bytes(memory.len()) == size && is_all(memory, 0), "an allocation reads as zero");
                memory.fill(255);
                self.allocations[slot] = Some((allocation, vec![255; len(size)]));
            }
            Err(error) => {
                self.check_exhausted(&error, needed);
                self.refused(error, &[ErrorKind::TierExhausted]);
            }
        }
    }
}
