//! The calls of virtual backing, with their answers checked: address space that is reserved, committed and decommitted.

use super::{CheckedBacking, Placement, contain_call, next_id};
use crate::backing::answers;
use crate::backing::capabilities::Capability;
use crate::backing::quarantine::Target;
use crate::error::{BackingFault, Operation};
use leasehold_plugin_api::{
    BackingError, Change, CommitRange, MemoryRole, Region, RegionId, ReleaseTarget, ReserveRequest, VirtualBacking,
};

impl CheckedBacking {
    /// Takes address space of `placement.bytes` bytes.
    pub(crate) fn reserve(&self, placement: Placement) -> Result<Region, BackingFault> {
        self.in_service(Operation::Reserve)?;
        let Placement { bytes, align, role, holder } = placement;
        let request = ReserveRequest { id: RegionId::new(next_id()), bytes, align, role, holder };
        let reserved = self.virtual_call(Operation::Reserve, |backing| backing.reserve(&request));
        let region = reserved.inspect_err(|fault| {
            if fault.leaves_doubt() {
                self.give_back_unseen(Target::Memory(ReleaseTarget::Region(request.id)), None, 0);
            }
        })?;
        let checked = answers::region(&request, &region).and_then(|end| self.take_addresses(region.base, end));
        checked.map_err(|breach| {
            let fault = self.breach(Operation::Reserve, breach);
            self.give_back_unseen(Target::Memory(ReleaseTarget::Region(request.id)), None, 0);
            fault
        })?;
        Ok(region)
    }

    /// Commits all ranges or none; where there is no memory for them, once more after others gave some back. Under
    /// `Accounting::Buffer` every committed byte is newly owned.
    pub(crate) fn commit(&self, ranges: &[CommitRange], role: MemoryRole) -> Result<(), BackingFault> {
        self.retried_with_room(CommitRange::total_bytes(ranges), role, || self.commit_once(ranges))
    }

    fn commit_once(&self, ranges: &[CommitRange]) -> Result<(), BackingFault> {
        self.in_service(Operation::Commit)?;
        let change = self.virtual_call(Operation::Commit, |backing| backing.commit(ranges))?;
        answers::commit(self.accounting, ranges, change).map_err(|breach| {
            let fault = self.breach(Operation::Commit, breach);
            let _ = self.virtual_call(Operation::Decommit, |backing| backing.decommit(ranges));
            fault
        })
    }

    /// Decommits all ranges; out of service or not, since it gives back. Under `Accounting::Buffer` nothing of them is owned
    /// afterwards.
    pub(crate) fn decommit(&self, ranges: &[CommitRange]) -> Result<(), BackingFault> {
        let change = self.virtual_call(Operation::Decommit, |backing| backing.decommit(ranges))?;
        answers::decommit(self.accounting, ranges, change).map_err(|breach| self.breach(Operation::Decommit, breach))
    }

    /// What committing the ranges would change.
    pub(crate) fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingFault> {
        let change = self.virtual_call(Operation::Cost, |backing| backing.cost(ranges))?;
        answers::cost(ranges, change).map_err(|breach| self.breach(Operation::Cost, breach))?;
        Ok(change)
    }

    /// What a region still has committed after a decommit from `most` to `least` bytes failed. An answer outside of that
    /// is a breach.
    pub(crate) fn committed_between(&self, region: RegionId, least: u64, most: u64) -> Result<u64, BackingFault> {
        let left = self.virtual_call(Operation::CommittedBytes, |backing| backing.committed_bytes(region))?;
        let granularity = self.granule();
        answers::left(granularity, least, most, left)
            .map_err(|breach| self.breach(Operation::CommittedBytes, breach))?;
        Ok(left)
    }

    fn virtual_call<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(&dyn VirtualBacking) -> Result<T, BackingError>,
    ) -> Result<T, BackingFault> {
        self.check_process(operation)?;
        let answer = contain_call(|| self.inner.known_virtual_backing().map(call).transpose());
        self.capability_answer(operation, Capability::VirtualBacking, answer, || {
            Ok(self.inner.virtual_backing()?.is_some())
        })
    }
}
