//! Copies in and out of memory that the CPU can't touch.

use super::{CheckedBacking, contain_call};
use crate::backing::capabilities::Capability;
use crate::error::{BackingFault, Operation};
use leasehold_plugin_api::{Address, BackingError, Transfer};

impl CheckedBacking {
    /// Copies what lies at `from` into `into`. The range is committed or mapped.
    pub(crate) fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingFault> {
        self.transfer_call(Operation::Read, |transfer| transfer.read(from, into))
    }

    /// Copies `bytes` to `to`. The range is committed, and the caller's alone.
    pub(crate) fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingFault> {
        self.transfer_call(Operation::Write, |transfer| transfer.write(to, bytes))
    }

    /// Sets `bytes` bytes from `to` on. The range is committed, and the caller's alone.
    pub(crate) fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingFault> {
        self.transfer_call(Operation::Fill, |transfer| transfer.fill(to, bytes, value))
    }

    fn transfer_call(
        &self,
        operation: Operation,
        call: impl FnOnce(&dyn Transfer) -> Result<(), BackingError>,
    ) -> Result<(), BackingFault> {
        self.check_process(operation)?;
        self.in_service(operation)?;
        let answer = contain_call(|| self.inner.known_transfer().map(call).transpose());
        self.capability_answer(operation, Capability::Transfer, answer, || Ok(self.inner.transfer()?.is_some()))
    }
}
