//! Planes that grow together in one transaction, or not at all.
//!
//! Input: an admitted backing and a [`BufferSpec`]. It owns one region a plane and, where the buffer pays, one lease on
//! everything that is committed; it holds the prefixes that are mapped in front. Dropping it gives all of them back; what
//! the backing can't take back stays charged in the backing's quarantine. One thread at a time; calls may block in the
//! system or the driver.
//!
//! Invariants, after every call and every failure:
//! 1. `len ≤ committed ≤ capacity`, for each plane, where `committed` counts only what is there for certain.
//! 2. The lease, where there is one, holds exactly what the planes are charged.
//! 3. `shared ≤ committed`: prefixes come first, and nothing private lies before them.

mod copying;
mod growing;
mod sharing;

use super::growth::GrowthPolicy;
use super::plane::Plane;
use super::spec::BufferSpec;
use crate::admission::{self, Payer};
use crate::backing::{CheckedBacking, Unreturned};
use crate::error::{BufferError, Error, PrefixError, Unreleased};
use crate::governor::GovernorCore;
use crate::prefix::PrefixPart;
use leasehold_plugin_api::{Address, CommitRange, HolderId, MemoryRole, ReleaseTarget};
use std::sync::Arc;

/// Planes of one size that grow together: say the keys and values of every layer.
///
/// On a device nothing here is ordered against the streams of the program. What a kernel writes or reads has to be over
/// before it is copied, and before it is shrunk, cleared, closed or dropped; what grew, was copied or was mapped is there
/// when the call returns.
#[derive(Debug)]
pub struct BufferSet {
    /// The length of each plane.
    len: u64,
    /// The least that is committed or mapped of any plane for certain; all are equal unless a shrink failed half-way.
    committed: u64,
    /// What prefixes take of each plane, in front.
    shared: u64,
    /// The prefixes that are mapped, one behind the other.
    parts: Vec<PrefixPart>,
    /// Prefixes that may be mapped still, or after all, since a call broke off.
    doubtful_parts: Vec<PrefixPart>,
    capacity: u64,
    granule: u64,
    growth: GrowthPolicy,
    role: MemoryRole,
    /// On whose behalf it grows: nobody asks the holder to make room for it.
    holder: HolderId,
    planes: Vec<Plane>,
    payer: Payer,
    /// Room for the ranges of one call, kept so that growing allocates nothing.
    ranges: Vec<CommitRange>,
    backing: Arc<CheckedBacking>,
}

