//! One owned range of addresses: made by mmap, given back by [`AddressSpace::close`] or on drop.
//!
//! In: sizes and offsets in bytes. Out: the base address, and a [`Fault`] where the kernel refuses. What the addresses
//! mean in between is the business of the backing that owns it. Offsets that leave it answer `EINVAL`; nothing panics.
#![expect(unsafe_code, reason = "owns the addresses that it unmaps")]

use crate::fault::Fault;
use crate::sys::{self, Counting};
use leasehold_plugin_api::{Address, BackingError, ErrorKind};
use rustix::io::Errno;

const SCARCE: &str = "ask for less, or raise the address space limit (ulimit -v, RLIMIT_AS) or vm.max_map_count";

/// One owned range of addresses, inaccessible at first.
#[derive(Debug)]
pub struct AddressSpace {
    /// Invariant 1: every page of `base .. base + bytes` was mapped for this value, and nobody but its owner maps,
    /// unmaps or protects it until this value is gone.
    base: Address,
    /// See invariant 1. Positive, in whole pages.
    ///
    /// Invariant 2: nothing refers to its bytes any more when it is closed or dropped. The owner promises it.
    bytes: u64,
}

impl AddressSpace {
    /// Takes `bytes` of address space, in whole pages, at a multiple of `align`, a power of two: what the kernel gives
    /// where that is aligned already, else enough to cut an aligned part out of.
    ///
    /// # Errors
    ///
    /// What the kernel answers, `ENOMEM` above all.
    pub fn reserve(bytes: u64, align: u64, counting: Counting) -> Result<Self, Fault> {
        let first = Self { base: sys::reserve(bytes, counting)?, bytes };
        if first.base.is_aligned_to(align) {
            return Ok(first);
        }
        drop(first);
        let spare = bytes.checked_add(align).ok_or(Fault::new("mmap(PROT_NONE)", Errno::NOMEM))?;
        let wide = Self { base: sys::reserve(spare, counting)?, bytes: spare };
        wide.trim(bytes, align)
    }

    /// Gives back what lies before the first multiple of `align` and past `bytes` from there.
    fn trim(mut self, bytes: u64, align: u64) -> Result<Self, Fault> {
        let head = self.base.get().wrapping_neg() & align.wrapping_sub(1);
        let base = self.part(head, bytes)?;
        if head > 0 {
            // SAFETY: the head is within the range (1), by the check above; nothing refers to it (2).
            unsafe { sys::unmap(self.base, head) }?;
            self.base = base;
            self.bytes = self.bytes.saturating_sub(head);
        }
        let tail = self.bytes.saturating_sub(bytes);
        if tail > 0 {
            let end = self.part(bytes, tail)?;
            // SAFETY: the tail is within the range (1), by the check above; nothing refers to it (2).
            unsafe { sys::unmap(end, tail) }?;
            self.bytes = bytes;
        }
        Ok(self)
    }

    /// The refusal that a failed reservation is.
    #[must_use]
    pub fn refusal(fault: Fault, bytes: u64, align: u64) -> BackingError {
        let what = format!("no address space for {bytes} bytes aligned to {align}");
        fault.into_error(ErrorKind::AddressSpaceExhausted, what, SCARCE).with_requested(bytes)
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where a part of it begins.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a part that doesn't lie within it.
    pub fn part(&self, offset: u64, bytes: u64) -> Result<Address, Fault> {
        let outside = Fault::new("a range outside its mapping", Errno::INVAL);
        let end = offset.checked_add(bytes).ok_or(outside)?;
        if end > self.bytes {
            return Err(outside);
        }
        self.base.checked_add(offset).ok_or(outside)
    }

    /// Gives the addresses back, and whatever is mapped there.
    ///
    /// # Errors
    ///
    /// The range itself, with what the kernel answered.
    pub fn close(self) -> Result<(), (Self, Fault)> {
        // SAFETY: the whole range is ours (1), nothing refers to its bytes (2), and nothing acts on it after.
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
}

impl Drop for AddressSpace {
    /// For the ways out of a failed reservation. Whoever has someone to tell calls [`AddressSpace::close`].
    fn drop(&mut self) {
        // SAFETY: the whole range is ours (1), and nothing refers to its bytes (2).
        let _ = unsafe { sys::unmap(self.base, self.bytes) };
    }
}
