//! What is mapped where in one region, granule by granule. Pure bookkeeping over any kind of handle.

use leasehold_plugin_api::{HolderId, PrefixId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The physical memory of one prefix, alive until nobody maps or holds it.
#[derive(Debug)]
pub(crate) struct PrefixMemory<H> {
    pub(crate) id: PrefixId,
    /// Who wrote it.
    pub(crate) holder: HolderId,
    /// A handle for each granule.
    pub(crate) handles: Vec<H>,
}

/// What is mapped at one granule.
#[derive(Debug)]
enum Granule<H> {
    /// Committed memory of this region alone; its handle is given back already where that is `None`.
    Private(Option<H>),
    /// What a call left that could not be undone: in nobody's use.
    Residue(Option<H>),
    /// A granule of a prefix.
    Prefix,
    /// A granule of a prefix that a call could not unmap: in nobody's use.
    FormerPrefix,
}

impl<H> Granule<H> {
    /// Whether nobody uses it, and it is only still there.
    fn is_left(&self) -> bool {
        matches!(self, Self::Residue(_) | Self::FormerPrefix)
    }

    fn is_private(&self) -> bool {
        matches!(self, Self::Private(_))
    }
}

/// A part of a prefix that was mapped as a whole.
#[derive(Debug)]
pub(crate) struct Part<H> {
    pub(crate) memory: Arc<PrefixMemory<H>>,
    /// The granules of the prefix.
    pub(crate) source: Range<u64>,
}

impl<H> Part<H> {
    /// The end of the part that begins at a granule.
    fn end(&self, start: u64) -> u64 {
        start.saturating_add(self.source.end.saturating_sub(self.source.start))
    }
}

/// Everything that is mapped in one region.
#[derive(Debug)]
pub(crate) struct Contents<H> {
    granules: BTreeMap<u64, Granule<H>>,
    /// The parts of prefixes by the granule that they begin at.
    parts: BTreeMap<u64, Part<H>>,
    /// How many of the granules are committed memory.
    private: u64,
    /// How many of the granules failed calls left.
    left: u64,
    /// Memory that was made for a call that failed, that nothing maps, and that could not be given back.
    debts: Vec<H>,
}

impl<H> Default for Contents<H> {
    fn default() -> Self {
        Self { granules: BTreeMap::new(), parts: BTreeMap::new(), private: 0, left: 0, debts: Vec::new() }
    }
}

impl<H> Contents<H> {
    /// Granules of committed memory.
    pub(crate) fn private_granules(&self) -> u64 {
        self.private
    }

    /// Granules of memory that is owned for the region: committed, residue, and debts.
    pub(crate) fn owned_granules(&self) -> u64 {
        let residue = self.granules.values().filter(|granule| matches!(granule, Granule::Residue(_))).count();
        let left = u64::try_from(residue.saturating_add(self.debts.len())).unwrap_or(u64::MAX);
        self.private.saturating_add(left)
    }

    /// Memory that nothing maps and that is to be given back.
    pub(crate) fn debts(&mut self) -> &mut Vec<H> {
        &mut self.debts
    }

    /// Whether nothing but what failed calls left is in the range.
    pub(crate) fn is_free(&self, range: &Range<u64>) -> bool {
        self.granules.range(range.clone()).all(|(_, granule)| granule.is_left())
    }

    /// Whether everything in the range is committed memory.
    pub(crate) fn is_private(&self, range: &Range<u64>) -> bool {
        let private = self.granules.range(range.clone()).filter(|(_, granule)| granule.is_private());
        u64::try_from(private.count()).is_ok_and(|count| count == range.end.saturating_sub(range.start))
    }

    /// Whether everything in the range can be read: committed memory, and prefixes that are in use.
    pub(crate) fn is_there(&self, range: &Range<u64>) -> bool {
        let there = self.granules.range(range.clone()).filter(|(_, granule)| !granule.is_left());
        u64::try_from(there.count()).is_ok_and(|count| count == range.end.saturating_sub(range.start))
    }

    /// The part of a prefix that begins at a granule.
    pub(crate) fn part(&self, start: u64) -> Option<&Part<H>> {
        self.parts.get(&start)
    }

    /// The runs of what failed calls left.
    pub(crate) fn runs_left(&self) -> Vec<Range<u64>> {
        // A call walks through what is mapped only where it must: a growth costs the same however much there is.
        if self.left == 0 { Vec::new() } else { self.runs_where(Granule::is_left) }
    }

    /// The runs of everything.
    pub(crate) fn runs(&self) -> Vec<Range<u64>> {
        self.runs_where(|_| true)
    }

    /// The runs of granules that follow each other, among those that are wanted.
    fn runs_where(&self, is_wanted: impl Fn(&Granule<H>) -> bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for granule in self.granules.iter().filter(|(_, granule)| is_wanted(granule)).map(|(granule, _)| *granule) {
            match runs.last_mut() {
                Some(last) if last.end == granule => last.end = granule.saturating_add(1),
                _ => runs.push(granule..granule.saturating_add(1)),
            }
        }
        runs
    }

    /// Adds committed memory where nothing is.
    pub(crate) fn insert_private(&mut self, start: u64, handles: impl Iterator<Item = H>) {
        for (granule, handle) in (start..).zip(handles) {
            self.granules.insert(granule, Granule::Private(Some(handle)));
            self.private = self.private.saturating_add(1);
        }
    }

    /// Adds what could not be unmapped, where nothing is.
    pub(crate) fn insert_residue(&mut self, start: u64, handles: impl Iterator<Item = H>) {
        for (granule, handle) in (start..).zip(handles) {
            self.granules.insert(granule, Granule::Residue(Some(handle)));
            self.left = self.left.saturating_add(1);
        }
    }

    /// Adds a part of a prefix where nothing is.
    pub(crate) fn insert_part(&mut self, start: u64, part: Part<H>) {
        self.granules.extend((start..part.end(start)).map(|granule| (granule, Granule::Prefix)));
        self.parts.insert(start, part);
    }

    /// What is mapped of prefixes in a range is in nobody's use from now on.
    pub(crate) fn leave_prefixes(&mut self, range: &Range<u64>) {
        for (_, granule) in
            self.granules.range_mut(range.clone()).filter(|(_, granule)| matches!(granule, Granule::Prefix))
        {
            *granule = Granule::FormerPrefix;
            self.left = self.left.saturating_add(1);
        }
    }

    /// What is committed in a range is in nobody's use from now on.
    pub(crate) fn leave_private(&mut self, range: &Range<u64>) {
        for granule in self.granules.range_mut(range.clone()).map(|(_, granule)| granule) {
            let Granule::Private(handle) = granule else { continue };
            *granule = Granule::Residue(handle.take());
            self.private = self.private.saturating_sub(1);
            self.left = self.left.saturating_add(1);
        }
    }

    /// The handles that are still held in a range, each in its place.
    pub(crate) fn handles_in(&mut self, range: &Range<u64>) -> impl Iterator<Item = &mut Option<H>> {
        self.granules.range_mut(range.clone()).filter_map(|(_, granule)| match granule {
            Granule::Private(handle) | Granule::Residue(handle) => Some(handle),
            Granule::Prefix | Granule::FormerPrefix => None,
        })
    }

    /// Takes out the handles that are held; their granules stay mapped.
    pub(crate) fn take_handles(&mut self) -> Vec<H> {
        self.handles_in(&(0..u64::MAX)).filter_map(Option::take).collect()
    }

    /// Takes away what is no longer mapped in a range, and answers its handles, each with who may have left bytes there:
    /// committed memory shows what the holder left, residue what nobody knows.
    pub(crate) fn remove(&mut self, range: &Range<u64>, holder: HolderId) -> Vec<(H, HolderId)> {
        let mut removed = Vec::new();
        for (_, granule) in self.granules.extract_if(range.clone(), |_, _| true) {
            if granule.is_left() {
                self.left = self.left.saturating_sub(1);
            }
            match granule {
                Granule::Private(handle) => {
                    self.private = self.private.saturating_sub(1);
                    removed.extend(handle.map(|handle| (handle, holder)));
                }
                Granule::Residue(handle) => removed.extend(handle.map(|handle| (handle, HolderId::NOBODY))),
                Granule::Prefix | Granule::FormerPrefix => {}
            }
        }
        removed
    }

    /// Takes the parts of prefixes away that lie in a range, whose granules go with [`remove`](Self::remove). What of them
    /// lies beside the range stays, as parts for themselves.
    pub(crate) fn remove_parts(&mut self, range: &Range<u64>) -> Vec<Arc<PrefixMemory<H>>> {
        let before = self.parts.range(..range.start).next_back();
        let reaching_in = before.filter(|(start, part)| part.end(**start) > range.start).map(|(start, _)| *start);
        let inside = self.parts.range(range.clone()).map(|(start, _)| *start);
        let starts: Vec<u64> = reaching_in.into_iter().chain(inside).collect();
        starts.into_iter().filter_map(|start| self.cut(start, range)).collect()
    }

    /// Takes a range out of the part that begins at a granule.
    fn cut(&mut self, start: u64, range: &Range<u64>) -> Option<Arc<PrefixMemory<H>>> {
        let part = self.parts.remove(&start)?;
        let (end, memory) = (part.end(start), part.memory);
        let source_of = |granule: u64| part.source.start.saturating_add(granule.saturating_sub(start));
        for rest in [start..range.start, range.end..end].into_iter().filter(|rest| !rest.is_empty()) {
            let source = source_of(rest.start)..source_of(rest.end);
            self.parts.insert(rest.start, Part { memory: Arc::clone(&memory), source });
        }
        Some(memory)
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test whose arithmetic overflows fails")]
mod tests;
