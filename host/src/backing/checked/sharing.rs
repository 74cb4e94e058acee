//! The calls of shared mapping, with their answers checked.

use super::{CheckedBacking, contain_call, next_id};
use crate::backing::answers;
use crate::backing::capabilities::Capability;
use crate::backing::prefix::PrefixHandle;
use crate::backing::prefix_memory::PrefixMemory;
use crate::backing::quarantine::Target;
use crate::error::{BackingFault, Operation};
use crate::governor::Lease;
use leasehold_plugin_api::{
    BackingError, HolderId, MemoryRole, Prefix, PrefixId, PrefixMapping, PrefixRequest, SharedMapping,
};
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
        mut lease: Option<Lease>,
    ) -> Result<PrefixHandle, BackingFault> {
        let create = || self.create_prefix_once(bytes, role, holder, &mut lease);
        let Prefix { id, window, owned_bytes: newly_owned_bytes, .. } = self.retried_with_room(bytes, role, create)?;
        Ok(PrefixHandle::new(PrefixMemory { id, window, bytes, newly_owned_bytes, lease }, self))
    }

    /// Each try has a number of its own, as an allocation has.
    fn create_prefix_once(
        &self,
        bytes: u64,
        role: MemoryRole,
        holder: HolderId,
        lease: &mut Option<Lease>,
    ) -> Result<Prefix, BackingFault> {
        let operation = Operation::CreatePrefix;
        self.in_service(operation)?;
        let request = PrefixRequest { id: PrefixId::new(next_id()), bytes, role, holder };
        let target = Target::Prefix(request.id);
        let made = self.shared_call(operation, |shared| shared.create_prefix(&request)).inspect_err(|fault| {
            if fault.leaves_doubt() {
                self.give_back_unseen(target, lease.take(), bytes);
            }
        })?;
        let checked = answers::prefix(self.accounting, self.granule(), &request, &made)
            .and_then(|end| self.take_addresses(made.window, end));
        checked.map_err(|breach| {
            let fault = self.breach(operation, breach);
            self.give_back_unseen(target, lease.take(), bytes);
            fault
        })?;
        Ok(made)
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
        self.check_process(operation)?;
        let answer = contain_call(|| self.inner.known_shared_mapping().map(call).transpose());
        self.capability_answer(operation, Capability::SharedMapping, answer, || {
            Ok(self.inner.shared_mapping()?.is_some())
        })
    }
}
