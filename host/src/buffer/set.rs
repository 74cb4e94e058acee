//! Planes that grow together in one transaction, or not at all.
//!
//! Input: an admitted backing and a [`BufferSpec`]. It owns one region a plane and, where the buffer pays, one lease on
//! everything that is committed; it holds the prefixes that are mapped in front. Dropping it gives all of them back; what
//! the backing can't take back stays charged in the backing's quarantine. One thread at a time; calls may block in the
//! system or the driver.
//!
//! Invariants, after every call and every failure:
//! 1. `len ≤ committed ≤ capacity`, for each plane, where `committed` counts only what is there for certain.
//! 2. The lease, where there is one, holds exactly what the planes are charged.
//! 3. `shared ≤ committed`: prefixes come first, and nothing private lies before them.

mod sharing;

use super::growth::GrowthPolicy;
use super::plane::Plane;
use super::spec::BufferSpec;
use crate::admission::{self, Payer};
use crate::backing::{CheckedBacking, Unreturned};
use crate::error::{BackingFault, BufferError, Error, PrefixError, Unreleased};
use crate::governor::{GovernorCore, Parties, Party};
use crate::prefix::PrefixPart;
use leasehold_plugin_api::{Address, Change, CommitRange, HolderId, ReleaseTarget};
use std::sync::Arc;

/// Planes of one size that grow together: say the keys and values of every layer.
#[derive(Debug)]
pub struct BufferSet {
    /// The length of each plane.
    len: u64,
    /// The least that is committed or mapped of any plane for certain; all are equal unless a shrink failed half-way.
    committed: u64,
    /// What prefixes take of each plane, in front.
    shared: u64,
    /// The prefixes that are mapped, one behind the other.
    parts: Vec<PrefixPart>,
    /// Prefixes that may be mapped still, or after all, since a call broke off.
    doubtful_parts: Vec<PrefixPart>,
    capacity: u64,
    granule: u64,
    growth: GrowthPolicy,
    /// On whose behalf it grows: nobody asks the holder to make room for it.
    holder: HolderId,
    planes: Vec<Plane>,
    payer: Payer,
    /// Room for the ranges of one call, kept so that growing allocates nothing.
    ranges: Vec<CommitRange>,
    backing: Arc<CheckedBacking>,
}

