//! The books of the simulated CUDA driver, as a test reads them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// All that the simulator keeps books of.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "named as what they count")]
pub struct Books {
    pub initialised: bool,
    pub devices: Vec<DeviceBooks>,
    pub reservations: Vec<ReservationBooks>,
    pub mappings: Vec<MappingBooks>,
    pub handles: Vec<HandleBooks>,
    pub allocations: Vec<AllocationBooks>,
    pub streams: u64,
    /// Pieces of work on streams that nobody has waited for.
    pub under_way: u64,
    /// How often each function was called, by its symbol, since the last reset.
    pub calls: BTreeMap<String, u64>,
    /// What somebody did that the documentation leaves undefined.
    pub violations: Vec<String>,
}

/// How much is live: what [`Simulator::counts`](super::Simulator::counts) reads, faster than the books. The layout is
/// the simulator's `BookCounts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as what they count")]
pub struct Counts {
    pub reservations: u64,
    pub reserved_bytes: u64,
    pub mappings: u64,
    pub physical: u64,
    pub handle_references: u64,
    pub allocations: u64,
    pub streams: u64,
    pub context_retains: u64,
    pub bytes: u64,
    pub violations: u64,
}

/// One device.
#[derive(Clone, Debug, Deserialize)]
pub struct DeviceBooks {
    /// Its ordinal.
    pub ordinal: u32,
    /// All its memory.
    pub limit: u64,
    /// What is in use of it.
    pub used: u64,
    /// Retains of its primary context that are not released.
    pub context_retains: u64,
}

/// One reserved range.
#[derive(Clone, Debug, Deserialize)]
pub struct ReservationBooks {
    /// Where it begins.
    pub base: u64,
    /// Its size.
    pub bytes: u64,
}

/// One mapping.
#[derive(Clone, Debug, Deserialize)]
pub struct MappingBooks {
    /// Where it begins.
    pub base: u64,
    /// Its size.
    pub bytes: u64,
    /// Of which physical memory.
    pub handle: u64,
    /// Pairs of a device and its access: 0 none, 1 read, 3 read and write.
    pub access: Vec<(u32, u32)>,
}

/// One physical memory that is alive.
#[derive(Clone, Debug, Deserialize)]
pub struct HandleBooks {
    /// Its handle.
    pub handle: u64,
    /// Whose memory it is.
    pub device: u32,
    /// Its size.
    pub bytes: u64,
    /// References that have to be released.
    pub references: u64,
    /// Where it is mapped, how many times.
    pub mappings: u64,
}

/// One plain allocation.
#[derive(Clone, Debug, Deserialize)]
pub struct AllocationBooks {
    /// Where it begins.
    pub base: u64,
    /// What was asked for.
    pub bytes: u64,
    /// Whose memory it is.
    pub device: u32,
}

impl Books {
    /// Whether nothing is live, contexts included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let memory = self.reservations.len() + self.mappings.len() + self.handles.len() + self.allocations.len();
        memory == 0
            && self.streams == 0
            && self.under_way == 0
            && self.devices.iter().all(|device| device.context_retains == 0)
    }

    /// How often a function was called since the last reset, by its symbol, such as `cuMemAlloc_v2`.
    #[must_use]
    pub fn count(&self, function: &str) -> u64 {
        self.calls.get(function).copied().unwrap_or(0)
    }

    /// Bytes in use on a device.
    #[must_use]
    pub fn used(&self, ordinal: u32) -> u64 {
        self.devices.iter().find(|device| device.ordinal == ordinal).map_or(0, |device| device.used)
    }
}
