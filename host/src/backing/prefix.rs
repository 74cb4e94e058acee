//! A hold on a prefix's memory: whoever holds one may map and read it; with the last one it is given back.

use super::CheckedBacking;
use super::prefix_memory::PrefixMemory;
use super::quarantine::Unreturned;
use crate::error::{Operation, Unreleased};
use leasehold_plugin_api::{Address, PrefixId, PrefixRange};
use std::sync::Arc;

/// A hold on a prefix's memory. Dropping the last one gives the memory back; what can't be given back stays charged in
/// the backing's quarantine.
#[derive(Debug)]
pub(crate) struct PrefixHandle {
    /// Invariant 1: there, until the hold ends.
    memory: Option<Arc<PrefixMemory>>,
    backing: Arc<CheckedBacking>,
}

impl PrefixHandle {
    pub(super) fn new(memory: PrefixMemory, backing: &Arc<CheckedBacking>) -> Self {
        Self { memory: Some(Arc::new(memory)), backing: Arc::clone(backing) }
    }

    pub(crate) fn backing(&self) -> &Arc<CheckedBacking> {
        &self.backing
    }

    pub(crate) fn id(&self) -> PrefixId {
        self.memory().map_or(PrefixId::new(0), |memory| memory.id)
    }

    /// Where the creator's window begins.
    pub(crate) fn window(&self) -> Address {
        self.memory().map_or(Address::new(0), |memory| memory.window)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory().map_or(0, |memory| memory.bytes)
    }

    /// Physical bytes that its creation newly owned.
    pub(crate) fn newly_owned_bytes(&self) -> u64 {
        self.memory().map_or(0, |memory| memory.newly_owned_bytes)
    }

    /// The bytes of its charge are taken.
    pub(crate) fn note_used(&self, used: u64) {
        if let Some(lease) = self.memory().and_then(|memory| memory.lease.as_ref()) {
            lease.note_used(used);
        }
    }

    pub(crate) fn range(&self, offset: u64, bytes: u64) -> PrefixRange {
        PrefixRange::new(self.id(), offset, bytes)
    }

    /// How many hold the memory, this one included. Where it is one, nobody else can make it more.
    pub(crate) fn holders(&self) -> usize {
        self.memory().map_or(0, Arc::strong_count)
    }

    /// The hold, for a quarantine of this very backing.
    pub(crate) fn share_memory(&self) -> Option<Arc<PrefixMemory>> {
        self.memory().cloned()
    }

    /// Ends the hold, and says what could not be given back. Dropping does the same, and logs it.
    pub(crate) fn close(mut self) -> Result<(), Unreleased> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Unreleased> {
        if let Err(fault) = self.backing.check_process(Operation::ReleasePrefix) {
            std::mem::forget(self.memory.take());
            return Err(Unreleased { remaining_bytes: 0, fault });
        }
        match self.memory.take().and_then(Arc::into_inner) {
            Some(memory) => self.backing.give_back(Unreturned::prefix(memory)),
            None => Ok(()),
        }
    }

    fn memory(&self) -> Option<&Arc<PrefixMemory>> {
        self.memory.as_ref()
    }
}

impl Clone for PrefixHandle {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), backing: Arc::clone(&self.backing) }
    }
}

impl Drop for PrefixHandle {
    fn drop(&mut self) {
        // What could not be given back is recorded in the backing's quarantine and in the log.
        let _ = self.end();
    }
}
