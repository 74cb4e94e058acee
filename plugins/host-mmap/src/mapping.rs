//! One owned range of address space, with its huge-page advice, and what is done to parts of it.
//!
//! In: sizes and offsets in bytes. Out: the base address, and a [`Fault`] where the kernel refuses. It knows nothing of
//! granules or of what is committed (`runs.rs`). Offsets that leave the mapping answer `EINVAL`; nothing panics.
#![expect(unsafe_code, reason = "owns the addresses that the system calls act on")]

use crate::HostMmap;
use leasehold_host_memory::sys::{self, Counting, HugePageAdvice};
use leasehold_host_memory::{AddressSpace, Fault};
use leasehold_plugin_api::{Address, HostAccess};

/// One owned range of address space, inaccessible at first.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Invariant 1: this value is its only owner, so nobody else maps, unmaps or protects a page of it.
    ///
    /// Invariant 2: nothing refers to bytes that are withdrawn, discarded or closed. The host promises it: it decommits
    /// and releases only what no buffer lends out.
    space: AddressSpace,
    advice: Option<HugePageAdvice>,
}

/// The claim that the CPU can touch what is committed here.
pub(crate) const fn host_access() -> HostAccess<HostMmap> {
    // SAFETY: committed bytes are pages that the kernel has mapped readable and writable for one `Mapping` (1), which
    // read as zero at first; this crate never touches them, and takes them away only on the word of the `HostMmap` that owns
    // the `Mapping`, which is neither `Clone` nor shares its tables (2). They are private and anonymous, without
    // `MADV_DONTFORK`, so that a forked child has its own copy.
    unsafe { HostAccess::direct_and_copied_by_fork() }
}

impl Mapping {
    /// Takes `bytes` of address space, in whole pages, at a multiple of `align`, a power of two.
    pub(crate) fn reserve(
        bytes: u64,
        align: u64,
        counting: Counting,
        advice: Option<HugePageAdvice>,
    ) -> Result<Self, Fault> {
        let mapping = Self { space: AddressSpace::reserve(bytes, align, counting)?, advice };
        mapping.advise(mapping.base(), bytes)?;
        Ok(mapping)
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Address {
        self.space.base()
    }

    /// Makes a range readable and writable. On failure part of it may be.
    pub(crate) fn open_access(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.space.part(offset, bytes)?;
        // SAFETY: the range is within the mapping (1).
        unsafe { sys::open_access(base, bytes) }
    }

    /// Puts a page behind every address of an accessible range. On failure part of it may have one.
    pub(crate) fn populate(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.space.part(offset, bytes)?;
        // SAFETY: the range is within the mapping (1).
        unsafe { sys::populate(base, bytes) }
    }

    /// Gives the pages of a range back, and its commit charge. What is committed there next reads as zero.
    ///
    /// At the limit of mappings the kernel refuses to replace the middle of one. Freeing has to work even then, so the
    /// pages go by `MADV_DONTNEED`, which needs no mapping; the range is made inaccessible where that costs none
    /// either. It may then stay accessible and, in overcommit mode 2, charged, until it is committed and freed again.
    pub(crate) fn withdraw(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.space.part(offset, bytes)?;
        // SAFETY: the range is within the mapping (1), and the host has no use for its bytes (2).
        if unsafe { sys::replace(base, bytes) }.is_ok() {
            // Without the advice the part is a mapping of its own, and correct in every other way.
            let _ = self.advise(base, bytes);
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { sys::discard(base, bytes) }?;
        // SAFETY: as above.
        let _ = unsafe { sys::close_access(base, bytes) };
        Ok(())
    }

    /// Gives every page back and keeps the addresses.
    pub(crate) fn discard(&self) -> Result<(), Fault> {
        // SAFETY: the whole mapping is ours (1), and the host has no use for its bytes (2).
        unsafe { sys::discard(self.space.base(), self.space.bytes()) }
    }

    /// Gives the addresses back, or the mapping itself where the kernel refuses.
    pub(crate) fn close(self) -> Result<(), (Self, Fault)> {
        let Self { space, advice } = self;
        space.close().map_err(|(space, fault)| (Self { space, advice }, fault))
    }

    fn advise(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        match self.advice {
            None => Ok(()),
            // SAFETY: `base` and `bytes` come from `part`, or are the whole mapping (1).
            Some(advice) => unsafe { sys::advise_huge_pages(base, bytes, advice) },
        }
    }
}
