//! One plane that grows at a fixed address.

use super::set::BufferSet;
use super::spec::BufferSpec;
use crate::backing::CheckedBacking;
use crate::error::Error;
use crate::governor::GovernorCore;
use crate::prefix::{PrefixPart, SharedPrefix};
use leasehold_plugin_api::{Address, Change};
use std::sync::Arc;

/// One region with a watermark: `len ≤ committed ≤ capacity`, always. See [`BufferSet`] for many that grow together,
/// and for what a device has to be done with before.
#[derive(Debug)]
pub struct Buffer {
    /// Invariant 1: has exactly one plane, whose base is `base`.
    set: BufferSet,
    base: Address,
}

impl Buffer {
    pub(crate) fn admit(
        backing: &Arc<CheckedBacking>,
        governor: &GovernorCore,
        spec: &BufferSpec,
    ) -> Result<Self, Error> {
        let set = BufferSet::admit(backing, governor, 1, spec)?;
        let base = set.base(0).unwrap_or(Address::new(0));
        Ok(Self { set, base })
    }

    /// Where it begins; the same for its whole life.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    /// Bytes in use.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.set.len()
    }

    /// Whether no byte is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Bytes that have physical memory behind them: a multiple of the granularity.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.set.committed()
    }

    /// What it can grow to: the capacity that was asked for, rounded up to whole granules.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.set.capacity()
    }

    /// Private physical bytes behind it. Prefixes don't count: they are owned once, wherever they are mapped.
    #[must_use]
    pub fn owned_bytes(&self) -> u64 {
        self.set.owned_bytes()
    }

    /// Bytes that are mapped, prefixes included.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.set.mapped_bytes()
    }

    /// The name of the backing.
    #[must_use]
    pub fn backing_name(&self) -> &str {
        self.set.backing_name()
    }

    /// The bytes.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the CPU can't touch the memory.
    pub fn as_slice(&self) -> Result<&[u8], Error> {
        self.set.plane(0)
    }

    /// The bytes, to write.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice), and [`WrongState`](crate::ErrorKind::WrongState) when a prefix is mapped in front:
    /// see [`private_mut`](Self::private_mut).
    pub fn as_mut_slice(&mut self) -> Result<&mut [u8], Error> {
        self.set.plane_mut(0)
    }

    /// What of the bytes may be written: those behind the prefixes. It begins [`shared`](Self::shared) bytes in.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice).
    pub fn private_mut(&mut self) -> Result<&mut [u8], Error> {
        self.set.private_mut(0)
    }

    /// Copies the bytes from `offset` on into `into`, wherever their memory is.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::read`].
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.set.read(0, offset, into)
    }

    /// Copies `bytes` into it from `offset` on, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::write`].
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.set.write(0, offset, bytes)
    }

    /// Sets `bytes` bytes from `offset` on to `value`, behind what prefixes take.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::fill`].
    pub fn fill(&mut self, offset: u64, bytes: u64, value: u8) -> Result<(), Error> {
        self.set.fill(0, offset, bytes, value)
    }

    /// Bytes that prefixes take, in front.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.set.shared()
    }

    /// Maps a prefix of one plane behind those that are mapped already. Nothing is owned for it. The length is then the end
    /// of the prefix, and growth goes on behind it.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::map_prefix`].
    pub fn map_prefix(&mut self, prefix: &SharedPrefix) -> Result<(), Error> {
        self.set.map_prefix(prefix)
    }

    /// Maps parts of prefixes of one plane one behind the other, all or none.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::map_prefix`].
    pub fn map_prefixes(&mut self, parts: &[PrefixPart]) -> Result<(), Error> {
        self.set.map_prefixes(parts)
    }

    /// Gives everything in it back, prefixes included, and keeps the address space.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::clear`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.set.clear()
    }

    /// Makes it at least `bytes` long. Within what is committed this is a comparison and a store; past it the growth is
    /// charged and committed, or refused. The base never moves. New bytes read as zero, or as what this buffer's holder
    /// left.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::grow_to`].
    #[inline]
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.set.grow_to(bytes)
    }

    /// What growing to `bytes` would newly map and newly own, without doing it.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::growth_cost`].
    pub fn growth_cost(&self, bytes: u64) -> Result<Change, Error> {
        self.set.growth_cost(bytes)
    }

    /// What mapping the parts would newly map and newly own, without doing it.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::mapping_cost`].
    pub fn mapping_cost(&self, parts: &[PrefixPart]) -> Result<Change, Error> {
        self.set.mapping_cost(parts)
    }

    /// Makes it `bytes` long, at most what it is now, and gives the whole granules past `bytes` back: what was in use,
    /// what a policy committed ahead, and what an earlier shrink failed to give back. The granule that holds the new
    /// end stays; of a buffer that grows in steps, the step.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::shrink_to`].
    pub fn shrink_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.set.shrink_to(bytes)
    }

    /// Gives everything back, and says what could not be. Dropping does the same, and logs it.
    ///
    /// # Errors
    ///
    /// As [`BufferSet::close`].
    pub fn close(self) -> Result<(), Error> {
        self.set.close()
    }
}
