//! The call of plain allocation, with its answer checked.

use super::{CheckedBacking, Placement, next_id};
use crate::backing::answers;
use crate::backing::quarantine::Target;
use crate::error::{BackingFault, Operation};
use crate::governor::Lease;
use leasehold_plugin_api::{AllocateRequest, Allocation, AllocationId, ReleaseTarget};

impl CheckedBacking {
    /// Hands out memory that is committed as a whole, with the lease on it; where there is none, once more after others gave
    /// some back. What may have been made where the call broke off, or its answer can't be, is given back, or stays charged.
    pub(crate) fn allocate(
        &self,
        placement: Placement,
        mut lease: Option<Lease>,
    ) -> Result<(Allocation, Option<Lease>), BackingFault> {
        let Placement { bytes, role, .. } = placement;
        let allocation = self.retried_with_room(bytes, role, || self.allocate_once(placement, &mut lease))?;
        Ok((allocation, lease))
    }

    /// Each try has a number of its own: a backing that says it has no memory may have made something all the same.
    fn allocate_once(&self, placement: Placement, lease: &mut Option<Lease>) -> Result<Allocation, BackingFault> {
        self.in_service(Operation::Allocate)?;
        let Placement { bytes, align, role, holder } = placement;
        let request = AllocateRequest { id: AllocationId::new(next_id()), bytes, align, role, holder };
        let target = Target::Memory(ReleaseTarget::Allocation(request.id));
        let allocation = self.call(Operation::Allocate, || self.inner.allocate(&request)).inspect_err(|fault| {
            if fault.leaves_doubt() {
                let (lease, bytes) = self.in_whole_granules(lease.take(), bytes);
                self.give_back_unseen(target, lease, bytes);
            }
        })?;
        let checked =
            answers::allocation(&request, &allocation).and_then(|end| self.take_addresses(allocation.base, end));
        checked.map_err(|breach| {
            let fault = self.breach(Operation::Allocate, breach);
            self.give_back_unseen(target, lease.take(), bytes);
            fault
        })?;
        Ok(allocation)
    }

    /// What may have been taken for an allocation, charged: a backing hands out whole granules.
    fn in_whole_granules(&self, lease: Option<Lease>, bytes: u64) -> (Option<Lease>, u64) {
        let whole = bytes.checked_next_multiple_of(self.granule()).unwrap_or(bytes);
        let lease = lease.map(|mut lease| {
            lease.record(whole.saturating_sub(bytes));
            lease
        });
        (lease, whole)
    }
}
