//! The calls of shared mapping, with their answers checked.

use super::{CheckedBacking, next_id};
use crate::backing::answers;
use crate::backing::made::contain;
use crate::backing::prefix::PrefixHandle;
use crate::backing::prefix_memory::PrefixMemory;
use crate::backing::quarantine::Target;
use crate::error::{BackingFault, Operation};
use crate::governor::Lease;
use leasehold_plugin_api::{BackingError, HolderId, MemoryRole, PrefixId, PrefixMapping, PrefixRequest, SharedMapping};
use std::sync::Arc;

impl CheckedBacking {
    /// Takes physical memory for a prefix of `bytes` bytes, with the lease on it; where there is none, once more after others
    /// gave some back. What may have been made where the call broke off, or its answer can't be, is given back, or stays
    /// charged.
    pub(crate) fn create_prefix(
        self: &Arc<Self>,
        bytes: u64,
        role: MemoryRole,
        holder: HolderId,
        lease: Option<Lease>,
    ) -> Result<PrefixHandle, BackingFault> {
        let request = PrefixRequest { id: PrefixId::new(next_id()), bytes, role, holder };
        let target = Target::Prefix(request.id);
        let create = || {
            self.in_service(Operation::CreatePrefix)?;
            self.shared_call(Operation::CreatePrefix, |shared| shared.create_prefix(&request))
        };
        let made = match self.relieved(bytes, role, create) {
            Ok(made) => made,
            Err(fault) => {
                if fault.leaves_doubt() {
                    self.give_back_unseen(target, lease, bytes);
                }
                return Err(fault);
            }
        };
        let granularity = self.granule();
        let checked = answers::prefix(self.accounting, granularity, &request, &made)
            .and_then(|end| self.take_addresses(made.window, end));
        if let Err(breach) = checked {
            let fault = self.breach(Operation::CreatePrefix, breach);
            self.give_back_unseen(target, lease, bytes);
            return Err(fault);
        }
        let newly_owned_bytes = made.owned_bytes;
        let memory = PrefixMemory { id: request.id, window: made.window, bytes, newly_owned_bytes, lease };
        Ok(PrefixHandle::new(memory, self))
    }

    /// Ends all writing to a prefix.
    pub(crate) fn seal(&self, prefix: PrefixId) -> Result<(), BackingFault> {
        self.in_service(Operation::Seal)?;
        self.shared_call(Operation::Seal, |shared| shared.seal(prefix))
    }

    /// What one more mapping of the prefix would newly own.
    pub(crate) fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingFault> {
        let operation = Operation::IncrementalOwnedBytes;
        self.in_service(operation)?;
        let owned = self.shared_call(operation, |shared| shared.incremental_owned_bytes(prefix))?;
        answers::increment(owned).map_err(|breach| self.breach(operation, breach))?;
        Ok(owned)
    }

    /// Maps all parts at their places or none. Nothing is newly owned.
    pub(crate) fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<(), BackingFault> {
        self.in_service(Operation::MapPrefix)?;
        let change = self.shared_call(Operation::MapPrefix, |shared| shared.map_prefix(mappings))?;
        answers::mapping(Operation::MapPrefix, mappings, change).map_err(|breach| {
            let fault = self.breach(Operation::MapPrefix, breach);
            let _ = self.shared_call(Operation::Unmap, |shared| shared.unmap(mappings));
            fault
        })
    }

    /// Takes mappings away; out of service or not, since it gives back.
    pub(crate) fn unmap(&self, mappings: &[PrefixMapping]) -> Result<(), BackingFault> {
        let change = self.shared_call(Operation::Unmap, |shared| shared.unmap(mappings))?;
        answers::mapping(Operation::Unmap, mappings, change).map_err(|breach| self.breach(Operation::Unmap, breach))
    }

    fn shared_call<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(&dyn SharedMapping) -> Result<T, BackingError>,
    ) -> Result<T, BackingFault> {
        let answer = contain(|| self.inner.known_shared_mapping().map(call).transpose());
        self.capability_answer(operation, "shared-mapping", answer, || Ok(self.inner.shared_mapping()?.is_some()))
    }
}
