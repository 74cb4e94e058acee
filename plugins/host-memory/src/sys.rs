//! The system calls, one function each: plain values in, a [`Fault`] out when the kernel refuses.
//!
//! Nothing here keeps anything; who owns a range is the business of [`AddressSpace`](crate::AddressSpace). Every
//! function may be called from any thread; only [`populate`] and [`discard`] take long. None panics.
#![expect(unsafe_code, reason = "mmap, mprotect, madvise and munmap change what addresses mean")]

use crate::fault::Fault;
use leasehold_plugin_api::Address;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

/// Whether the kernel counts a mapping against its commit limit once it becomes writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Not counted (`MAP_NORESERVE`), except in overcommit mode 2, which counts every writable page.
    Uncounted,
    /// Counted when it becomes writable, so that the kernel can refuse it then.
    Counted,
}

/// What the kernel is told about transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePageAdvice {
    /// `MADV_HUGEPAGE`.
    Prefer,
    /// `MADV_NOHUGEPAGE`.
    Avoid,
}

/// The size of a page.
#[must_use]
pub fn page_bytes() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX)
}

/// The machine's memory: `MemTotal`.
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// Takes `bytes` of address space where the kernel likes, private, anonymous and not accessible.
///
/// # Errors
///
/// What the kernel answers.
pub fn reserve(bytes: u64, counting: Counting) -> Result<Address, Fault> {
    let call = "mmap(PROT_NONE)";
    let flags = match counting {
        Counting::Uncounted => MapFlags::PRIVATE | MapFlags::NORESERVE,
        Counting::Counted => MapFlags::PRIVATE,
    };
    let length = length(call, bytes)?;
    // SAFETY: the hint is null and MAP_FIXED is not set, so only unused addresses are mapped: mmap(2).
    let mapped = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::empty(), flags) };
    mapped.map(Address::from_pointer).map_err(|errno| Fault::new(call, errno))
}

/// Ends a mapping, or the head or tail of one.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range, and nothing refers to the bytes in it any more.
pub unsafe fn unmap(base: Address, bytes: u64) -> Result<(), Fault> {
    let call = "munmap";
    let length = length(call, bytes)?;
    // SAFETY: the caller owns the range and gives it up.
    unsafe { rustix::mm::munmap(base.to_pointer(), length) }.map_err(|errno| Fault::new(call, errno))
}

/// Makes a range readable and writable.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range.
pub unsafe fn open_access(base: Address, bytes: u64) -> Result<(), Fault> {
    let call = "mprotect";
    let length = length(call, bytes)?;
    let access = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: the caller owns the range; more access breaks no reference.
    unsafe { rustix::mm::mprotect(base.to_pointer(), length, access) }.map_err(|errno| Fault::new(call, errno))
}

/// Makes a range inaccessible. Its pages stay.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range, and nothing refers to the bytes in it any more.
pub unsafe fn close_access(base: Address, bytes: u64) -> Result<(), Fault> {
    let call = "mprotect(PROT_NONE)";
    let length = length(call, bytes)?;
    let access = MprotectFlags::empty();
    // SAFETY: the caller owns the range and nothing refers to it.
    unsafe { rustix::mm::mprotect(base.to_pointer(), length, access) }.map_err(|errno| Fault::new(call, errno))
}

/// Puts a fresh inaccessible mapping in the place of a range: pages and commit charge are given back at once. On
/// failure the old mapping is still there.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range, and nothing refers to the bytes in it any more.
pub unsafe fn replace(base: Address, bytes: u64) -> Result<(), Fault> {
    let call = "mmap(PROT_NONE, MAP_FIXED)";
    let length = length(call, bytes)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the caller owns the range that MAP_FIXED replaces, and nothing refers to it.
    let mapped = unsafe { rustix::mm::mmap_anonymous(base.to_pointer(), length, ProtFlags::empty(), flags) };
    mapped.map(|_| ()).map_err(|errno| Fault::new(call, errno))
}

/// Gives the pages of a range back; the mapping stays and reads as zero: madvise(2), private anonymous memory.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range, and nothing refers to the bytes in it any more.
pub unsafe fn discard(base: Address, bytes: u64) -> Result<(), Fault> {
    // SAFETY: the caller owns the range, whose bytes nobody reads again.
    unsafe { advise("madvise(MADV_DONTNEED)", base, bytes, Advice::LinuxDontNeed) }
}

/// Puts a page behind every address of a readable and writable range.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range.
pub unsafe fn populate(base: Address, bytes: u64) -> Result<(), Fault> {
    // SAFETY: the caller owns the range; populating keeps its bytes.
    unsafe { advise("madvise(MADV_POPULATE_WRITE)", base, bytes, Advice::LinuxPopulateWrite) }
}

/// Tells the kernel about huge pages in a range.
///
/// # Errors
///
/// What the kernel answers.
///
/// # Safety
///
/// The caller owns every page of the range.
pub unsafe fn advise_huge_pages(base: Address, bytes: u64, advice: HugePageAdvice) -> Result<(), Fault> {
    let (call, advice) = match advice {
        HugePageAdvice::Prefer => ("madvise(MADV_HUGEPAGE)", Advice::LinuxHugepage),
        HugePageAdvice::Avoid => ("madvise(MADV_NOHUGEPAGE)", Advice::LinuxNoHugepage),
    };
    // SAFETY: the caller owns the range; this advice keeps its bytes.
    unsafe { advise(call, base, bytes, advice) }
}

/// Keeps a range out of children that are forked: its addresses are free there.
///
/// # Errors
///
/// The kernel's error code of `madvise`.
///
/// # Safety
///
/// The caller owns every page of the range.
pub unsafe fn keep_from_children(base: Address, bytes: u64) -> Result<(), Fault> {
    // SAFETY: the caller owns the range; the advice changes nothing in this process.
    unsafe { advise("madvise(MADV_DONTFORK)", base, bytes, Advice::LinuxDontFork) }
}

/// # Safety
///
/// The caller owns every page of the range, and the advice suits whatever still refers to its bytes.
unsafe fn advise(call: &'static str, base: Address, bytes: u64, advice: Advice) -> Result<(), Fault> {
    let length = length(call, bytes)?;
    // SAFETY: the caller owns the range and answers for the advice.
    unsafe { rustix::mm::madvise(base.to_pointer(), length, advice) }.map_err(|errno| Fault::new(call, errno))
}

/// A size that this machine can't even name is a size that it has no address space for.
///
/// # Errors
///
/// `ENOMEM`, in the name of `call`.
pub fn length(call: &'static str, bytes: u64) -> Result<usize, Fault> {
    usize::try_from(bytes).map_err(|_| Fault::new(call, Errno::NOMEM))
}
