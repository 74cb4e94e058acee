//! Has others give memory back where a call found none though the budget had room, and makes the call once more.

use super::{BackingFault, CheckedBacking};
use crate::error::ErrorKind;
use leasehold_plugin_api::{Accounting, MemoryRole};

impl CheckedBacking {
    /// Makes a call that takes `bytes` bytes of memory. Where there is no memory for them, and it left nothing behind,
    /// others are asked for as much; if anything came back to the books, the call is made once more. A backing that pays
    /// for itself is a party to the request: it has looked into what it has parked.
    pub(super) fn retried_with_room<T>(
        &self,
        bytes: u64,
        role: MemoryRole,
        mut call: impl FnMut() -> Result<T, BackingFault>,
    ) -> Result<T, BackingFault> {
        match call() {
            Err(fault) if fault.kind() == ErrorKind::OutOfMemory && self.has_room_made(bytes, role) => call(),
            outcome => outcome,
        }
    }

    fn has_room_made(&self, bytes: u64, role: MemoryRole) -> bool {
        let payer = match self.accounting {
            Accounting::Buffer => None,
            Accounting::Backing { .. } => Some(self.services.party()),
        };
        self.books.reclaim(bytes, role, payer) > 0
    }
}