impl BufferSet {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &GovernorCore,
        planes: usize,
        spec: &BufferSpec,
    ) -> Result<Self, Error> {
        let payer = admission::admit(backing, governor, spec.role)?;
        let granule = admission::granularity(backing)?;
        let placement = spec.placement(backing, granule)?;
        if planes == 0 {
            let why = "a set of 0 planes can hold nothing; ask for at least one".to_owned();
            return Err(BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "buffer", why }.into());
        }
        let mut set = Self {
            len: 0,
            committed: 0,
            shared: 0,
            parts: Vec::new(),
            doubtful_parts: Vec::new(),
            capacity: placement.bytes,
            granule,
            growth: spec.growth,
            holder: spec.holder,
            planes: Vec::new(),
            payer,
            ranges: Vec::new(),
            backing: Arc::clone(backing),
        };
        for _ in 0..planes {
            // On failure the set is dropped, which gives back the planes it has.
            let region = set.backing.reserve(placement)?;
            set.planes.push(Plane::new(region));
        }
        set.ranges.reserve_exact(planes);
        Ok(set)
    }

    /// Bytes in use of each plane.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no byte is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of each plane that have physical memory behind them, prefixes included: a multiple of the granularity.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// What each plane can grow to: the capacity that was asked for, rounded up to whole granules.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The number of planes.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.planes.len()
    }

    /// Private physical bytes behind all planes, those included that a failed call may have left. Prefixes don't count:
    /// they are owned once, wherever they are mapped.
    #[must_use]
    pub fn committed_total(&self) -> u64 {
        self.planes.iter().fold(0, |sum, plane| sum.saturating_add(plane.owned()))
    }

    /// Bytes that are visible in all planes: private ones and those of prefixes.
    #[must_use]
    pub fn mapped_total(&self) -> u64 {
        self.planes.iter().fold(0, |sum, plane| sum.saturating_add(plane.charged()))
    }

    /// The name of the backing.
    #[must_use]
    pub fn backing_name(&self) -> &str {
        self.backing.name()
    }

    /// Where a plane begins; the same for the life of the set. `None` when there is no such plane.
    #[must_use]
    pub fn base(&self, plane: usize) -> Option<Address> {
        self.planes.get(plane).map(Plane::base)
    }

    /// The bytes of a plane.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such plane,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn plane(&self, plane: usize) -> Result<&[u8], Error> {
        let found = self.planes.get(plane).ok_or_else(|| no_such_plane(&self.backing, plane, self.planes.len()))?;
        Ok(found.bytes(&self.backing, self.len)?)
    }

    /// The bytes of a plane, to write.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane), and [`WrongState`](crate::ErrorKind::WrongState) when a prefix is mapped in front: see
    /// [`private_mut`](Self::private_mut).
    pub fn plane_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        if self.shared > 0 {
            return Err(PrefixError::ReadOnly { backing: Arc::clone(self.backing.name()), shared: self.shared }.into());
        }
        self.private_mut(plane)
    }

    /// What of a plane's bytes may be written: those behind the prefixes. It begins [`shared`](Self::shared) bytes in.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane).
    pub fn private_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        let Self { planes, backing, len, .. } = self;
        let count = planes.len();
        let found = planes.get_mut(plane).ok_or_else(|| no_such_plane(backing, plane, count))?;
        Ok(found.private_mut(backing, *len)?)
    }

    /// Makes every plane at least `bytes` long. Within what is committed this is a comparison and a store; past it all
    /// planes are charged and committed in one call, or none is. A plane never moves. New bytes read as zero, or as
    /// what this buffer's holder left.
    ///
    /// # Errors
    ///
    /// [`CapacityExceeded`](crate::ErrorKind::CapacityExceeded), [`TierExhausted`](crate::ErrorKind::TierExhausted),
    /// and what the backing reports. Nothing is changed, and nothing stays charged; but where the backing broke off in
    /// the middle ([`OutOfService`](crate::ErrorKind::OutOfService)), what nobody can tell stays charged, as the text
    /// says.
    #[inline]
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes > self.committed {
            self.commit_for(bytes)?;
        }
        self.len = self.len.max(bytes);
        Ok(())
    }

    #[cold]
    fn commit_for(&mut self, bytes: u64) -> Result<(), Error> {
        self.check_capacity(bytes)?;
        self.resolve_doubts()?;
        let Some(target) = self.next_target(bytes) else { return Ok(()) };
        match self.target(GrowthPolicy::Exact, bytes) {
            exact if exact < target => match self.commit_ahead_to(target) {
                Err(error) if error.is_exhausted() => self.commit_to(exact),
                outcome => outcome,
            },
            _ => self.commit_to(target),
        }
    }

    /// As [`commit_to`](Self::commit_to), for more than is needed: nobody gives anything up for that, but parked memory
    /// is taken.
    fn commit_ahead_to(&mut self, target: u64) -> Result<(), Error> {
        let _ahead = Parties::with(Party::AllReclaimers);
        self.commit_to(target)
    }

    /// What a growth to `bytes` commits to; nothing within what is committed.
    fn next_target(&self, bytes: u64) -> Option<u64> {
        (bytes > self.committed).then(|| self.target(self.growth, bytes))
    }

    /// A policy goes by what is private: a prefix is no reason to commit more.
    fn target(&self, growth: GrowthPolicy, bytes: u64) -> u64 {
        let private = |end: u64| end.saturating_sub(self.shared);
        let target = growth.target(private(bytes), private(self.committed), private(self.capacity), self.granule);
        self.shared.saturating_add(target)
    }

    fn check_capacity(&self, bytes: u64) -> Result<(), BufferError> {
        if bytes <= self.capacity {
            return Ok(());
        }
        let backing = Arc::clone(self.backing.name());
        Err(BufferError::CapacityExceeded { backing, requested: bytes, capacity: self.capacity })
    }

    /// Charges, commits, settles: brings every plane to `target` bytes.
    fn commit_to(&mut self, target: u64) -> Result<(), Error> {
        let asked = self.fill_ranges(|plane| (plane.charged(), target));
        let _holder = Parties::on_behalf_of(self.holder);
        let used = match &mut self.payer {
            Payer::Buffer(lease) => lease
                .grow_unused(asked)
                .map_err(|refusal| BufferError::exhausted(self.backing.name(), "grown", refusal))?,
            Payer::Backing => 0,
        };
        match self.backing.commit(&self.ranges) {
            Ok(()) => {
                self.note_used(used);
                self.set_committed(|plane| plane.charged().max(target));
                Ok(())
            }
            Err(fault) if fault.leaves_doubt() => Err(self.keep_doubtful_growth(target, fault)),
            Err(fault) => {
                self.refund(asked);
                Err(fault.into())
            }
        }
    }

    /// Keeps all that a commit may have left charged, and asks the backing what it did leave. What it can't tell is asked
    /// for again before the next growth or shrink.
    fn keep_doubtful_growth(&mut self, target: u64, fault: BackingFault) -> Error {
        let before = self.committed_total();
        self.planes.iter_mut().for_each(|plane| plane.doubt_growth(target));
        // Its failure is no news: the growth is reported, and the doubt is kept.
        let _ = self.resolve_doubts();
        match self.committed_total().saturating_sub(before) {
            0 => fault.into(),
            kept => BufferError::NotGrown { kept, fault: Box::new(fault) }.into(),
        }
    }

    /// Makes every plane `bytes` long, at most what it is now, and gives the whole granules past `bytes` back: what was
    /// in use, what a policy committed ahead, and what an earlier shrink failed to give back. The granule that holds
    /// the new end stays; of a buffer that grows in steps, the step. Prefixes stay mapped: see [`clear`](Self::clear).
    ///
    /// # Errors
    ///
    /// What the backing reports; the text says how much stays committed. The length is then what is still committed of
    /// it, and growing again really commits.
    pub fn shrink_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.resolve_doubts()?;
        let private = |end: u64| end.saturating_sub(self.shared);
        let kept = self.growth.kept(private(bytes), private(self.capacity), self.granule);
        let keep = self.shared.saturating_add(kept);
        let asked = self.fill_ranges(|plane| (keep, plane.charged()));
        if asked > 0 {
            self.decommit_to(keep, asked, bytes)?;
        }
        self.len = self.len.min(bytes);
        Ok(())
    }

    /// Decommits, refunds: brings every plane that has more down to `keep` bytes.
    fn decommit_to(&mut self, keep: u64, asked: u64, wanted: u64) -> Result<(), BufferError> {
        let before = self.committed_total();
        match self.backing.decommit(&self.ranges) {
            Ok(()) => {
                self.refund(asked);
                self.set_committed(|plane| plane.charged().min(keep));
                Ok(())
            }
            Err(fault) => {
                self.settle_failed_decommit(keep);
                let left = self.committed_total();
                Err(BufferError::NotShrunk { wanted, left, before, fault: Box::new(fault) })
            }
        }
    }

    /// Takes only what was to stay for certain, and asks the backing what else is left. What it can't tell stays
    /// charged and out of use, and is asked for again before the next growth or shrink.
    fn settle_failed_decommit(&mut self, keep: u64) {
        self.planes.iter_mut().for_each(|plane| plane.doubt_shrink(keep));
        // Its failure is no news: the shrink is reported, and the doubt is kept.
        let _ = self.resolve_doubts();
        self.len = self.len.min(self.committed);
    }

    /// Asks the backing how much is committed of each plane that is in doubt. Answers the first failure to tell.
    fn resolve_doubts(&mut self) -> Result<(), BackingFault> {
        if !self.planes.iter().any(Plane::is_in_doubt) {
            return Ok(());
        }
        let before = self.committed_total();
        let mut outcome = Ok(());
        for plane in self.planes.iter_mut().filter(|plane| plane.is_in_doubt()) {
            let private = |end: u64| end.saturating_sub(self.shared);
            match self.backing.committed_between(plane.id(), private(plane.certain()), private(plane.charged())) {
                Ok(committed) => plane.settle(self.shared.saturating_add(committed)),
                Err(fault) => outcome = outcome.and(Err(fault)),
            }
        }
        self.note_committed();
        self.refund(before.saturating_sub(self.committed_total()));
        outcome
    }

    /// The ranges of one call: from..to of each plane, where that is not empty. Answers their bytes.
    fn fill_ranges(&mut self, span: impl Fn(&Plane) -> (u64, u64)) -> u64 {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.clear();
        ranges.extend(self.ranges_of(span));
        self.ranges = ranges;
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.bytes))
    }

    fn ranges_of(&self, span: impl Fn(&Plane) -> (u64, u64)) -> impl Iterator<Item = CommitRange> {
        self.planes.iter().filter_map(move |plane| {
            let (from, to) = span(plane);
            let bytes = to.checked_sub(from).filter(|bytes| *bytes > 0)?;
            Some(CommitRange::new(plane.id(), from, bytes))
        })
    }

    fn set_committed(&mut self, committed: impl Fn(&Plane) -> u64) {
        for plane in &mut self.planes {
            plane.settle(committed(plane));
        }
        self.note_committed();
    }

    fn note_committed(&mut self) {
        self.committed = self.planes.iter().map(Plane::certain).min().unwrap_or(0);
    }

    fn note_used(&self, used: u64) {
        if let Payer::Buffer(lease) = &self.payer {
            lease.note_used(used);
        }
    }

    fn refund(&mut self, bytes: u64) {
        if let Payer::Buffer(lease) = &mut self.payer {
            lease.shrink(bytes);
        }
    }

    /// What growing every plane to `bytes` would newly map and newly own, without doing it: nothing within what is
    /// committed, and less owned than mapped where the backing has memory parked.
    ///
    /// # Errors
    ///
    /// [`CapacityExceeded`](crate::ErrorKind::CapacityExceeded), and what the backing reports.
    pub fn growth_cost(&self, bytes: u64) -> Result<Change, Error> {
        self.check_capacity(bytes)?;
        let Some(target) = self.next_target(bytes) else { return Ok(Change::default()) };
        let ranges: Vec<_> = self.ranges_of(|plane| (plane.charged(), target)).collect();
        Ok(self.backing.cost(&ranges)?)
    }

    /// Gives everything back, and says what could not be. Dropping does the same, and logs it.
    ///
    /// # Errors
    ///
    /// [`NotReleased`](crate::ErrorKind::NotReleased): what the backing could not take back stays charged until
    /// [`Host::reap`](crate::Host::reap) succeeds.
    pub fn close(mut self) -> Result<(), Error> {
        Ok(self.release_all()?)
    }

    fn release_all(&mut self) -> Result<(), BufferError> {
        let mut unreleased: Option<Unreleased> = None;
        let mut note = |this: Unreleased| {
            // The first fault is told, with the bytes of all.
            let before = unreleased.as_ref().map_or(0, |first| first.remaining_bytes);
            let remaining_bytes = before.saturating_add(this.remaining_bytes);
            let fault = unreleased.take().map_or(this.fault, |first| first.fault);
            unreleased = Some(Unreleased { remaining_bytes, fault });
        };
        let parts: Vec<_> = self.parts.drain(..).chain(self.doubtful_parts.drain(..)).collect();
        for plane in std::mem::take(&mut self.planes) {
            let lease = match &mut self.payer {
                Payer::Buffer(lease) => Some(lease.split_off(plane.owned())),
                Payer::Backing => None,
            };
            let place = (plane.base(), self.capacity);
            let entry = Unreturned::memory(ReleaseTarget::Region(plane.id()), place, plane.owned(), lease)
                .with_prefixes(parts.iter().filter_map(PrefixPart::share_memory).collect());
            self.backing.give_back(entry).unwrap_or_else(&mut note);
        }
        for part in parts {
            part.close().unwrap_or_else(&mut note);
        }
        unreleased.map_or(Ok(()), |unreleased| Err(unreleased.into()))
    }
}

fn no_such_plane(backing: &CheckedBacking, plane: usize, planes: usize) -> BufferError {
    BufferError::NoSuchPlane { backing: Arc::clone(backing.name()), plane, planes }
}

impl Drop for BufferSet {
    fn drop(&mut self) {
        // What could not be given back is recorded in the backing's quarantine and in the log.
        let _ = self.release_all();
    }
}
