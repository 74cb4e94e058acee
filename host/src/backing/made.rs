//! A backing that was made, through either door, and what it says of itself.
//!
//! Linked in, it is called by its traits; loaded, through its tables. From here on both answer alike: a panic is a failure
//! with its words, in discovery as in every other call. Nothing is checked here but what could never be used; see
//! `checked`.

use super::imported::ImportedBacking;
use super::{Capabilities, answers};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, Backing, BackingError, CpuAccess, Description, ErrorKind, ReleaseOutcome,
    ReleaseTarget, SharedMapping, Tier, Transfer, VirtualBacking,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A backing that was made.
pub(crate) enum MadeBacking {
    /// Of a crate that is linked in, or brought by the program.
    Linked {
        /// The backing.
        backing: Box<dyn Backing>,
        /// What its type claims.
        access: CpuAccess,
    },
    /// Of a library.
    Loaded(ImportedBacking),
}

/// What a backing says of itself.
pub(crate) struct Discovery {
    pub(crate) description: Description,
    pub(crate) accounting: Accounting,
    pub(crate) capabilities: Capabilities,
}

/// Runs a call to a backing; a panic of code that is linked in becomes an error, as it does across a library.
pub(crate) fn contain<T>(call: impl FnOnce() -> Result<T, BackingError>) -> Result<T, BackingError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(BackingError::from_panic("the plugin", payload)))
}

impl MadeBacking {
    /// Asks everything, and refuses what could never be used.
    pub(crate) fn discover(&self) -> Result<Discovery, BackingError> {
        let discovery = match self {
            Self::Linked { backing, access } => contain(|| Ok(Discovery::of_linked(&**backing, *access))),
            Self::Loaded(backing) => Discovery::of_loaded(backing),
        }?;
        if let Some(granularity) = discovery.capabilities.granularity() {
            answers::granularity(granularity).map_err(|breach| BackingError::new(ErrorKind::Internal, breach))?;
        }
        Ok(discovery)
    }

    /// Ends it.
    pub(crate) fn destroy(self) -> Result<(), BackingError> {
        contain(|| {
            drop(self);
            Ok(())
        })
    }

    pub(super) fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        match self {
            Self::Linked { backing, .. } => backing.allocate(request),
            Self::Loaded(backing) => backing.allocate(request),
        }
    }

    pub(super) fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match self {
            Self::Linked { backing, .. } => backing.release(target),
            Self::Loaded(backing) => backing.release(target),
        }
    }

    pub(super) fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        match self {
            Self::Linked { backing, .. } => backing.trim(bytes),
            Self::Loaded(backing) => backing.trim(bytes),
        }
    }

    /// The virtual backing that was discovered: of a library as it was found then, without a question of its own.
    pub(super) fn known_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        match self {
            Self::Linked { backing, .. } => backing.as_virtual_backing(),
            Self::Loaded(backing) => backing.known_virtual_backing().map(|found| -> &dyn VirtualBacking { found }),
        }
    }

    /// Shared mapping as it was discovered.
    pub(super) fn known_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        match self {
            Self::Linked { backing, .. } => backing.as_shared_mapping(),
            Self::Loaded(backing) => backing.known_shared_mapping().map(|found| -> &dyn SharedMapping { found }),
        }
    }

    pub(super) fn shared_mapping(&self) -> Result<Option<&dyn SharedMapping>, BackingError> {
        match self {
            Self::Linked { backing, .. } => Ok(backing.as_shared_mapping()),
            Self::Loaded(backing) => Ok(backing.shared_mapping()?.map(|found| -> &dyn SharedMapping { found })),
        }
    }

    /// The transfers as they were discovered.
    pub(super) fn known_transfer(&self) -> Option<&dyn Transfer> {
        match self {
            Self::Linked { backing, .. } => backing.as_transfer(),
            Self::Loaded(backing) => backing.known_transfer().map(|found| -> &dyn Transfer { found }),
        }
    }

    pub(super) fn transfer(&self) -> Result<Option<&dyn Transfer>, BackingError> {
        match self {
            Self::Linked { backing, .. } => Ok(backing.as_transfer()),
            Self::Loaded(backing) => Ok(backing.transfer()?.map(|found| -> &dyn Transfer { found })),
        }
    }

    pub(super) fn virtual_backing(&self) -> Result<Option<&dyn VirtualBacking>, BackingError> {
        match self {
            Self::Linked { backing, .. } => Ok(backing.as_virtual_backing()),
            Self::Loaded(backing) => Ok(backing.virtual_backing()?.map(|found| -> &dyn VirtualBacking { found })),
        }
    }
}

impl Discovery {
    /// The same; of a disk with the number that its host gave it.
    pub(crate) fn on_disk(mut self, number: u32) -> Self {
        if self.description.device.tier == Tier::Disk {
            self.description.device.ordinal = number;
        }
        self
    }

    fn of_linked(backing: &dyn Backing, access: CpuAccess) -> Self {
        let granularity = backing.as_virtual_backing().map(VirtualBacking::granularity);
        Self {
            description: backing.describe(),
            accounting: backing.accounting(),
            capabilities: Capabilities::new(granularity, backing.as_shared_mapping(), backing.as_transfer(), access),
        }
    }

    fn of_loaded(backing: &ImportedBacking) -> Result<Self, BackingError> {
        let granularity = match backing.virtual_backing()? {
            Some(found) => Some(found.ask_granularity()?),
            None => None,
        };
        Ok(Self {
            description: backing.describe()?,
            accounting: backing.accounting()?,
            capabilities: Capabilities::new(
                granularity,
                backing.shared_mapping()?,
                backing.transfer()?,
                backing.access(),
            ),
        })
    }
}
