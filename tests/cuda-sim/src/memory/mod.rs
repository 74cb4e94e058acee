//! Device memory: what is reserved, what exists, what is mapped where, who may reach it.
//!
//! | file | what |
//! |---|---|
//! | `reservations` | address space |
//! | `physical` | physical memory and its handles |
//! | `mappings` | which physical memory is seen where, and by which device |
//! | `plain` | `cuMemAlloc` |
//! | `reach` | which bytes of the store a copy or a fill touches, and whether its device may |
//!
//! Rules cite the CUDA Driver API by function. Every function checks first and acts after, so a refusal changes
//! nothing.

mod mappings;
mod physical;
mod plain;
mod reach;
mod reservations;

pub(crate) use mappings::Mapping;
pub(crate) use physical::{Physical, granularity};
pub(crate) use plain::Allocation;
pub(crate) use reach::{Piece, Wish};
pub(crate) use reservations::Reserved;

use crate::settings::Settings;
use crate::store::Store;
use std::collections::BTreeMap;

/// All memory of all devices.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// By base address.
    pub(crate) reservations: BTreeMap<u64, Reserved>,
    /// By base address. None overlap, each lies within one reservation.
    pub(crate) mappings: BTreeMap<u64, Mapping>,
    /// By handle; alive while it has a reference or a mapping.
    pub(crate) physical: BTreeMap<u64, Physical>,
    /// By base address.
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    /// By device; see [`Memory::used`].
    used: BTreeMap<i32, u64>,
    handles_made: u64,
    /// The one that ended last.
    handles_ended: Vec<u64>,
    pub(crate) store: Store,
    /// Whether the call that is made acts on the first half of its mappings alone, since a test planned that.
    pub(crate) halves: bool,
    /// Whether read-only access is enforced nowhere.
    pub(crate) lets_write: bool,
    /// What somebody did that the documentation leaves undefined.
    pub(crate) violations: Vec<String>,
}

impl Memory {
    /// Bytes in use on a device: physical memory that is alive, and plain allocations.
    pub(crate) fn used(&self, device: i32) -> u64 {
        self.used.get(&device).copied().unwrap_or(0)
    }

    /// Bytes in use on all devices.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.values().sum()
    }

    fn charge(&mut self, device: i32, bytes: u64) {
        *self.used.entry(device).or_default() += bytes;
    }

    fn refund(&mut self, device: i32, bytes: u64) {
        *self.used.entry(device).or_default() -= bytes;
    }

    /// Bytes left on a device.
    pub(crate) fn free(&self, settings: &Settings, device: i32) -> u64 {
        settings.limit(device).saturating_sub(self.used(device))
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reservations.values().map(|reserved| reserved.bytes).sum()
    }

    /// Whether nothing is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.reservations.is_empty()
            && self.mappings.is_empty()
            && self.physical.is_empty()
            && self.allocations.is_empty()
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.violations.push(text);
    }
}
