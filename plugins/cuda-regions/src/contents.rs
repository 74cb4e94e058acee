//! What is mapped where in one region, unit by unit. Pure bookkeeping, no call of the driver.

use crate::source::Returned;
use leasehold_cuda_driver::PhysicalHandle;
use leasehold_plugin_api::{HolderId, PrefixId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The physical memory of one prefix, alive until nobody maps or holds it.
#[derive(Debug)]
pub struct PrefixMemory {
    /// Its identity.
    pub id: PrefixId,
    /// Who wrote it.
    pub holder: HolderId,
    /// A handle for each unit.
    pub handles: Vec<PhysicalHandle>,
}

impl PrefixMemory {
    /// Its handles, for their source.
    #[must_use]
    pub fn into_returned(self) -> Vec<Returned> {
        let holder = self.holder;
        self.handles.into_iter().map(|handle| Returned { handle, holder }).collect()
    }
}

/// What is mapped at one unit.
#[derive(Debug)]
pub(crate) enum Unit {
    /// Committed memory of this region alone; its handle is given back already where that is `None`.
    Private(Option<PhysicalHandle>),
    /// What a call left that could not be undone: in nobody's use.
    Residue(Option<PhysicalHandle>),
    /// A unit of a prefix.
    Prefix,
    /// A unit of a prefix that a call could not unmap: in nobody's use.
    FormerPrefix,
}

impl Unit {
    /// Whether nobody uses it, and it is only still there.
    fn is_left(&self) -> bool {
        matches!(self, Unit::Residue(_) | Unit::FormerPrefix)
    }
}

/// A part of a prefix that was mapped as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) memory: Arc<PrefixMemory>,
    /// The units of the prefix.
    pub(crate) source: Range<u64>,
}

/// Everything that is mapped in one region.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    units: BTreeMap<u64, Unit>,
    /// The parts of prefixes by the unit that they begin at.
    parts: BTreeMap<u64, Part>,
    /// How many of the units are committed memory.
    private: u64,
    /// How many of the units failed calls left.
    left: u64,
    /// Memory that was made for a call that failed, that nothing maps, and that could not be given back.
    debts: Vec<PhysicalHandle>,
}

impl Contents {
    /// Units of committed memory.
    pub(crate) fn private_units(&self) -> u64 {
        self.private
    }

    /// Units of memory that is owned for the region: committed, residue, and debts.
    pub(crate) fn owned_units(&self) -> u64 {
        let residue = self.units.values().filter(|unit| matches!(unit, Unit::Residue(_))).count();
        let left = u64::try_from(residue.saturating_add(self.debts.len())).unwrap_or(u64::MAX);
        self.private.saturating_add(left)
    }

    /// Memory that nothing maps and that is to be given back.
    pub(crate) fn debts(&mut self) -> &mut Vec<PhysicalHandle> {
        &mut self.debts
    }

    /// Whether nothing but what failed calls left is in the range.
    pub(crate) fn is_free(&self, range: &Range<u64>) -> bool {
        self.units.range(range.clone()).all(|(_, unit)| unit.is_left())
    }

    /// The runs of what failed calls left.
    pub(crate) fn runs_left(&self) -> Vec<Range<u64>> {
        // A call walks through what is mapped only where it must: a growth costs the same however much there is.
        if self.left == 0 { Vec::new() } else { self.runs_where(Unit::is_left) }
    }

    /// The runs of everything.
    pub(crate) fn runs(&self) -> Vec<Range<u64>> {
        self.runs_where(|_| true)
    }

    /// What is mapped of prefixes in a range is in nobody's use from now on.
    pub(crate) fn leave_prefixes(&mut self, range: &Range<u64>) {
        for (_, unit) in self.units.range_mut(range.clone()).filter(|(_, unit)| matches!(unit, Unit::Prefix)) {
            *unit = Unit::FormerPrefix;
            self.left = self.left.saturating_add(1);
        }
    }

    /// Whether everything in the range is committed memory.
    pub(crate) fn is_private(&self, range: &Range<u64>) -> bool {
        let private = self.units.range(range.clone()).filter(|(_, unit)| matches!(unit, Unit::Private(_)));
        u64::try_from(private.count()).is_ok_and(|count| count == range.end.saturating_sub(range.start))
    }

    /// Adds committed memory where nothing is.
    pub(crate) fn insert_private(&mut self, start: u64, handles: impl Iterator<Item = PhysicalHandle>) {
        for (unit, handle) in (start..).zip(handles) {
            self.units.insert(unit, Unit::Private(Some(handle)));
            self.private = self.private.saturating_add(1);
        }
    }

    /// Adds what could not be unmapped.
    pub(crate) fn insert_residue(&mut self, start: u64, handles: impl Iterator<Item = Option<PhysicalHandle>>) {
        for (unit, handle) in (start..).zip(handles) {
            self.units.insert(unit, Unit::Residue(handle));
            self.left = self.left.saturating_add(1);
        }
    }

    /// Adds a part of a prefix where nothing is.
    pub(crate) fn insert_part(&mut self, start: u64, part: Part) {
        let end = start.saturating_add(part.source.end.saturating_sub(part.source.start));
        self.units.extend((start..end).map(|unit| (unit, Unit::Prefix)));
        self.parts.insert(start, part);
    }

    /// The part of a prefix that begins at a unit.
    pub(crate) fn part(&self, start: u64) -> Option<&Part> {
        self.parts.get(&start)
    }

    /// Takes away what is no longer mapped in a range, and answers its handles: committed memory shows what the holder
    /// left, residue what nobody knows.
    pub(crate) fn remove(&mut self, range: &Range<u64>, holder: HolderId) -> Vec<Returned> {
        let mut returned = Vec::new();
        for (_, unit) in self.units.extract_if(range.clone(), |_, _| true) {
            match unit {
                Unit::Private(handle) => {
                    self.private = self.private.saturating_sub(1);
                    returned.extend(handle.map(|handle| Returned { handle, holder }));
                }
                Unit::Residue(handle) => {
                    self.left = self.left.saturating_sub(1);
                    returned.extend(handle.map(|handle| Returned { handle, holder: HolderId::NOBODY }));
                }
                Unit::FormerPrefix => self.left = self.left.saturating_sub(1),
                Unit::Prefix => {}
            }
        }
        returned
    }

    /// The handles that are still held in a range, each in its place.
    pub(crate) fn handles_in(&mut self, range: &Range<u64>) -> impl Iterator<Item = &mut Option<PhysicalHandle>> {
        self.units.range_mut(range.clone()).filter_map(|(_, unit)| match unit {
            Unit::Private(handle) | Unit::Residue(handle) => Some(handle),
            Unit::Prefix | Unit::FormerPrefix => None,
        })
    }

    /// The runs of units that follow each other, among those that are wanted.
    fn runs_where(&self, is_wanted: impl Fn(&Unit) -> bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for unit in self.units.iter().filter(|(_, unit)| is_wanted(unit)).map(|(unit, _)| *unit) {
            match runs.last_mut() {
                Some(last) if last.end == unit => last.end = unit.saturating_add(1),
                _ => runs.push(unit..unit.saturating_add(1)),
            }
        }
        runs
    }

    /// Takes away the parts of prefixes that begin in a range, whose units go with [`remove`](Self::remove).
    pub(crate) fn remove_parts(&mut self, range: &Range<u64>) -> impl Iterator<Item = Arc<PrefixMemory>> {
        self.parts.extract_if(range.clone(), |_, _| true).map(|(_, part)| part.memory)
    }
}
