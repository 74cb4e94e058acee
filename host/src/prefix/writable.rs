//! A prefix that its creator still writes.
#![expect(unsafe_code, reason = "lends the creator's window out as slices")]

use super::shared::SharedPrefix;
use super::spec::PrefixSpec;
use crate::admission::{self, Payer};
use crate::backing::{CheckedBacking, PrefixHandle, bytes};
use crate::error::{BackingFault, BufferError, Error, PrefixError};
use crate::governor::{GovernorCore, Parties};
use leasehold_plugin_api::Address;
use std::fmt;
use std::sync::Arc;

/// A prefix that is not sealed yet: its creator's to write, and mapped nowhere. It reads as zero at first, or as what its
/// holder left. Dropping it gives its memory back.
#[derive(Debug)]
pub struct Prefix {
    /// Invariant 1: nobody else holds it, and it is mapped nowhere.
    handle: PrefixHandle,
    planes: usize,
    /// Invariant 2: `planes × plane_bytes` are the bytes of the prefix.
    plane_bytes: u64,
    access: Access,
}

/// Whether the window can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Writable,
    /// Sealing it broke off: it may be sealed.
    InDoubt,
}

/// A prefix that could not be sealed, and why. It is as it was: it may be written to, sealed again, or dropped.
#[derive(Debug)]
pub struct Unsealed {
    /// The prefix.
    pub prefix: Prefix,
    /// Why it is not sealed.
    pub error: Error,
}

impl Prefix {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &GovernorCore,
        spec: &PrefixSpec,
    ) -> Result<Self, Error> {
        let payer = admission::admit(backing, governor, spec.role)?;
        admission::shared_mapping(backing)?;
        let total = spec.total_bytes(backing)?;
        let _holder = Parties::on_behalf_of(spec.holder);
        let (lease, used) = match payer {
            Payer::Buffer(mut lease) => {
                let refused = |refusal| BufferError::exhausted(backing.name(), "shared", refusal);
                let used = lease.grow_unused(total).map_err(refused)?;
                (Some(lease), used)
            }
            Payer::Backing => (None, 0),
        };
        let handle = backing.create_prefix(total, spec.holder, lease)?;
        handle.note_used(used);
        Ok(Self { handle, planes: spec.planes, plane_bytes: spec.plane_bytes, access: Access::Writable })
    }

    /// The number of planes.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// Bytes of each plane.
    #[must_use]
    pub fn plane_bytes(&self) -> u64 {
        self.plane_bytes
    }

    /// Bytes of all planes: what it owns, once, however often it will be mapped.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.handle.bytes()
    }

    /// Physical bytes that its creation newly owned: fewer than it owns where parked memory served.
    #[must_use]
    pub fn newly_owned_bytes(&self) -> u64 {
        self.handle.newly_owned_bytes()
    }

    /// Where a plane begins in the creator's window. `None` when there is no such plane.
    #[must_use]
    pub fn base(&self, plane: usize) -> Option<Address> {
        plane_base(&self.handle, self.planes, self.plane_bytes, plane)
    }

    /// The bytes of a plane.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such plane,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn plane(&self, plane: usize) -> Result<&[u8], Error> {
        let base = self.base(plane).ok_or_else(|| no_such_plane(&self.handle, plane, self.planes))?;
        // SAFETY: by invariant 2 the plane lies in the window of a live prefix; writing needs `self` exclusively.
        Ok(unsafe { bytes::of(self.handle.backing(), base, self.plane_bytes) }?)
    }

    /// The bytes of a plane, to write.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane), and [`WrongState`](crate::ErrorKind::WrongState) when sealing it broke off.
    pub fn plane_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        let base = self.base(plane).ok_or_else(|| no_such_plane(&self.handle, plane, self.planes))?;
        if self.access == Access::InDoubt {
            return Err(PrefixError::SealInDoubt { backing: Arc::clone(self.handle.backing().name()) }.into());
        }
        // SAFETY: as above; the prefix is not sealed, by invariant 1 nobody else has it, and it is borrowed exclusively.
        Ok(unsafe { bytes::of_mut(self.handle.backing(), base, self.plane_bytes) }?)
    }

    /// Ends all writing, for ever: from now on it is read-only wherever it is mapped.
    ///
    /// # Errors
    ///
    /// What the backing reports, with the prefix.
    pub fn seal(mut self) -> Result<SharedPrefix, Unsealed> {
        match self.handle.backing().seal(self.handle.id()) {
            Ok(()) => Ok(SharedPrefix::new(self.handle, self.planes, self.plane_bytes)),
            Err(fault) => {
                self.note(&fault);
                Err(Unsealed { prefix: self, error: fault.into() })
            }
        }
    }

    fn note(&mut self, fault: &BackingFault) {
        if fault.leaves_doubt() {
            self.access = Access::InDoubt;
        }
    }

    /// Gives its memory back, and says what could not be. Dropping does the same, and logs it.
    ///
    /// # Errors
    ///
    /// [`NotReleased`](crate::ErrorKind::NotReleased): it stays charged until [`Host::reap`](crate::Host::reap) succeeds.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.handle.close().map_err(BufferError::from)?)
    }
}

/// Where a plane begins in the creator's window.
pub(super) fn plane_base(handle: &PrefixHandle, planes: usize, plane_bytes: u64, plane: usize) -> Option<Address> {
    let offset = u64::try_from(plane).ok()?.checked_mul(plane_bytes)?;
    handle.window().checked_add(offset).filter(|_| plane < planes)
}

pub(super) fn no_such_plane(handle: &PrefixHandle, plane: usize, planes: usize) -> BufferError {
    BufferError::NoSuchPlane { backing: Arc::clone(handle.backing().name()), plane, planes }
}

impl From<Unsealed> for Error {
    fn from(unsealed: Unsealed) -> Self {
        unsealed.error
    }
}

impl fmt::Display for Unsealed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl std::error::Error for Unsealed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
