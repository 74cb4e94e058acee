//! What is live, which calls were made and what went against the rules, as numbers and as JSON.

use crate::abi::BookCounts;
use crate::memory::Reserved;
use crate::simulation::Simulation;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How often each function was called.
#[derive(Debug, Default)]
pub(crate) struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    pub(crate) fn count(&mut self, function: &'static str) {
        *self.0.entry(function).or_default() += 1;
    }
}

impl Simulation {
    /// How much is live.
    pub(crate) fn counts(&self) -> BookCounts {
        let memory = &self.memory;
        let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        BookCounts {
            reservations: number(memory.reservations.len()),
            reserved_bytes: memory.reserved_bytes(),
            mappings: number(memory.mappings.len()),
            physical: number(memory.physical.len()),
            handle_references: memory.physical.values().map(|physical| physical.references).sum(),
            allocations: number(memory.allocations.len()),
            streams: number(self.streams.count()),
            context_retains: self.contexts.retains(),
            bytes: memory.used_bytes(),
            violations: number(memory.violations.len()),
        }
    }

    /// Everything that the books hold.
    pub(crate) fn json(&self) -> String {
        let memory = &self.memory;
        let reservation = |reserved: &Reserved| json!({ "base": reserved.base, "bytes": reserved.bytes });
        let mappings = memory.mappings.iter();
        let physical = memory.physical.iter();
        let allocations = memory.allocations.iter();
        json!({
            "initialised": self.is_initialised(),
            "devices": (0..self.settings.devices).map(|device| self.device_json(device)).collect::<Vec<_>>(),
            "reservations": memory.reservations.values().map(reservation).collect::<Vec<_>>(),
            "mappings": mappings.map(|(base, mapping)| json!({
                "base": base, "bytes": mapping.bytes, "handle": mapping.handle,
                "access": mapping.access.iter().collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "handles": physical.map(|(handle, physical)| json!({
                "handle": handle, "device": physical.device, "bytes": physical.bytes,
                "references": physical.references, "mappings": physical.mappings,
            })).collect::<Vec<_>>(),
            "allocations": allocations.map(|(base, allocation)| json!({
                "base": base, "bytes": allocation.requested, "device": allocation.device,
            })).collect::<Vec<_>>(),
            "streams": self.streams.count(),
            "under_way": self.streams.works(),
            "calls": self.calls.0,
            "violations": memory.violations,
        })
        .to_string()
    }

    fn device_json(&self, device: i32) -> Value {
        json!({
            "ordinal": device,
            "limit": self.settings.limit(device),
            "used": self.memory.used(device),
            "context_retains": self.contexts.retains_of(device),
        })
    }
}
