//! What a backing offers, asked once when it is created and compared at every admission.

use leasehold_plugin_api::CpuAccess;

/// Something that a backing may offer beyond plain allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    VirtualBacking,
    SharedMapping,
    Transfer,
}

impl Capability {
    const ALL: [Capability; 3] = [Capability::VirtualBacking, Capability::SharedMapping, Capability::Transfer];

    /// What users call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Capability::VirtualBacking => "virtual-backing",
            Capability::SharedMapping => "shared-mapping",
            Capability::Transfer => "transfer",
        }
    }
}

/// What a backing offers beyond plain allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    granularity: Option<u64>,
    shared_mapping: Presence,
    transfer: Presence,
    access: CpuAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Offered,
    Absent,
}

impl Presence {
    fn of<T>(capability: Option<T>) -> Self {
        if capability.is_some() { Self::Offered } else { Self::Absent }
    }
}

impl Capabilities {
    /// What discovery returned, and the claim of the backing's type.
    pub(super) fn new<S, T>(
        granularity: Option<u64>,
        shared_mapping: Option<S>,
        transfer: Option<T>,
        access: CpuAccess,
    ) -> Self {
        let (shared_mapping, transfer) = (Presence::of(shared_mapping), Presence::of(transfer));
        Self { granularity, shared_mapping, transfer, access }
    }

    /// The unit of commit in bytes, where address space can be reserved and committed.
    #[must_use]
    pub fn granularity(&self) -> Option<u64> {
        self.granularity
    }

    /// Whether address space can be reserved and committed: what a growing buffer needs.
    #[must_use]
    pub fn has_virtual_backing(&self) -> bool {
        self.has(Capability::VirtualBacking)
    }

    /// Whether one physical prefix can be mapped into many regions.
    #[must_use]
    pub fn has_shared_mapping(&self) -> bool {
        self.has(Capability::SharedMapping)
    }

    /// Whether memory can be copied in and out by address.
    #[must_use]
    pub fn has_transfer(&self) -> bool {
        self.has(Capability::Transfer)
    }

    /// Whether the CPU can touch the memory, as the backing's type claims: what slices need.
    #[must_use]
    pub fn host_access(&self) -> CpuAccess {
        self.access
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::VirtualBacking => self.granularity.is_some(),
            Capability::SharedMapping => self.shared_mapping == Presence::Offered,
            Capability::Transfer => self.transfer == Presence::Offered,
        }
    }

    /// The names of what is offered, `allocate` first.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let offered = Capability::ALL.into_iter().filter(|capability| self.has(*capability));
        std::iter::once("allocate").chain(offered.map(Capability::name)).collect()
    }
}
