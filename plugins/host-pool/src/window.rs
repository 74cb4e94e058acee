//! One owned range of addresses through which frames are seen: made by mmap, given back by [`Window::close`] or on
//! drop.
//!
//! In: offsets and sizes in bytes, and files. Out: the base address, and a [`Fault`] where the kernel refuses. It knows
//! neither frames nor granules. Offsets that leave the window answer `EINVAL`; nothing panics.
#![expect(unsafe_code, reason = "owns the addresses that files are mapped at, and zeroes what others left there")]

use crate::HostPool;
use crate::failpoints::{self, Failpoint};
use leasehold_host_memory::sys::{self, Counting};
use leasehold_host_memory::{AddressSpace, Fault};
use leasehold_plugin_api::{Address, HostAccess};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::BorrowedFd;

/// Which of a segment's descriptors a mapping goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    ReadOnly,
}

/// How frames are mapped, by what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Holes: pages come at the first touch, and read as zero.
    Fresh,
    /// The taker's own, whatever is there, to be written on.
    Writable,
    /// Resident, and the taker may see what is there.
    Resident,
    /// Resident, and nobody may see what is there: it is zeroed before the call returns.
    Scrubbed,
    /// For reading alone, for ever.
    ReadOnly,
}

impl Treatment {
    pub(crate) fn access(self) -> Access {
        if self == Treatment::ReadOnly { Access::ReadOnly } else { Access::ReadWrite }
    }
}

/// One owned range of addresses, inaccessible at first.
#[derive(Debug)]
pub(crate) struct Window {
    /// Invariant 1: this value is its only owner, so nobody else maps, unmaps or protects a page of it.
    ///
    /// Invariant 2: nothing refers to bytes that are mapped over, withdrawn or closed. The host promises it: it
    /// decommits, unmaps and releases only what no buffer lends out.
    ///
    /// Invariant 3: what is mapped here are frames of a [`Store`](crate::store::Store), whose files can't shrink (its
    /// invariant 1). Either the owner of this window is their one taker, and they are mapped writable nowhere else
    /// (invariant 1 of [`Pool`](crate::pool::Pool)), or they are a sealed prefix's and mapped read-only. That is the duty
    /// of whoever calls [`Window::map`].
    space: AddressSpace,
}

/// The claim that the CPU can touch what is committed here.
pub(crate) const fn host_access() -> HostAccess<HostPool> {
    // SAFETY: what is committed, allocated or a prefix's is mapped into a `Window`, so that nobody else changes what
    // its addresses mean (1). It is memory of a file that can't shrink, so it is there, and holes read as zero, so it
    // is initialised; the kernel mapped it, so its provenance was never Rust's. Its frames have one taker, or can only
    // be read (3), so nobody but the host writes to it: the pool itself does in `scrub` alone, before the host is told
    // of the range. It is taken away on the word of the `HostPool` alone that owns the `Window`, which is neither `Clone`
    // nor shares its tables (2). Nothing is claimed of a forked child, which does not inherit
    // the mappings of these shared files.
    unsafe { HostAccess::direct() }
}

impl Window {
    /// Takes `bytes` of address space, in whole pages, at a multiple of `align`, a power of two.
    pub(crate) fn reserve(bytes: u64, align: u64) -> Result<Self, Fault> {
        Ok(Self { space: AddressSpace::reserve(bytes, align, Counting::Uncounted)? })
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Address {
        self.space.base()
    }

    /// Maps a part of a file. On failure part of it may be mapped.
    ///
    /// # Safety
    ///
    /// Invariant 3: the file can't shrink and has all of the part. The frames of the part are the caller's own, or a sealed
    /// prefix's with [`Treatment::ReadOnly`].
    pub(crate) unsafe fn map(
        &self,
        offset: u64,
        bytes: u64,
        file: BorrowedFd<'_>,
        file_offset: u64,
        treatment: Treatment,
    ) -> Result<(), Fault> {
        let base = self.space.part(offset, bytes)?;
        self.map_file(base, bytes, file, file_offset, treatment)?;
        if treatment == Treatment::Scrubbed { self.scrub(base, bytes) } else { Ok(()) }
    }

    /// Resident pages are mapped at once, several at a time, and writable: the kernel has no reason to be told of the
    /// first write to a page of such a file. Where it maps them at the first touch instead, that is as good, so nothing
    /// depends on it: `MAP_POPULATE`, mmap(2).
    fn map_file(
        &self,
        base: Address,
        bytes: u64,
        file: BorrowedFd<'_>,
        file_offset: u64,
        treatment: Treatment,
    ) -> Result<(), Fault> {
        failpoints::check(Failpoint::Map)?;
        let call = "mmap(MAP_SHARED, MAP_FIXED)";
        let length = sys::length(call, bytes)?;
        let protection = match treatment.access() {
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadOnly => ProtFlags::READ,
        };
        let population = match treatment {
            Treatment::Resident | Treatment::Scrubbed => MapFlags::POPULATE,
            Treatment::Fresh | Treatment::Writable | Treatment::ReadOnly => MapFlags::empty(),
        };
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE | population;
        // SAFETY: the part that MAP_FIXED replaces is within the window (1), and nothing refers to it (2).
        let mapped = unsafe { rustix::mm::mmap(base.to_pointer(), length, protection, flags, file, file_offset) };
        mapped.map(|_| ()).map_err(|errno| Fault::new(call, errno))
    }

    /// Zeroes a part that this call has mapped readable and writable.
    fn scrub(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        let length = sys::length("zeroing", bytes)?;
        // SAFETY: the part is within the window (1) and was mapped writable by the caller; the file is longer than what
        // is mapped of it; the host has not been told of the part yet, so nothing refers to it (2).
        unsafe { base.to_pointer::<u8>().write_bytes(0, length) };
        Ok(())
    }

    /// Has children that are forked off inherit nothing of what is mapped in a part: the memory is shared, so that a child
    /// would write into it, and keep the addresses of it.
    pub(crate) fn keep_from_children(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        failpoints::check(Failpoint::KeepFromChildren)?;
        let base = self.space.part(offset, bytes)?;
        // SAFETY: the part is within the window (1).
        unsafe { sys::keep_from_children(base, bytes) }
    }

    /// Puts inaccessible space in the place of a part: whatever was mapped there is there no longer. On failure it
    /// still is.
    pub(crate) fn withdraw(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        failpoints::check(Failpoint::Withdraw)?;
        let base = self.space.part(offset, bytes)?;
        // SAFETY: the part is within the window (1), and the host has no use for its bytes (2).
        unsafe { sys::replace(base, bytes) }
    }

    /// Gives the addresses back and all that is mapped there, or the window itself where the kernel refuses.
    pub(crate) fn close(self) -> Result<(), (Self, Fault)> {
        if let Err(fault) = failpoints::check(Failpoint::Unmap) {
            return Err((self, fault));
        }
        self.space.close().map_err(|(space, fault)| (Self { space }, fault))
    }
}
