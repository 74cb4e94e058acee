//! What a backing offers, asked once when it is created and compared at every admission.

/// What a backing offers beyond plain allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    granularity: Option<u64>,
    shared_mapping: Presence,
    transfer: Presence,
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
    /// The answers of discovery.
    pub(super) fn new<S, T>(granularity: Option<u64>, shared_mapping: Option<S>, transfer: Option<T>) -> Self {
        Self { granularity, shared_mapping: Presence::of(shared_mapping), transfer: Presence::of(transfer) }
    }

    /// The unit of commit in bytes, where address space can be reserved and committed.
    #[must_use]
    pub fn granularity(&self) -> Option<u64> {
        self.granularity
    }

    /// Whether address space can be reserved and committed: what a growing buffer needs.
    #[must_use]
    pub fn has_virtual_backing(&self) -> bool {
        self.granularity.is_some()
    }

    /// Whether one physical prefix can be mapped into many regions.
    #[must_use]
    pub fn has_shared_mapping(&self) -> bool {
        self.shared_mapping == Presence::Offered
    }

    /// Whether memory can be copied in and out by address.
    #[must_use]
    pub fn has_transfer(&self) -> bool {
        self.transfer == Presence::Offered
    }

    /// The names of what is offered, `allocate` first.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let offered = [
            ("allocate", true),
            ("virtual-backing", self.has_virtual_backing()),
            ("shared-mapping", self.has_shared_mapping()),
            ("transfer", self.has_transfer()),
        ];
        offered.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
    }
}
