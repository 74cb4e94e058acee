//! What is passed across the boundary, and its conversion from and to the contract's values.
//!
//! All records are plain data of fixed layout. A number that the reader does not know counts as the worst there is.

use super::{STATUS_FAILED, STATUS_OK, STATUS_PANICKED};
use crate::{
    Accounting, Address, AllocateRequest, Allocation, AllocationId, AuthorityId, BackingError, Change, Description,
    DeviceKey, Domain, ErrorKind, HolderId, HostAccess, MemoryRole, Prefix, PrefixId, PrefixRequest, Region, RegionId,
    ReleaseOutcome, ReleaseTarget, ReserveRequest, StepScope, Tier,
};
use abi_stable::StableAbi;
use std::ffi::c_void;

/// Bytes of message that an [`ErrorRecord`] holds.
pub const MESSAGE_BYTES: usize = 440;

/// Bytes of device name that a [`DescriptionRecord`] holds.
pub const NAME_BYTES: usize = 255;

/// Borrowed UTF-8 bytes. Valid for as long as the operation that passes them says.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct Text {
    /// First byte; may be anything when `len` is 0.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Text {
    /// Borrows a text.
    #[must_use]
    pub fn borrow(text: &str) -> Self {
        Self { data: text.as_ptr(), len: text.len() }
    }
}

/// The caller-owned account of a failure. The caller clears it, the callee writes it on failure only.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct ErrorRecord {
    kind: u32,
    has_native_code: u32,
    native_code: i64,
    requested_bytes: u64,
    available_bytes: u64,
    message_len: usize,
    message: [u8; MESSAGE_BYTES],
}

impl ErrorRecord {
    /// A record with nothing in it.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            kind: 0,
            has_native_code: 0,
            native_code: 0,
            requested_bytes: 0,
            available_bytes: 0,
            message_len: 0,
            message: [0; MESSAGE_BYTES],
        }
    }

    /// Empties the record for another call. The bytes of the message stay, out of reach.
    pub fn clear(&mut self) {
        self.kind = 0;
        self.has_native_code = 0;
        self.requested_bytes = 0;
        self.available_bytes = 0;
        self.message_len = 0;
    }

    /// Writes an error. A message that doesn't fit is cut at a character.
    pub fn write(&mut self, error: &BackingError) {
        self.kind = error.kind().number();
        self.has_native_code = u32::from(error.native_code().is_some());
        self.native_code = error.native_code().unwrap_or(0);
        self.requested_bytes = error.requested_bytes();
        self.available_bytes = error.available_bytes();
        self.message_len = copy_text(error.message(), &mut self.message);
    }

    /// Reads the error. Bytes that are not UTF-8 are replaced; a length past the end is taken for the end.
    #[must_use]
    pub fn read(&self) -> BackingError {
        let message = read_text(&self.message, self.message_len);
        let message = if message.is_empty() { "no reason was given".to_owned() } else { message };
        let error = BackingError::new(ErrorKind::from_number(self.kind), message)
            .with_requested(self.requested_bytes)
            .with_available(self.available_bytes);
        if self.has_native_code == 0 { error } else { error.with_native_code(self.native_code) }
    }
}

impl ErrorRecord {
    /// What an answer's status says, where this is its error record.
    ///
    /// # Errors
    ///
    /// What is in the record, for [`STATUS_FAILED`]; the same as a panic for [`STATUS_PANICKED`]; for a status that is
    /// not known [`Unintelligible`](ErrorKind::Unintelligible).
    pub fn answer(&self, status: u32) -> Result<(), BackingError> {
        match status {
            STATUS_OK => Ok(()),
            STATUS_FAILED => Err(self.read()),
            STATUS_PANICKED => Err(BackingError::new(ErrorKind::Panicked, self.read().message())),
            status => Err(BackingError::new(ErrorKind::Unintelligible, format!("its status {status} is not known"))),
        }
    }
}

fn copy_text(text: &str, into: &mut [u8]) -> usize {
    let mut len = text.len().min(into.len());
    while !text.is_char_boundary(len) {
        len = len.saturating_sub(1);
    }
    let (Some(target), Some(source)) = (into.get_mut(..len), text.as_bytes().get(..len)) else { return 0 };
    target.copy_from_slice(source);
    len
}

fn read_text(bytes: &[u8], len: usize) -> String {
    let bytes = bytes.get(..len).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

/// A [`Domain`] or a [`DeviceKey`]: 0 device, 1 host, 2 disk, and the device's number.
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
        let ordinal = if let Domain::Device(ordinal) = domain { ordinal } else { 0 };
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

/// A [`Description`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct DescriptionRecord {
    device: DomainRecord,
    total_bytes: u64,
    host_access: u32,
    name_len: usize,
    name: [u8; NAME_BYTES],
}

