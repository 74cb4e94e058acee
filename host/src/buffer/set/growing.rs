//! Growing and shrinking: charge, commit, settle; decommit, refund, settle.
//!
//! What a call that broke off left behind is in doubt: it stays charged, is not used, and is asked for again before the
//! next growth or shrink.

use super::{BufferSet, Plane};
use crate::admission::Payer;
use crate::buffer::growth::GrowthPolicy;
use crate::error::{BackingFault, BufferError, Error, Operation};
use crate::governor::{Parties, Party};
use leasehold_plugin_api::Change;
use std::sync::Arc;

impl BufferSet {
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
        self.backing.check_process(Operation::Commit)?;
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

    pub(super) fn check_capacity(&self, bytes: u64) -> Result<(), BufferError> {
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
        match self.backing.commit(&self.ranges, self.role) {
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
        let before = self.owned_bytes();
        self.planes.iter_mut().for_each(|plane| plane.doubt_growth(target));
        // If this fails too, the doubt is kept; the caller gets the growth's error anyhow.
        let _ = self.resolve_doubts();
        match self.owned_bytes().saturating_sub(before) {
            0 => fault.into(),
            kept => BufferError::NotGrown { kept, fault: Box::new(fault) }.into(),
        }
    }

    /// Makes every plane `bytes` long, at most what it is now, and gives the whole granules past `bytes` back: what was
    /// in use, what a policy committed ahead, and what an earlier shrink failed to give back. The granule that holds
    /// the new end stays; of a buffer that grows in steps, the step. Prefixes stay mapped, also those past `bytes`: see
    /// [`clear`](Self::clear). Whatever uses the bytes on a device is over before.
    ///
    /// # Errors
    ///
    /// What the backing reports; the text says how much stays committed. The length is then what is still committed of
    /// it, and growing again really commits.
    pub fn shrink_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.backing.check_process(Operation::Decommit)?;
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
        let before = self.owned_bytes();
        match self.backing.decommit(&self.ranges) {
            Ok(()) => {
                self.refund(asked);
                self.set_committed(|plane| plane.charged().min(keep));
                Ok(())
            }
            Err(fault) => {
                self.settle_failed_decommit(keep);
                let left = self.owned_bytes();
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
    pub(super) fn resolve_doubts(&mut self) -> Result<(), BackingFault> {
        if !self.planes.iter().any(Plane::is_in_doubt) {
            return Ok(());
        }
        let before = self.owned_bytes();
        let mut outcome = Ok(());
        for plane in self.planes.iter_mut().filter(|plane| plane.is_in_doubt()) {
            let private = |end: u64| end.saturating_sub(self.shared);
            match self.backing.committed_between(plane.id(), private(plane.certain()), private(plane.charged())) {
                Ok(committed) => plane.settle(self.shared.saturating_add(committed)),
                Err(fault) => outcome = outcome.and(Err(fault)),
            }
        }
        self.note_committed();
        self.refund(before.saturating_sub(self.owned_bytes()));
        outcome
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
}
