//! The system calls alone: inaccessible address space, `mprotect` over parts of it, and a fresh mapping in their place.
#![expect(unsafe_code, reason = "the least that growing in place could cost is a system call")]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::{ptr, slice};

/// Owned address space, inaccessible at first.
pub(crate) struct Reservation {
    /// Invariant 1: `base .. base + bytes` was mapped for this value, and nothing refers to it.
    base: *mut c_void,
    bytes: usize,
}

impl Reservation {
    pub(crate) fn new(bytes: usize) -> Self {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the hint is null and MAP_FIXED is not set: only unused addresses are mapped, see mmap(2).
        let base = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) };
        Self { base: base.expect("address space is free"), bytes }
    }

    /// Makes `step` bytes after another readable and writable, to the end.
    pub(crate) fn open(&mut self, step: usize) {
        for offset in (0..self.bytes).step_by(step) {
            self.open_part(offset, step);
        }
    }

    /// The same, with something done to the bytes of each step.
    pub(crate) fn open_and(&mut self, step: usize, mut act: impl FnMut(&mut [u8])) {
        for offset in (0..self.bytes).step_by(step) {
            let part = self.open_part(offset, step);
            // SAFETY: the part lies within the range (1) and was just made accessible; new pages read as zero.
            act(unsafe { slice::from_raw_parts_mut(part.cast(), step) });
        }
    }

    fn open_part(&mut self, offset: usize, step: usize) -> *mut c_void {
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        let part = self.base.wrapping_byte_add(offset);
        // SAFETY: whole steps lie within the range (1), and more access breaks no reference.
        unsafe { mprotect(part, step, access) }.expect("the kernel allows it");
        part
    }

    /// Puts inaccessible space in the place of `step` bytes before another, from the end.
    pub(crate) fn close(&mut self, step: usize) {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        for offset in (0..self.bytes).step_by(step).rev() {
            let part = self.base.wrapping_byte_add(offset);
            // SAFETY: whole steps lie within the range, and nothing refers to it (1).
            let mapped = unsafe { mmap_anonymous(part, step, ProtFlags::empty(), flags) };
            mapped.expect("the kernel allows it");
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the range is ours and nothing refers to it (1).
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

/// Small mappings that change where the next region lies among the kernel's mappings.
///
/// The kernel keeps mappings in a tree of nodes of sixteen, and a system call on two mappings that lie in different nodes
/// takes twice as long. Which do is chance, so every pair is measured with another number of mappings beside it.
#[derive(Default)]
pub(crate) struct Spacers(Vec<Reservation>);

impl Spacers {
    /// One more, up to thirty-two. Neighbours differ in access, so that they stay two.
    pub(crate) fn add(&mut self) {
        const PAGE: usize = 4096;
        if self.0.len() == 32 {
            self.0.clear();
        }
        let mut spacer = Reservation::new(PAGE);
        if self.0.len().is_multiple_of(2) {
            spacer.open(PAGE);
        }
        self.0.push(spacer);
    }
}