impl DescriptionRecord {
    /// A record with nothing in it, for a callee to write.
    #[must_use]
    pub fn empty() -> Self {
        Self { device: DeviceKey::HOST.into(), total_bytes: 0, host_access: 0, name_len: 0, name: [0; NAME_BYTES] }
    }

    /// The record of a description.
    #[must_use]
    pub fn from_description(description: &Description) -> Self {
        let mut record = Self::empty();
        record.device = description.device.into();
        record.total_bytes = description.total_bytes;
        record.host_access = u32::from(description.host_access == HostAccess::Direct);
        record.name_len = copy_text(&description.device_name, &mut record.name);
        record
    }

    /// The description, unless its tier is not known.
    #[must_use]
    pub fn description(&self) -> Option<Description> {
        let host_access = if self.host_access == 1 { HostAccess::Direct } else { HostAccess::None };
        Some(
            Description::new(self.device.device()?, read_text(&self.name, self.name_len), host_access)
                .with_total_bytes(self.total_bytes),
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

/// A [`ReserveRequest`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct ReserveRecord {
    id: u64,
    bytes: u64,
    align: u64,
    role: RoleRecord,
    holder: u64,
}

impl From<&ReserveRequest> for ReserveRecord {
    fn from(request: &ReserveRequest) -> Self {
        Self {
            id: request.id.get(),
            bytes: request.bytes,
            align: request.align,
            role: request.role.into(),
            holder: request.holder.get(),
        }
    }
}

impl ReserveRecord {
    /// The request for a region.
    #[must_use]
    pub fn reserve(&self) -> ReserveRequest {
        ReserveRequest {
            id: RegionId::new(self.id),
            bytes: self.bytes,
            align: self.align,
            role: self.role.role(),
            holder: HolderId::new(self.holder),
        }
    }
}

/// An [`AllocateRequest`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct AllocateRecord {
    id: u64,
    bytes: u64,
    align: u64,
    role: RoleRecord,
    holder: u64,
}

impl From<&AllocateRequest> for AllocateRecord {
    fn from(request: &AllocateRequest) -> Self {
        Self {
            id: request.id.get(),
            bytes: request.bytes,
            align: request.align,
            role: request.role.into(),
            holder: request.holder.get(),
        }
    }
}

impl AllocateRecord {
    /// The request for an allocation.
    #[must_use]
    pub fn allocate(&self) -> AllocateRequest {
        AllocateRequest {
            id: AllocationId::new(self.id),
            bytes: self.bytes,
            align: self.align,
            role: self.role.role(),
            holder: HolderId::new(self.holder),
        }
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
pub struct RangeResult {
    mapped_bytes: u64,
    owned_bytes: u64,
}

impl From<Change> for RangeResult {
    fn from(change: Change) -> Self {
        Self { mapped_bytes: change.mapped_bytes, owned_bytes: change.owned_bytes }
    }
}

impl RangeResult {
    /// The change.
    #[must_use]
    pub fn change(self) -> Change {
        Change { mapped_bytes: self.mapped_bytes, owned_bytes: self.owned_bytes }
    }
}

/// A [`ReleaseTarget`] on the way in (kind 0 region, 1 allocation), a [`ReleaseOutcome`] on the way out.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct ReleaseRecord {
    kind: u32,
    id: u64,
    outcome: u32,
    remaining_bytes: u64,
}

impl ReleaseRecord {
    /// The record that asks for a release. Its outcome is the worst one until the callee writes another.
    #[must_use]
    pub fn asking(target: ReleaseTarget) -> Self {
        let (kind, id) = match target {
            ReleaseTarget::Region(id) => (0, id.get()),
            ReleaseTarget::Allocation(id) => (1, id.get()),
        };
        Self { kind, id, outcome: super::OUTCOME_QUARANTINED, remaining_bytes: u64::MAX }
    }

    /// The record that asks for the release of a prefix, whose id travels beside it.
    #[must_use]
    pub fn asking_prefix() -> Self {
        Self { kind: 2, id: 0, outcome: super::OUTCOME_QUARANTINED, remaining_bytes: u64::MAX }
    }

    /// What to release, unless the kind is not known.
    #[must_use]
    pub fn target(&self) -> Option<ReleaseTarget> {
        match self.kind {
            0 => Some(ReleaseTarget::Region(RegionId::new(self.id))),
            1 => Some(ReleaseTarget::Allocation(AllocationId::new(self.id))),
            _ => None,
        }
    }

