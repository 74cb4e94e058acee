//! A sealed prefix, and parts of it.

use super::planes::Planes;
use crate::backing::{CheckedBacking, PrefixMemory};
use crate::error::{BufferError, Error, PrefixError, Unreleased};
use leasehold_plugin_api::{Address, PrefixId, PrefixMapping, RegionId};
use std::sync::Arc;

/// A sealed prefix: read-only wherever it is mapped. Clones share it; its memory goes back when the last of them and the
/// last buffer that maps it are gone.
#[derive(Clone, Debug)]
pub struct SharedPrefix {
    /// Sealed: nobody writes to them.
    planes: Planes,
}

impl SharedPrefix {
    /// A prefix that was just sealed.
    pub(super) fn new(planes: Planes) -> Self {
        Self { planes }
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

    /// Bytes of all planes: what it owns, once, however often it is mapped.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.planes.handle.bytes()
    }

    /// The name of the backing that made it.
    #[must_use]
    pub fn backing_name(&self) -> &str {
        self.planes.handle.backing().name()
    }

    /// How many hold it: its clones, its parts, and the buffers that map it. Where this is the only one, nobody else can
    /// make it more.
    #[must_use]
    pub fn holders(&self) -> usize {
        self.planes.handle.holders()
    }

    /// Where a plane begins in the window that its creator had. `None` when there is no such plane.
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

    /// Copies the bytes of a plane from `offset` on into `into`, wherever their memory is.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::read`](crate::BufferSet::read).
    pub fn read(&self, plane: usize, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.planes.read(plane, offset, into)
    }

    /// All of it.
    #[must_use]
    pub fn whole(&self) -> PrefixPart {
        PrefixPart { prefix: self.clone(), offset: 0, plane_bytes: self.plane_bytes() }
    }

    /// The part of each plane that begins `offset` bytes in, in whole granules.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it is empty, not in whole granules, or passes the plane.
    pub fn part(&self, offset: u64, plane_bytes: u64) -> Result<PrefixPart, Error> {
        let granule = self.planes.handle.backing().granule();
        let is_whole = plane_bytes > 0 && offset.is_multiple_of(granule) && plane_bytes.is_multiple_of(granule);
        let is_within = offset.checked_add(plane_bytes).is_some_and(|end| end <= self.plane_bytes());
        if is_whole && is_within {
            return Ok(PrefixPart { prefix: self.clone(), offset, plane_bytes });
        }
        let backing = Arc::clone(self.planes.handle.backing().name());
        Err(PrefixError::Part { backing, offset, bytes: plane_bytes, plane_bytes: self.plane_bytes(), granule }.into())
    }

    /// What one more mapping of it would newly own: nothing, where memory is shared as it should be.
    ///
    /// # Errors
    ///
    /// What the backing reports.
    pub fn incremental_owned_bytes(&self) -> Result<u64, Error> {
        Ok(self.planes.handle.backing().incremental_owned_bytes(self.planes.handle.id())?)
    }

    /// Ends this hold on it, and says what could not be given back where it was the last. Dropping does the same, and
    /// logs it.
    ///
    /// # Errors
    ///
    /// [`NotReleased`](crate::ErrorKind::NotReleased): it stays charged until [`Host::reap`](crate::Host::reap) succeeds.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.planes.handle.close().map_err(BufferError::from)?)
    }

    /// As [`close`](Self::close): answers the bytes that could not be given back.
    pub(crate) fn give_back(self) -> u64 {
        self.planes.handle.close().map_or_else(|unreleased| unreleased.remaining_bytes, |()| 0)
    }

    pub(crate) fn id(&self) -> PrefixId {
        self.planes.handle.id()
    }

    /// Refuses a prefix of another backing, before anything is asked about it.
    pub(crate) fn check_made_by(&self, backing: &Arc<CheckedBacking>) -> Result<(), PrefixError> {
        let maker = self.planes.handle.backing();
        if Arc::ptr_eq(maker, backing) {
            return Ok(());
        }
        // Two hosts may call their backings alike.
        let whose = if maker.shares_host_with(backing) { "this host" } else { "another host" };
        Err(PrefixError::Foreign { backing: Arc::clone(backing.name()), theirs: Arc::clone(maker.name()), whose })
    }
}

/// The same part of every plane of a sealed prefix. It holds the prefix.
#[derive(Clone, Debug)]
pub struct PrefixPart {
    prefix: SharedPrefix,
    /// Bytes from the beginning of each plane: whole granules.
    offset: u64,
    plane_bytes: u64,
}

impl PrefixPart {
    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &SharedPrefix {
        &self.prefix
    }

    /// Where it begins in each plane, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of each plane that it is.
    #[must_use]
    pub fn plane_bytes(&self) -> u64 {
        self.plane_bytes
    }

    /// Its memory, for a quarantine of its backing.
    pub(crate) fn share_memory(&self) -> Option<Arc<PrefixMemory>> {
        self.prefix.planes.handle.share_memory()
    }

    /// Ends this hold on the prefix, and says what could not be given back where it was the last.
    pub(crate) fn close(self) -> Result<(), Unreleased> {
        self.prefix.planes.handle.close()
    }

    /// Its bytes of one plane, mapped into a region.
    pub(crate) fn mapping(&self, plane: u64, region: RegionId, offset: u64) -> PrefixMapping {
        let begin = self.prefix.plane_bytes().saturating_mul(plane).saturating_add(self.offset);
        PrefixMapping::new(self.prefix.planes.handle.range(begin, self.plane_bytes), region, offset)
    }
}
