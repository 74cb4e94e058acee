//! The contract's values as plain data of fixed layout, and their conversion both ways.
//!
//! A number that the reader does not know counts as the worst there is. Failures are in `error_record`, outcomes in
//! `release`, what a backing is made from in `creation`.

use super::text::{copy_text, read_text};
use crate::{
    Accounting, Address, AllocateRequest, Allocation, AllocationId, AuthorityId, Change, Description, DeviceKey,
    Domain, HolderId, MemoryRole, Prefix, PrefixId, PrefixRequest, Region, RegionId, ReserveRequest, StepScope, Tier,
};
use abi_stable::StableAbi;

/// Bytes of device name that a [`DescriptionRecord`] holds.
pub const NAME_BYTES: usize = 255;

/// A [`Domain`] or a [`DeviceKey`]: 0 device, 1 host, 2 disk, and the device's number.
/// Of a disk the host reads the number of the backing's entry, not this one.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct DomainRecord {
    tier: u32,
    ordinal: u32,
}

impl From<DeviceKey> for DomainRecord {
    fn from(device: DeviceKey) -> Self {
        let tier = match device.tier {
            Tier::Device => 0,
            Tier::Host => 1,
            Tier::Disk => 2,
        };
        Self { tier, ordinal: device.ordinal }
    }
}

impl From<Domain> for DomainRecord {
    fn from(domain: Domain) -> Self {
        let ordinal = match domain {
            Domain::Host => 0,
            Domain::Device(ordinal) | Domain::Disk(ordinal) => ordinal,
        };
        DeviceKey { tier: domain.tier(), ordinal }.into()
    }
}

impl DomainRecord {
    /// The device, unless the tier is not known.
    #[must_use]
    pub fn device(self) -> Option<DeviceKey> {
        let tier = match self.tier {
            0 => Tier::Device,
            1 => Tier::Host,
            2 => Tier::Disk,
            _ => return None,
        };
        Some(DeviceKey { tier, ordinal: self.ordinal })
    }
}

/// A [`MemoryRole`]: 0 kv-cache, 1 workspace, 2 weights, 3 activation.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct RoleRecord {
    kind: u32,
    step_scoped: u32,
}

impl From<MemoryRole> for RoleRecord {
    fn from(role: MemoryRole) -> Self {
        let (kind, step_scoped) = match role {
            MemoryRole::KvCache => (0, 0),
            MemoryRole::Workspace(StepScope::Lasting) => (1, 0),
            MemoryRole::Workspace(StepScope::OneStep) => (1, 1),
            MemoryRole::Weights => (2, 0),
            MemoryRole::Activation => (3, 0),
        };
        Self { kind, step_scoped }
    }
}

impl RoleRecord {
    /// The role; one that is not known is taken for a lasting workspace, which is never given up early.
    #[must_use]
    pub fn role(self) -> MemoryRole {
        match (self.kind, self.step_scoped) {
            (0, _) => MemoryRole::KvCache,
            (1, 1) => MemoryRole::Workspace(StepScope::OneStep),
            (2, _) => MemoryRole::Weights,
            (3, _) => MemoryRole::Activation,
            _ => MemoryRole::Workspace(StepScope::Lasting),
        }
    }
}

/// Free bytes that a backing can't tell.
const NOT_TOLD: u64 = u64::MAX;

/// A [`Description`]. Free bytes that can't be told are the largest number, which no device has.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct DescriptionRecord {
    device: DomainRecord,
    total_bytes: u64,
    free_bytes: u64,
    name_len: usize,
    name: [u8; NAME_BYTES],
}

impl DescriptionRecord {
    /// A record with nothing in it, for a callee to write.
    #[must_use]
    pub fn empty() -> Self {
        let device = DeviceKey::HOST.into();
        Self { device, total_bytes: 0, free_bytes: NOT_TOLD, name_len: 0, name: [0; NAME_BYTES] }
    }

    /// The record of a description.
    #[must_use]
    pub fn from_description(description: &Description) -> Self {
        let mut record = Self::empty();
        record.device = description.device.into();
        record.total_bytes = description.total_bytes;
        record.free_bytes = description.free_bytes.unwrap_or(NOT_TOLD);
        record.name_len = copy_text(&description.device_name, &mut record.name);
        record
    }

    /// The description, unless its tier is not known.
    #[must_use]
    pub fn description(&self) -> Option<Description> {
        Some(
            Description::new(self.device.device()?, read_text(&self.name, self.name_len))
                .with_total_bytes(self.total_bytes)
                .with_free_bytes(Some(self.free_bytes).filter(|bytes| *bytes != NOT_TOLD)),
        )
    }
}

/// An [`Accounting`]: 0 buffer, 1 backing with its authority.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct AccountingRecord {
    kind: u32,
    authority: [u8; 16],
}

impl From<Accounting> for AccountingRecord {
    fn from(accounting: Accounting) -> Self {
        match accounting {
            Accounting::Buffer => Self { kind: 0, authority: [0; 16] },
            Accounting::Backing { authority } => Self { kind: 1, authority: authority.to_bytes() },
        }
    }
}

impl AccountingRecord {
    /// The accounting, unless its kind is not known.
    #[must_use]
    pub fn accounting(self) -> Option<Accounting> {
        match self.kind {
            0 => Some(Accounting::Buffer),
            1 => Some(Accounting::Backing { authority: AuthorityId::from_bytes(self.authority) }),
            _ => None,
        }
    }
}

/// A [`ReserveRequest`] or an [`AllocateRequest`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct RequestRecord {
    id: u64,
    bytes: u64,
    align: u64,
    role: RoleRecord,
    holder: u64,
}

