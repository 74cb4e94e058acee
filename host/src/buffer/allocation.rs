//! Memory that is committed as a whole: what never grows, and what reallocating engines use.
#![expect(unsafe_code, reason = "lends committed memory out as slices")]

mod copying;

use super::spec::check_align;
use crate::admission::{self, Payer};
use crate::backing::{CheckedBacking, Placement, Unreturned, bytes};
use crate::error::{BufferError, Error};
use crate::governor::{GovernorCore, Lease, Parties};
use leasehold_plugin_api::{Address, HolderId, MemoryRole, ReleaseTarget};
use std::sync::Arc;

/// What an allocation is to be.
#[derive(Clone, Copy, Debug)]
pub struct AllocationSpec {
    bytes: u64,
    align: u64,
    role: MemoryRole,
    holder: HolderId,
}

impl AllocationSpec {
    /// `bytes` bytes for a workspace, aligned as the backing likes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let role = MemoryRole::Workspace(leasehold_plugin_api::StepScope::Lasting);
        Self { bytes, align: 1, role, holder: HolderId::NOBODY }
    }

    /// The same, at a multiple of `align` bytes, a power of two.
    #[must_use]
    pub fn align(mut self, align: u64) -> Self {
        self.align = align;
        self
    }

    /// The same, for another use than a workspace.
    #[must_use]
    pub fn role(mut self, role: MemoryRole) -> Self {
        self.role = role;
        self
    }

    /// The same, on somebody's behalf.
    #[must_use]
    pub fn holder(mut self, holder: HolderId) -> Self {
        self.holder = holder;
        self
    }

    fn placement(&self, backing: &CheckedBacking) -> Result<Placement, BufferError> {
        let refuse =
            |why: String| BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "allocation", why };
        if self.bytes == 0 {
            return Err(refuse("an allocation of 0 bytes can hold nothing; ask for at least one".to_owned()));
        }
        check_align(self.align).map_err(refuse)?;
        Ok(Placement { bytes: self.bytes, align: self.align, role: self.role, holder: self.holder })
    }
}

/// Memory that is committed as a whole and reads as zero at first. Dropping it gives it back.
#[derive(Debug)]
pub struct Allocation {
    /// Invariant 1: live, as a [`CheckedBacking`] allocated it, which overlaps no other; nobody else has it.
    inner: leasehold_plugin_api::Allocation,
    /// Invariant 2: at most the bytes of `inner`.
    len: u64,
    /// The charge for it, unless the backing pays.
    lease: Option<Lease>,
    is_live: bool,
    backing: Arc<CheckedBacking>,
}

impl Allocation {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &GovernorCore,
        spec: &AllocationSpec,
    ) -> Result<Self, Error> {
        let payer = admission::admit(backing, governor, spec.role)?;
        let placement = spec.placement(backing)?;
        let _holder = Parties::on_behalf_of(spec.holder);
        let refused = |refusal| BufferError::exhausted(backing.name(), "allocated", refusal);
        let (lease, used) = match payer {
            Payer::Buffer(mut lease) => {
                let used = lease.grow_unused(spec.bytes).map_err(refused)?;
                (Some(lease), used)
            }
            Payer::Backing => (None, 0),
        };
        let (inner, lease) = backing.allocate(placement, lease)?;
        let mut made = Self { inner, len: spec.bytes, lease, is_live: true, backing: Arc::clone(backing) };
        // The backing rounded up: what it really took is charged too, or recorded and the allocation goes back.
        if let Some(lease) = &mut made.lease {
            lease.note_used(used);
            let excess = inner.bytes.saturating_sub(spec.bytes);
            let refused = |refusal| BufferError::exhausted(backing.name(), "allocated", Box::new(refusal));
            lease.grow(excess).inspect_err(|_| lease.record(excess)).map_err(refused)?;
        }
        Ok(made)
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> Address {
        self.inner.base
    }

    /// The bytes that were asked for.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: an allocation of no bytes is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The physical bytes that the backing took.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.inner.bytes
    }

    /// The bytes.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn as_slice(&self) -> Result<&[u8], Error> {
        // SAFETY: by invariants 1 and 2 the bytes are allocated; releasing them, and writing, needs `self` exclusively.
        Ok(unsafe { bytes::of(&self.backing, self.inner.base, self.len) }?)
    }

    /// The bytes, to write.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice).
    pub fn as_mut_slice(&mut self) -> Result<&mut [u8], Error> {
        // SAFETY: as above; and `self` is borrowed exclusively.
        Ok(unsafe { bytes::of_mut(&self.backing, self.inner.base, self.len) }?)
    }

    /// Gives it back, and says when that could not be. Dropping does the same, and logs it.
    ///
    /// # Errors
    ///
    /// [`NotReleased`](crate::ErrorKind::NotReleased): it stays charged until [`Host::reap`](crate::Host::reap)
    /// succeeds.
    pub fn close(mut self) -> Result<(), Error> {
        Ok(self.release()?)
    }

    fn release(&mut self) -> Result<(), BufferError> {
        if !std::mem::take(&mut self.is_live) {
            return Ok(());
        }
        let lease = self.lease.take();
        let owned_bytes = lease.as_ref().map_or(self.inner.bytes, Lease::bytes);
        let target = ReleaseTarget::Allocation(self.inner.id);
        let place = (self.inner.base, self.inner.bytes);
        Ok(self.backing.give_back(Unreturned::memory(target, place, owned_bytes, lease))?)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // What could not be given back is recorded in the backing's quarantine and in the log.
        let _ = self.release();
    }
}