    /// Writes how it ended, the error into its record.
    pub fn write_outcome(&mut self, outcome: &ReleaseOutcome, error: &mut ErrorRecord) {
        match outcome {
            ReleaseOutcome::Complete => {
                self.outcome = super::OUTCOME_COMPLETE;
                self.remaining_bytes = 0;
            }
            ReleaseOutcome::Failed(why) => {
                self.outcome = super::OUTCOME_FAILED;
                error.write(why);
            }
            ReleaseOutcome::Quarantined { remaining_bytes, error: why } => {
                self.outcome = super::OUTCOME_QUARANTINED;
                self.remaining_bytes = *remaining_bytes;
                error.write(why);
            }
        }
    }

    /// Reads how it ended. An outcome that is not known counts as quarantined, with everything remaining: what came with
    /// it may mean anything.
    #[must_use]
    pub fn outcome(&self, error: &ErrorRecord) -> ReleaseOutcome {
        match self.outcome {
            super::OUTCOME_COMPLETE => ReleaseOutcome::Complete,
            super::OUTCOME_FAILED => ReleaseOutcome::Failed(error.read()),
            super::OUTCOME_QUARANTINED => {
                ReleaseOutcome::Quarantined { remaining_bytes: self.remaining_bytes, error: error.read() }
            }
            outcome => ReleaseOutcome::Quarantined {
                remaining_bytes: u64::MAX,
                error: BackingError::new(ErrorKind::Unintelligible, format!("its outcome {outcome} is not known")),
            },
        }
    }
}

/// A [`PrefixRequest`].
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct PrefixRequestRecord {
    id: u64,
    bytes: u64,
    holder: u64,
}

impl From<&PrefixRequest> for PrefixRequestRecord {
    fn from(request: &PrefixRequest) -> Self {
        Self { id: request.id.get(), bytes: request.bytes, holder: request.holder.get() }
    }
}

impl PrefixRequestRecord {
    /// The request.
    #[must_use]
    pub fn request(&self) -> PrefixRequest {
        PrefixRequest { id: PrefixId::new(self.id), bytes: self.bytes, holder: HolderId::new(self.holder) }
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

/// The option's value is `integer`, 0 or 1.
pub const OPTION_BOOLEAN: u32 = 1;
/// The option's value is `integer`.
pub const OPTION_INTEGER: u32 = 2;
/// The option's value is `float`.
pub const OPTION_FLOAT: u32 = 3;
/// The option's value is `text`.
pub const OPTION_TEXT: u32 = 4;

/// The option is a scalar.
pub const LIST_NONE: u32 = 0;
/// The option is one element of a list: the elements of one list follow each other under the same key.
pub const LIST_ELEMENT: u32 = 1;
/// The option is a list without elements, and has no value.
pub const LIST_EMPTY: u32 = 2;

/// One scalar option, or one element of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct OptionRecord {
    /// The key.
    pub key: Text,
    /// Which of the values holds: one of the `OPTION_…` numbers.
    pub kind: u32,
    /// Whether it is part of a list: one of the `LIST_…` numbers.
    pub list: u32,
    /// A whole number or a truth value.
    pub integer: i64,
    /// A number with a fraction.
    pub float: f64,
    /// A text.
    pub text: Text,
}

/// What the host passes to make a backing. Everything in it is borrowed for the call, but for the services.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct CreateRequest {
    /// Valid for as long as the backing lives, and after.
    pub services: *const super::HostServicesTable,
    /// First option; may be anything when there is none.
    pub options: *const OptionRecord,
    /// Number of options.
    pub option_count: usize,
}

/// A backing that was made: the plugin's own pointer, and the table that takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct BackingInstance {
    /// The plugin's own pointer, passed back in every call. Ends with `destroy`.
    pub this: *mut c_void,
    /// Never null on success; valid for the life of the process.
    pub table: *const super::BackingTable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let mut record = ErrorRecord::empty();
        record.write(&BackingError::invalid("é".repeat(MESSAGE_BYTES)));
        let read = record.read();
        assert_eq!(read.message().len(), MESSAGE_BYTES);
        assert!(read.message().chars().all(|character| character == 'é'));
    }

    #[test]
    fn a_message_length_past_the_end_is_taken_for_the_end() {
        let mut record = ErrorRecord::empty();
        record.write(&BackingError::invalid("short"));
        record.message_len = usize::MAX;
        assert!(record.read().message().starts_with("short"));
    }

    #[test]
    fn an_error_survives_its_record() {
        let error = BackingError::out_of_memory(4096).with_available(12).with_native_code(-12);
        let mut record = ErrorRecord::empty();
        record.write(&error);
        assert_eq!(record.read(), error);
    }

    #[test]
    fn an_outcome_that_is_not_known_counts_as_quarantined() {
        let mut record = ReleaseRecord::asking(ReleaseTarget::Region(RegionId::new(7)));
        record.outcome = 99;
        record.remaining_bytes = 0;
        let outcome = record.outcome(&ErrorRecord::empty());
        assert!(matches!(outcome, ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, .. }));
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
