//! Distinguishes a forked child from the process that made a host: one load, of a page that the kernel wipes in a child
//! (`MADV_WIPEONFORK`, madvise(2), Linux 4.14).
//!
//! A raw `clone` is seen as `fork` is, since the kernel itself wipes the page; a child that shares the memory, as after
//! `vfork` and during `posix_spawn`, is the same process. Where the kernel can't wipe, the process id is compared
//! instead, by a system call each time. The page lives as long as the process. No lock is taken: one that another thread
//! held during the fork would be held for ever in the child.
#![expect(unsafe_code, reason = "maps the page that a fork wipes, and refers to it")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The size of a page on x86-64, and a whole number of pages nowhere less: mmap(2) rounds up.
const PAGE_BYTES: usize = 4096;

/// Invariant 1: null, or the beginning of a page that [`wiped_page`] mapped and that is never unmapped.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// The number of the next process; a child goes on counting where its parent was.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessMark {
    /// Holds the number of this process, or 0 in a child that has made nothing yet.
    page: Option<&'static AtomicU64>,
    /// The process's number among its ancestors, counted from 1; the process id where there is no page.
    number: u64,
}

impl ProcessMark {
    /// This process.
    pub(crate) fn current() -> Self {
        let Some(page) = page() else { return Self { page: None, number: u64::from(std::process::id()) } };
        let number = match page.load(Ordering::Relaxed) {
            0 => {
                let mine = NEXT.fetch_add(1, Ordering::Relaxed);
                page.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed)
                    .map_or_else(|other| other, |_| mine)
            }
            number => number,
        };
        Self { page: Some(page), number }
    }

    /// Whether this is that process, and no child that was forked off since.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        match self.page {
            Some(page) => page.load(Ordering::Relaxed) == self.number,
            None => u64::from(std::process::id()) == self.number,
        }
    }

    /// The process's number among its ancestors that made something, counted from 1. Where the kernel can't wipe pages it
    /// is the process id.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// The page, mapped at the first call; `None` where the kernel can't wipe pages.
fn page() -> Option<&'static AtomicU64> {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        let mapped = wiped_page()?;
        page = match PAGE.compare_exchange(ptr::null_mut(), mapped, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mapped,
            Err(first) => {
                // SAFETY: `wiped_page` has just mapped it, and nothing but this call knows it.
                let _ = unsafe { munmap(mapped.cast(), PAGE_BYTES) };
                first
            }
        };
    }
    // SAFETY: it is mapped for ever (1), page-aligned, and zero-filled by the kernel; only atomic accesses are made, and
    // a wiped page reads as zero.
    unsafe { page.as_ref() }
}

/// A page of zeros that is zero again in a child.
fn wiped_page() -> Option<*mut AtomicU64> {
    // SAFETY: the hint is null and MAP_FIXED is not set, so only unused addresses are mapped: mmap(2).
    let mapped =
        unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    let page = mapped.ok()?;
    // SAFETY: the page was mapped by this call, and the advice keeps its bytes in this process.
    match unsafe { madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork) } {
        Ok(()) => Some(page.cast()),
        Err(_) => {
            // SAFETY: the page was mapped by this call, and nothing else knows it.
            let _ = unsafe { munmap(page, PAGE_BYTES) };
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_of_one_process_is_here() {
        let (one, other) = (ProcessMark::current(), ProcessMark::current());
        assert!(one.is_here() && other.is_here());
        assert_eq!(one.number(), other.number());
        assert!(std::thread::spawn(move || one.is_here()).join().unwrap());
    }

    #[test]
    fn a_wiped_page_means_another_process() {
        let page: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(7)));
        let mark = ProcessMark { page: Some(page), number: 7 };
        assert!(mark.is_here());
        page.store(0, Ordering::Relaxed);
        assert!(!mark.is_here());
        assert!(!ProcessMark { page: None, number: 0 }.is_here());
    }
}