impl From<&ReserveRequest> for RequestRecord {
    fn from(request: &ReserveRequest) -> Self {
        let ReserveRequest { id, bytes, align, role, holder } = *request;
        Self { id: id.get(), bytes, align, role: role.into(), holder: holder.get() }
    }
}

impl From<&AllocateRequest> for RequestRecord {
    fn from(request: &AllocateRequest) -> Self {
        let AllocateRequest { id, bytes, align, role, holder } = *request;
        Self { id: id.get(), bytes, align, role: role.into(), holder: holder.get() }
    }
}

impl RequestRecord {
    /// It as a request for a region.
    #[must_use]
    pub fn reserve(&self) -> ReserveRequest {
        let Self { id, bytes, align, role, holder } = *self;
        ReserveRequest { id: RegionId::new(id), bytes, align, role: role.role(), holder: HolderId::new(holder) }
    }

    /// It as a request for an allocation.
    #[must_use]
    pub fn allocate(&self) -> AllocateRequest {
        let Self { id, bytes, align, role, holder } = *self;
        AllocateRequest { id: AllocationId::new(id), bytes, align, role: role.role(), holder: HolderId::new(holder) }
    }
}

/// A [`Region`] or an [`Allocation`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, StableAbi)]
pub struct RegionRecord {
    id: u64,
    base: u64,
    bytes: u64,
}

impl From<Region> for RegionRecord {
    fn from(region: Region) -> Self {
        Self { id: region.id.get(), base: region.base.get(), bytes: region.bytes }
    }
}

impl From<Allocation> for RegionRecord {
    fn from(allocation: Allocation) -> Self {
        Self { id: allocation.id.get(), base: allocation.base.get(), bytes: allocation.bytes }
    }
}

impl RegionRecord {
    /// It as a region.
    #[must_use]
    pub fn region(self) -> Region {
        Region { id: RegionId::new(self.id), base: Address::new(self.base), bytes: self.bytes }
    }

    /// It as an allocation.
    #[must_use]
    pub fn allocation(self) -> Allocation {
        Allocation { id: AllocationId::new(self.id), base: Address::new(self.base), bytes: self.bytes }
    }
}

/// A [`Change`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, StableAbi)]
pub struct ChangeRecord {
    mapped_bytes: u64,
    owned_bytes: u64,
}

impl From<Change> for ChangeRecord {
    fn from(change: Change) -> Self {
        Self { mapped_bytes: change.mapped_bytes, owned_bytes: change.owned_bytes }
    }
}

impl ChangeRecord {
    /// The change.
    #[must_use]
    pub fn change(self) -> Change {
        Change { mapped_bytes: self.mapped_bytes, owned_bytes: self.owned_bytes }
    }
}

/// A [`PrefixRequest`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct PrefixRequestRecord {
    id: u64,
    bytes: u64,
    role: RoleRecord,
    holder: u64,
}

impl From<&PrefixRequest> for PrefixRequestRecord {
    fn from(request: &PrefixRequest) -> Self {
        let PrefixRequest { id, bytes, role, holder } = *request;
        Self { id: id.get(), bytes, role: role.into(), holder: holder.get() }
    }
}

impl PrefixRequestRecord {
    /// The request.
    #[must_use]
    pub fn request(&self) -> PrefixRequest {
        let Self { id, bytes, role, holder } = *self;
        PrefixRequest { id: PrefixId::new(id), bytes, role: role.role(), holder: HolderId::new(holder) }
    }
}

/// A [`Prefix`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, StableAbi)]
pub struct PrefixRecord {
    id: u64,
    window: u64,
    bytes: u64,
    owned_bytes: u64,
}

impl From<Prefix> for PrefixRecord {
    fn from(prefix: Prefix) -> Self {
        Self { id: prefix.id.get(), window: prefix.window.get(), bytes: prefix.bytes, owned_bytes: prefix.owned_bytes }
    }
}

impl PrefixRecord {
    /// The prefix.
    #[must_use]
    pub fn prefix(self) -> Prefix {
        Prefix {
            id: PrefixId::new(self.id),
            window: Address::new(self.window),
            bytes: self.bytes,
            owned_bytes: self.owned_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_prefix_survives_its_record() {
        let (id, role, holder) = (PrefixId::new(1), MemoryRole::Weights, HolderId::new(3));
        let request = PrefixRequest { id, bytes: 2, role, holder };
        assert_eq!(PrefixRequestRecord::from(&request).request(), request);
    }

    #[test]
    fn a_description_survives_its_record_whatever_it_tells() {
        let described = Description::new(DeviceKey::device(3), "a device");
        for description in [
            described.clone(),
            described.clone().with_total_bytes(9).with_free_bytes(0),
            described.with_total_bytes(9).with_free_bytes(Some(7)),
        ] {
            assert_eq!(DescriptionRecord::from_description(&description).description(), Some(description));
        }
        assert_eq!(DescriptionRecord::empty().description().and_then(|description| description.free_bytes), None);
    }

    #[test]
    fn roles_and_devices_survive_their_records() {
        for role in [
            MemoryRole::KvCache,
            MemoryRole::Workspace(StepScope::OneStep),
            MemoryRole::Workspace(StepScope::Lasting),
            MemoryRole::Weights,
            MemoryRole::Activation,
        ] {
            assert_eq!(RoleRecord::from(role).role(), role);
        }
        for device in [DeviceKey::HOST, DeviceKey::device(3), DeviceKey { tier: Tier::Disk, ordinal: 1 }] {
            assert_eq!(DomainRecord::from(device).device(), Some(device));
        }
        assert_eq!(DomainRecord { tier: 9, ordinal: 0 }.device(), None);
    }
}