impl BufferSet {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &GovernorCore,
        planes: usize,
        spec: &BufferSpec,
    ) -> Result<Self, Error> {
        let payer = admission::admit(backing, governor, spec.role)?;
        let granule = admission::granularity(backing)?;
        let placement = spec.placement(backing, granule)?;
        if planes == 0 {
            let why = "a set of 0 planes can hold nothing; ask for at least one".to_owned();
            return Err(BufferError::InvalidSpec { backing: Arc::clone(backing.name()), what: "buffer", why }.into());
        }
        let mut set = Self {
            len: 0,
            committed: 0,
            shared: 0,
            parts: Vec::new(),
            doubtful_parts: Vec::new(),
            capacity: placement.bytes,
            granule,
            growth: spec.growth,
            role: spec.role,
            holder: spec.holder,
            planes: Vec::new(),
            payer,
            ranges: Vec::new(),
            backing: Arc::clone(backing),
        };
        for _ in 0..planes {
            // On failure the set is dropped, which gives back the planes it has.
            let region = set.backing.reserve(placement)?;
            set.planes.push(Plane::new(region));
        }
        set.ranges.reserve_exact(planes);
        Ok(set)
    }

    /// Bytes in use of each plane.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no byte is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of each plane that have physical memory behind them, prefixes included: a multiple of the granularity.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// What each plane can grow to: the capacity that was asked for, rounded up to whole granules.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The number of planes.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.planes.len()
    }

    /// Private physical bytes behind all planes, those included that a failed call may have left. Prefixes don't count:
    /// they are owned once, wherever they are mapped.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.planes.iter().fold(0, |sum, plane| sum.saturating_add(plane.owned()))
    }

    /// Bytes that are visible in all planes: private ones and those of prefixes.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.planes.iter().fold(0, |sum, plane| sum.saturating_add(plane.charged()))
    }

    /// The name of the backing.
    #[must_use]
    pub fn backing_name(&self) -> &str {
        self.backing.name()
    }

    /// Where a plane begins; the same for the life of the set. `None` when there is no such plane.
    #[must_use]
    pub fn base(&self, plane: usize) -> Option<Address> {
        self.planes.get(plane).map(Plane::base)
    }

    /// The bytes of a plane.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such plane,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn plane(&self, plane: usize) -> Result<&[u8], Error> {
        let found = self.planes.get(plane).ok_or_else(|| no_such_plane(&self.backing, plane, self.planes.len()))?;
        Ok(found.bytes(&self.backing, self.len)?)
    }

    /// The bytes of a plane, to write.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane), and [`WrongState`](crate::ErrorKind::WrongState) when a prefix is mapped in front: see
    /// [`private_mut`](Self::private_mut).
    pub fn plane_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        if self.shared > 0 {
            return Err(PrefixError::ReadOnly { backing: Arc::clone(self.backing.name()), shared: self.shared }.into());
        }
        self.private_mut(plane)
    }

    /// What of a plane's bytes may be written: those behind the prefixes. It begins [`shared`](Self::shared) bytes in.
    ///
    /// # Errors
    ///
    /// As [`plane`](Self::plane).
    pub fn private_mut(&mut self, plane: usize) -> Result<&mut [u8], Error> {
        let Self { planes, backing, len, .. } = self;
        let count = planes.len();
        let found = planes.get_mut(plane).ok_or_else(|| no_such_plane(backing, plane, count))?;
        Ok(found.private_mut(backing, *len)?)
    }

    /// The ranges of one call: from..to of each plane, where that is not empty. Answers their bytes.
    fn fill_ranges(&mut self, span: impl Fn(&Plane) -> (u64, u64)) -> u64 {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.clear();
        ranges.extend(self.ranges_of(span));
        self.ranges = ranges;
        CommitRange::total_bytes(&self.ranges)
    }

    fn ranges_of(&self, span: impl Fn(&Plane) -> (u64, u64)) -> impl Iterator<Item = CommitRange> {
        self.planes.iter().filter_map(move |plane| {
            let (from, to) = span(plane);
            let bytes = to.checked_sub(from).filter(|bytes| *bytes > 0)?;
            Some(CommitRange::new(plane.id(), from, bytes))
        })
    }

    fn set_committed(&mut self, committed: impl Fn(&Plane) -> u64) {
        for plane in &mut self.planes {
            plane.settle(committed(plane));
        }
        self.note_committed();
    }

    fn note_committed(&mut self) {
        self.committed = self.planes.iter().map(Plane::certain).min().unwrap_or(0);
    }

    fn note_used(&self, used: u64) {
        if let Payer::Buffer(lease) = &self.payer {
            lease.note_used(used);
        }
    }

    fn refund(&mut self, bytes: u64) {
        if let Payer::Buffer(lease) = &mut self.payer {
            lease.shrink(bytes);
        }
    }

    /// Gives everything back, and says what could not be. Dropping does the same, and logs it.
    ///
    /// # Errors
    ///
    /// [`NotReleased`](crate::ErrorKind::NotReleased): what the backing could not take back stays charged until
    /// [`Host::reap`](crate::Host::reap) succeeds.
    pub fn close(mut self) -> Result<(), Error> {
        Ok(self.release_all()?)
    }

    fn release_all(&mut self) -> Result<(), BufferError> {
        let mut unreleased: Option<Unreleased> = None;
        let mut note = |this: Unreleased| {
            // The first fault is told, with the bytes of all.
            let before = unreleased.as_ref().map_or(0, |first| first.remaining_bytes);
            let remaining_bytes = before.saturating_add(this.remaining_bytes);
            let fault = unreleased.take().map_or(this.fault, |first| first.fault);
            unreleased = Some(Unreleased { remaining_bytes, fault });
        };
        let parts: Vec<_> = self.parts.drain(..).chain(self.doubtful_parts.drain(..)).collect();
        for plane in std::mem::take(&mut self.planes) {
            let lease = match &mut self.payer {
                Payer::Buffer(lease) => Some(lease.split_off(plane.owned())),
                Payer::Backing => None,
            };
            let place = (plane.base(), self.capacity);
            let entry = Unreturned::memory(ReleaseTarget::Region(plane.id()), place, plane.owned(), lease)
                .with_prefixes(parts.iter().filter_map(PrefixPart::share_memory).collect());
            self.backing.give_back(entry).unwrap_or_else(&mut note);
        }
        for part in parts {
            part.close().unwrap_or_else(&mut note);
        }
        unreleased.map_or(Ok(()), |unreleased| Err(unreleased.into()))
    }
}

fn no_such_plane(backing: &CheckedBacking, plane: usize, planes: usize) -> BufferError {
    BufferError::NoSuchPlane { backing: Arc::clone(backing.name()), plane, planes }
}

impl Drop for BufferSet {
    fn drop(&mut self) {
        // What could not be given back is recorded in the backing's quarantine and in the log.
        let _ = self.release_all();
    }
}
