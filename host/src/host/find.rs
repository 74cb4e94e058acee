//! The choice of a backing by name, or by what it must offer.

use super::BackingHandle;
use super::entry::Entry;
use crate::backing::{Capability, CheckedBacking};
use crate::error::FindError;
use leasehold_plugin_api::{DeviceKey, Tier};
use std::sync::Arc;

/// What a backing must offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    tier: Option<Tier>,
    device: Option<DeviceKey>,
    needs: Vec<Need>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Capability(Capability),
    Copies,
    HostAccess,
}

impl Requirements {
    /// Any backing.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// A backing that buffers can grow on.
    #[must_use]
    pub fn growable() -> Self {
        Self::any().needing(Need::Capability(Capability::VirtualBacking))
    }

    /// The same, on that kind of memory.
    #[must_use]
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// The same, on that device.
    #[must_use]
    pub fn device(mut self, device: DeviceKey) -> Self {
        self.device = Some(device);
        self
    }

    /// The same, able to map one physical prefix into many regions.
    #[must_use]
    pub fn shared_mapping(self) -> Self {
        self.needing(Need::Capability(Capability::SharedMapping))
    }

    /// The same, able to copy in and out by address.
    #[must_use]
    pub fn transfer(self) -> Self {
        self.needing(Need::Capability(Capability::Transfer))
    }

    /// The same, with buffers that can be read and written by copies (as [`BufferSet::read`](crate::BufferSet::read)): by
    /// the CPU where it can touch the memory, else by the backing.
    #[must_use]
    pub fn copies(self) -> Self {
        self.needing(Need::Copies)
    }

    /// The same, with memory that the CPU can touch.
    #[must_use]
    pub fn host_access(self) -> Self {
        self.needing(Need::HostAccess)
    }

    fn needing(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Why a backing does not fit.
    fn unmet(&self, backing: &CheckedBacking) -> Option<String> {
        let description = backing.description();
        if let Some(tier) = self.tier.filter(|tier| *tier != description.device.tier) {
            return Some(format!("is on {}, not {tier}", description.device));
        }
        if let Some(device) = self.device.filter(|device| *device != description.device) {
            return Some(format!("is on {}, not {device}", description.device));
        }
        let unmet = self.needs.iter().find(|need| !need.is_met_by(backing))?;
        Some(format!("offers no {}", unmet.name()))
    }
}

impl Need {
    fn is_met_by(self, backing: &CheckedBacking) -> bool {
        match self {
            Need::Capability(capability) => backing.capabilities().has(capability),
            Need::Copies => backing.can_copy(),
            Need::HostAccess => backing.capabilities().host_access().is_direct(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Need::Capability(capability) => capability.name(),
            Need::Copies => "access by the CPU nor transfer",
            Need::HostAccess => "access by the CPU",
        }
    }
}

/// The backing of an entry, or its state and the reason why it can't be had.
fn ready(entry: &Entry) -> Result<&Arc<CheckedBacking>, (&'static str, String)> {
    let state = entry.state();
    match (entry.backing(), state.reason()) {
        (Some(backing), None) => Ok(backing),
        (_, reason) => Err((state.name(), reason.unwrap_or("no reason is known").to_owned())),
    }
}

pub(super) fn named(entries: &[Entry], name: &str) -> Result<BackingHandle, FindError> {
    let Some(entry) = entries.iter().find(|entry| entry.name() == name) else {
        let known: Vec<_> = entries.iter().map(Entry::name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(FindError::Unknown { name: name.to_owned(), known });
    };
    let backing =
        ready(entry).map_err(|(state, reason)| FindError::NotReady { name: name.to_owned(), state, reason })?;
    Ok(BackingHandle { backing: Arc::clone(backing) })
}

pub(super) fn best(entries: &[Entry], requirements: &Requirements) -> Result<BackingHandle, FindError> {
    let mut reasons = Vec::new();
    let mut best: Option<(&Entry, &Arc<CheckedBacking>)> = None;
    for entry in entries {
        let fits = ready(entry)
            .map_err(|(state, reason)| format!("is {state} ({reason})"))
            .and_then(|backing| requirements.unmet(backing).map_or(Ok(backing), Err));
        match fits {
            Ok(backing) if best.is_none_or(|(other, _)| entry.priority() > other.priority()) => {
                best = Some((entry, backing));
            }
            Ok(_) => {}
            Err(why) => reasons.push(format!("{} {why}", entry.name())),
        }
    }
    let reasons = if reasons.is_empty() { "there are none".to_owned() } else { reasons.join(", ") };
    let (_, backing) = best.ok_or(FindError::NoneFits { reasons })?;
    Ok(BackingHandle { backing: Arc::clone(backing) })
}

/// Refuses a host one of whose required backings is not ready.
pub(super) fn check_required(entries: &[Entry]) -> Result<(), FindError> {
    for entry in entries.iter().filter(|entry| entry.is_required()) {
        if let Err((state, reason)) = ready(entry) {
            return Err(FindError::Required { name: entry.name().to_owned(), state, reason });
        }
    }
    Ok(())
}
