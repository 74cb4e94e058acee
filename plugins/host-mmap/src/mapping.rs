//! One owned range of address space: made by mmap, given back by [`Mapping::close`] or on drop.
//!
//! In: sizes and offsets in bytes. Out: the base address, and a [`Fault`] where the kernel refuses. It knows nothing of
//! granules or of what is committed (`runs.rs`). Offsets that leave the mapping answer `EINVAL`; nothing panics.
#![expect(unsafe_code, reason = "owns the addresses that the system calls act on")]

use crate::fault::Fault;
use crate::sys::{self, Counting, HugePageAdvice};
use leasehold_plugin_api::{Address, HostAccess};
use rustix::io::Errno;

/// One owned range of address space, inaccessible at first.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Invariant 1: every page of `base .. base + bytes` was mapped for this value, and nobody else maps, unmaps or
    /// protects it until this value is gone.
    base: Address,
    /// See invariant 1. Positive, in whole pages.
    ///
    /// Invariant 2: nothing refers to bytes that are withdrawn, discarded or closed. The host promises it: it decommits
    /// and releases only what no buffer lends out.
    bytes: u64,
    advice: Option<HugePageAdvice>,
}

/// The claim that the CPU can touch what is committed here.
pub(crate) fn host_access() -> HostAccess {
    // SAFETY: committed bytes are pages that the kernel has mapped readable and writable for one `Mapping` (1), which
    // read as zero at first; this crate never touches them, and takes them away only on the host's word (2).
    unsafe { HostAccess::direct() }
}

impl Mapping {
    /// Takes `bytes` of address space, in whole pages, at a multiple of `align`, a power of two.
    pub(crate) fn reserve(
        bytes: u64,
        align: u64,
        counting: Counting,
        advice: Option<HugePageAdvice>,
    ) -> Result<Self, Fault> {
        let mapping = Self::aligned(bytes, align, counting, advice)?;
        mapping.advise(mapping.base, mapping.bytes)?;
        Ok(mapping)
    }

    /// What the kernel gives where that is aligned already; else enough to cut an aligned part out of.
    fn aligned(bytes: u64, align: u64, counting: Counting, advice: Option<HugePageAdvice>) -> Result<Self, Fault> {
        let first = Self { base: sys::reserve(bytes, counting)?, bytes, advice };
        if first.base.is_aligned_to(align) {
            return Ok(first);
        }
        drop(first);
        let spare = bytes.checked_add(align).ok_or(Fault::new("mmap(PROT_NONE)", Errno::NOMEM))?;
        let wide = Self { base: sys::reserve(spare, counting)?, bytes: spare, advice };
        wide.trim(bytes, align)
    }

    /// Gives back what lies before the first multiple of `align` and past `bytes` from there.
    fn trim(mut self, bytes: u64, align: u64) -> Result<Self, Fault> {
        let head = self.base.get().wrapping_neg() & align.wrapping_sub(1);
        let base = self.part(head, bytes)?;
        if head > 0 {
            // SAFETY: the head is within the mapping, by the check above; nothing in it is committed (2).
            unsafe { sys::unmap(self.base, head) }?;
            self.base = base;
            self.bytes = self.bytes.saturating_sub(head);
        }
        let tail = self.bytes.saturating_sub(bytes);
        if tail > 0 {
            let end = self.part(bytes, tail)?;
            // SAFETY: the tail is within the mapping, by the check above; nothing in it is committed (2).
            unsafe { sys::unmap(end, tail) }?;
            self.bytes = bytes;
        }
        Ok(self)
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Address {
        self.base
    }

    /// Makes a range readable and writable. On failure part of it may be.
    pub(crate) fn open_access(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.part(offset, bytes)?;
        // SAFETY: the range is within the mapping (1).
        unsafe { sys::open_access(base, bytes) }
    }

    /// Puts a page behind every address of an accessible range. On failure part of it may have one.
    pub(crate) fn populate(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.part(offset, bytes)?;
        // SAFETY: the range is within the mapping (1).
        unsafe { sys::populate(base, bytes) }
    }

    /// Gives the pages of a range back, and its commit charge. What is committed there next reads as zero.
    ///
    /// At the limit of mappings the kernel refuses to replace the middle of one. Freeing has to work even then, so the
    /// pages go by `MADV_DONTNEED`, which needs no mapping; the range is made inaccessible where that costs none
    /// either. It may then stay accessible and, in overcommit mode 2, charged, until it is committed and freed again.
    pub(crate) fn withdraw(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.part(offset, bytes)?;
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
        unsafe { sys::discard(self.base, self.bytes) }
    }

    /// Gives the addresses back, or the mapping itself where the kernel refuses.
    pub(crate) fn close(self) -> Result<(), (Self, Fault)> {
        // SAFETY: the whole mapping is ours (1), the host has no use for its bytes (2), and nothing acts on it after.
        match unsafe { sys::unmap(self.base, self.bytes) } {
            Ok(()) => {
                self.forget();
                Ok(())
            }
            Err(fault) => Err((self, fault)),
        }
    }

    /// Ends the value without another munmap.
    fn forget(self) {
        let _ = std::mem::ManuallyDrop::new(self);
    }

    fn advise(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        match self.advice {
            None => Ok(()),
            // SAFETY: `base` and `bytes` come from `part`, or are the whole mapping (1).
            Some(advice) => unsafe { sys::advise_huge_pages(base, bytes, advice) },
        }
    }

    /// Where a range begins, once it is known to lie within the mapping.
    fn part(&self, offset: u64, bytes: u64) -> Result<Address, Fault> {
        let outside = Fault::new("a range outside its mapping", Errno::INVAL);
        let end = offset.checked_add(bytes).ok_or(outside)?;
        if end > self.bytes {
            return Err(outside);
        }
        self.base.checked_add(offset).ok_or(outside)
    }
}

impl Drop for Mapping {
    /// For the ways out of a failed reservation. Whoever has someone to tell calls [`Mapping::close`].
    fn drop(&mut self) {
        // SAFETY: the whole mapping is ours (1), and nothing refers to its bytes (2).
        let _ = unsafe { sys::unmap(self.base, self.bytes) };
    }
}
