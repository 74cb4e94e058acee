//! Where the physical memory of regions comes from, and where it goes.

use crate::contents::PrefixMemory;
use leasehold_cuda_driver::{Fault, PhysicalHandle};
use leasehold_plugin_api::{BackingError, HolderId, MemoryRole};
use std::fmt::Debug;

/// What one part of a call needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Handles, each of one granule.
    pub granules: u64,
    /// For whom.
    pub holder: HolderId,
    /// What for.
    pub role: MemoryRole,
}

/// One granule of physical memory that nothing maps.
#[derive(Debug)]
pub struct Piece {
    /// The memory.
    pub handle: PhysicalHandle,
    /// Who may have left bytes there; `None` where nobody of this process did since it was made.
    pub former: Option<HolderId>,
}

/// What a source found for the parts of a call.
#[derive(Debug, Default)]
pub struct Supply {
    /// For each need as many pieces as it has granules.
    pub parts: Vec<Vec<Piece>>,
    /// Physical bytes that are newly owned for it.
    pub owned_bytes: u64,
}

/// One granule that nothing maps any more.
#[derive(Debug)]
pub struct Returned {
    /// The memory.
    pub handle: PhysicalHandle,
    /// Who left bytes there.
    pub holder: HolderId,
}

impl Returned {
    /// What was behind a prefix.
    pub(crate) fn of_prefix(memory: PrefixMemory<PhysicalHandle>) -> impl Iterator<Item = Self> {
        let PrefixMemory { handles, holder, .. } = memory;
        handles.into_iter().map(move |handle| Self { handle, holder })
    }
}

/// When a region gives up the handles of what it unmaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleRelease {
    /// Before it unmaps: the memory then goes with its mapping. What is refused leaves everything mapped.
    BeforeUnmapping,
    /// After it has unmapped: the handles go back to the source.
    AfterUnmapping,
}

/// Where physical memory comes from and goes to. No lock of a caller is held while it is called.
pub trait Source: Debug + Send + Sync {
    /// When regions give up the handles of what they unmap.
    fn handle_release(&self) -> HandleRelease;

    /// Memory for every need, into a supply that is empty.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](leasehold_plugin_api::ErrorKind::OutOfMemory),
    /// [`BudgetRefused`](leasehold_plugin_api::ErrorKind::BudgetRefused), and what the driver answers. The supply then
    /// holds what was found until there: [`restore`](Self::restore) it.
    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError>;

    /// Takes back what nobody used of a supply, whose other pieces are in regions still.
    ///
    /// # Errors
    ///
    /// What the driver answers; what it didn't take, and the source doesn't keep, is in the supply still: a debt of the
    /// regions that it was for.
    fn restore(&self, supply: &mut Supply) -> Result<(), Fault>;

    /// Takes back what regions had. Answers the physical bytes that are owned no longer.
    fn take_back(&self, returned: Vec<Returned>) -> u64;

    /// What obtaining so many granules would newly own, as things are.
    fn newly_owned(&self, granules: u64) -> u64;
}
