//! Memory by address: through the backing's transfers, or through `/proc/self/mem`, where an address that is not there is an
//! error and no signal.

use super::Check;
use super::subject::Subject;
use crate::is_all;
use leasehold_plugin_api::Address;
use std::fs::File;
use std::os::unix::fs::FileExt;

impl Subject<'_> {
    /// Fills memory with a mark.
    pub(super) fn fill(&self, at: Address, bytes: u64, mark: u8) -> Check {
        let what = |error: &dyn std::fmt::Display| format!("{bytes} bytes at {at} can't be written: {error}");
        match self.backing.as_transfer().filter(|_| !self.is_direct()) {
            Some(transfer) => transfer.fill(at, bytes, mark).map_err(|error| what(&error)),
            None => {
                let memory = File::options().write(true).open("/proc/self/mem").map_err(|error| what(&error))?;
                memory.write_all_at(&vec![mark; length(bytes)?], at.get()).map_err(|error| what(&error))
            }
        }
    }

    /// Memory as it is.
    pub(super) fn read(&self, at: Address, bytes: u64) -> Result<Vec<u8>, String> {
        let what = |error: &dyn std::fmt::Display| format!("{bytes} bytes at {at} can't be read: {error}");
        let mut into = vec![0xee; length(bytes)?];
        match self.backing.as_transfer().filter(|_| !self.is_direct()) {
            Some(transfer) => transfer.read(at, &mut into).map_err(|error| what(&error))?,
            None => {
                let memory = File::open("/proc/self/mem").map_err(|error| what(&error))?;
                memory.read_exact_at(&mut into, at.get()).map_err(|error| what(&error))?;
            }
        }
        Ok(into)
    }

    /// Memory reads as one mark.
    pub(super) fn ensure_reads(&self, at: Address, bytes: u64, mark: u8, when: &str) -> Check {
        let seen = self.read(at, bytes)?;
        if is_all(&seen, mark) {
            return Ok(());
        }
        let strange = seen.iter().position(|byte| *byte != mark);
        Err(format!("{when}: byte {strange:?} of {bytes} at {at} is not {mark:#x}"))
    }
}

fn length(bytes: u64) -> Result<usize, String> {
    usize::try_from(bytes).map_err(|_| format!("{bytes} bytes are too many"))
}
