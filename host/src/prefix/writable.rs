//! A prefix that its creator still writes.
#![expect(unsafe_code, reason = "lends the creator's window out to write")]

use super::planes::Planes;
use super::shared::SharedPrefix;
use super::spec::PrefixSpec;
use crate::admission::{self, Payer};
use crate::backing::{CheckedBacking, length, part_mut};
use crate::error::{BackingFault, BufferError, Error, PrefixError};
use crate::governor::{GovernorCore, Parties};
use leasehold_plugin_api::Address;
use std::fmt;
use std::sync::Arc;

/// A prefix that is not sealed yet: its creator's to write, and mapped nowhere. It reads as zero at first, or as what its
/// holder left. Dropping it gives its memory back.
#[derive(Debug)]
pub struct Prefix {
    /// Invariant 1: nobody else holds them, and they are mapped nowhere.
    planes: Planes,
    /// Invariant 2: [`Access::InDoubt`] once sealing was asked for and broke off; what was sealed is no `Prefix` any more.
    access: Access,
}

/// Whether the window can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Writable,
    /// Sealing it broke off: it may be sealed.
    InDoubt,
}

/// A prefix that could not be sealed, and why. It is as it was: it may be written to, sealed again, or dropped. Where
/// sealing broke off in the middle it can only be read and dropped.
#[derive(Debug)]
#[non_exhaustive]
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
        admission::require_shared_mapping(backing)?;
        let total = spec.total_bytes(backing)?;
        let _holder = Parties::on_behalf_of(spec.holder);
        let (lease, used) = match payer {
            Payer::Buffer(mut lease) => {
                let refused = |refusal| BufferError::exhausted(backing.name(), "made", refusal);
                let used = lease.grow_unused(total).map_err(refused)?;
                (Some(lease), used)
            }
            Payer::Backing => (None, 0),
        };
        let handle = backing.create_prefix(total, spec.role, spec.holder, lease)?;
        handle.note_used(used);
        let planes = Planes { handle, count: spec.planes, plane_bytes: spec.plane_bytes };
        Ok(Self { planes, access: Access::Writable })
    }

    /// The number of planes.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.planes.count
    }

    /// Bytes of each plane.
    #[must_use]
    pub fn plane_bytes(&self) -> u64 {
        self.planes.plane_bytes
    }

    /// Bytes of all planes: what it owns, once, however often it will be mapped.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.planes.handle.bytes()
    }

    /// Physical bytes that its creation newly owned: fewer than it owns where parked memory served.
    #[must_use]
    pub fn newly_owned_bytes(&self) -> u64 {
        self.planes.handle.newly_owned_bytes()
    }

    /// Where a plane begins in the creator's window. `None` when there is no such plane.
    #[must_use]
    pub fn base(&self, plane: usize) -> Option<Address> {
        self.planes.base(plane)
    }

    /// The bytes of a plane.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such plane,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn plane(&self, plane: usize) -> Result<&[u8], Error> {
        Ok(self.planes.bytes(plane)?)
    }

    /// The bytes of a plane, to write.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane), and [`WrongState`](crate::ErrorKind::WrongState) when sealing it broke off.
    pub fn plane_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        self.check_writable()?;
        // SAFETY: by invariant 2 the prefix is not sealed, and by invariant 1 nobody else holds it.
        Ok(unsafe { self.planes.bytes_mut(plane) }?)
    }

    /// Copies `bytes` into a plane from `offset` on, wherever its memory is.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::write`](crate::BufferSet::write), and [`WrongState`](crate::ErrorKind::WrongState) when sealing it
    /// broke off.
    pub fn write(&mut self, plane: usize, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.planes.place(plane, offset, length(bytes))?;
        self.check_writable()?;
        let backing = Arc::clone(self.planes.handle.backing());
        backing.copy_in(place, bytes, || Ok(part_mut(self.plane_mut(plane)?, offset, length(bytes))))
    }

    /// Copies the bytes of a plane from `offset` on into `into`, wherever their memory is.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::read`](crate::BufferSet::read).
    pub fn read(&self, plane: usize, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.planes.read(plane, offset, into)
    }

    fn check_writable(&self) -> Result<(), PrefixError> {
        match self.access {
            Access::Writable => Ok(()),
            Access::InDoubt => {
                Err(PrefixError::SealInDoubt { backing: Arc::clone(self.planes.handle.backing().name()) })
            }
        }
    }

    /// Ends all writing, for ever: from now on it is read-only wherever it is mapped.
    ///
    /// # Errors
    ///
    /// What the backing reports, with the prefix.
    pub fn seal(mut self) -> Result<SharedPrefix, Unsealed> {
        let handle = &self.planes.handle;
        match handle.backing().seal(handle.id()) {
            Ok(()) => Ok(SharedPrefix::new(self.planes)),
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
        Ok(self.planes.handle.close().map_err(BufferError::from)?)
    }
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
