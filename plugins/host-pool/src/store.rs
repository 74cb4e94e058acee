//! The physical memory: files that exist in memory alone, and what a frame's number means.
//!
//! Frame `s * SEGMENT_STRIDE + i` is granule `i` of segment `s`. A segment is large and sparse: memory that nobody
//! touched is a hole and costs nothing; giving memory back makes a hole again. Each has a second descriptor that can
//! only read, so that what is mapped through it can never be made writable: mprotect(2), `EACCES`.
//!
//! It owns the descriptors and closes them on drop; what is mapped keeps its memory until it is unmapped. Which frame
//! is whose is the business of `frames.rs`. The lock is held for a look-up and one system call, never while the host is
//! called.
#![expect(unsafe_code, reason = "vouches for the files that it maps into a window")]

use crate::failpoints::{self, Failpoint};
use crate::frames::SEGMENT_STRIDE;
use crate::run::Run;
use crate::window::{Access, Treatment, Window};
use leasehold_host_memory::Fault;
use leasehold_plugin_api::{BackingError, ErrorKind};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, SeekFrom};
use rustix::io::Errno;
use rustix::process::Resource;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{PoisonError, RwLock};

/// Large enough that one segment serves, small enough for every file system.
const SEGMENT_BYTES: u64 = 4 << 40;

/// The segments.
#[derive(Debug)]
pub(crate) struct Store {
    granule: u64,
    segment_bytes: u64,
    /// Invariant 1: each is a file of `segment_bytes` bytes that is sealed against any other size, so that no page of
    /// it vanishes from under a mapping: `F_SEAL_SHRINK`, fcntl(2). None is ever taken out before the store is dropped.
    segments: RwLock<Vec<Segment>>,
}

#[derive(Debug)]
struct Segment {
    writable: OwnedFd,
    read_only: OwnedFd,
}

impl Store {
    /// A store without segments, whose segments are as large as this process may make them.
    pub(crate) fn new(granule: u64) -> Result<Self, BackingError> {
        // Past RLIMIT_FSIZE ftruncate doesn't fail but sends SIGXFSZ, which ends the process.
        Self::with_segments_of(granule, SEGMENT_BYTES.min(file_limit()))
    }

    /// The same, with segments of so many bytes.
    pub(crate) fn with_segments_of(granule: u64, bytes: u64) -> Result<Self, BackingError> {
        let segment_bytes = bytes.saturating_sub(bytes.checked_rem(granule).unwrap_or(bytes));
        if segment_bytes == 0 {
            let why = format!("a file may have {bytes} bytes, and one granule has {granule}");
            let message = format!("no pool: {why}; raise RLIMIT_FSIZE (ulimit -f), or write a smaller granule");
            return Err(BackingError::new(ErrorKind::Unavailable, message));
        }
        Ok(Self { granule, segment_bytes, segments: RwLock::default() })
    }

    /// How many frames a segment has, fewer than [`SEGMENT_STRIDE`].
    pub(crate) fn frames_per_segment(&self) -> u64 {
        self.segment_bytes.div_euclid(self.granule).min(SEGMENT_STRIDE.saturating_sub(1))
    }

    /// Makes the next segment.
    pub(crate) fn open_another(&self) -> Result<(), Fault> {
        // The limit may have been lowered since: see `new`.
        if file_limit() < self.segment_bytes {
            return Err(Fault::new("ftruncate past RLIMIT_FSIZE", Errno::FBIG));
        }
        let segment = Segment::open(self.segment_bytes)?;
        self.segments.write().unwrap_or_else(PoisonError::into_inner).push(segment);
        Ok(())
    }

    /// Maps a run at an offset of a window. Of frames that were owned before only those are treated that hold anything:
    /// what was never touched stays a hole. The kernel joins what follows each other in the file to one mapping. A child
    /// that is forked off after the call inherits nothing of it; on failure part of it may be mapped, and inherited.
    ///
    /// # Safety
    ///
    /// The frames of the run are the caller's own, or a sealed prefix's with [`Treatment::ReadOnly`].
    pub(crate) unsafe fn map(&self, window: &Window, offset: u64, run: Run, treatment: Treatment) -> Result<(), Fault> {
        let bytes = run.frames.saturating_mul(self.granule);
        self.with(run, treatment.access(), |file, at| {
            // SAFETY: the caller's duties are those of `map_parts`.
            unsafe { self.map_parts(window, offset, (file, at, bytes), treatment) }?;
            window.keep_from_children(offset, bytes)
        })
    }

    /// Maps a part of a file, `bytes` bytes from `at` on.
    ///
    /// # Safety
    ///
    /// As [`map`](Self::map); the part is within the file.
    unsafe fn map_parts(
        &self,
        window: &Window,
        offset: u64,
        (file, at, bytes): (BorrowedFd<'_>, u64, u64),
        treatment: Treatment,
    ) -> Result<(), Fault> {
        if matches!(treatment, Treatment::Fresh | Treatment::Writable | Treatment::ReadOnly) {
            // SAFETY: the file can't shrink (1) and has all of the run; the frames are the caller's to map.
            return unsafe { window.map(offset, bytes, file, at, treatment) };
        }
        for (part, holds) in self.held_in(file, at, bytes) {
            let treatment = if holds { treatment } else { Treatment::Fresh };
            let (offset, at) = (offset.saturating_add(part.start), at.saturating_add(part.start));
            // SAFETY: as above, for a part of it.
            unsafe { window.map(offset, part.end.saturating_sub(part.start), file, at, treatment) }?;
        }
        Ok(())
    }

    /// Cuts a part of a file, in granules, by whether they hold anything, in memory or in swap. Ranges count from its
    /// beginning.
    ///
    /// `SEEK_DATA` answers from the file's index alone, lseek(2). `mincore` would not do: it says of a page in swap
    /// that it isn't there. `SEEK_HOLE` would look through all that follows.
    fn held_in(&self, file: BorrowedFd<'_>, begin: u64, bytes: u64) -> Vec<(Range<u64>, bool)> {
        let mut parts: Vec<(Range<u64>, bool)> = Vec::new();
        let mut add = |range: Range<u64>, holds| match parts.last_mut() {
            _ if range.is_empty() => {}
            Some((last, held)) if *held == holds => last.end = range.end,
            _ => parts.push((range, holds)),
        };
        let mut reached: u64 = 0;
        while reached < bytes {
            let data = match rustix::fs::seek(file, SeekFrom::Data(begin.saturating_add(reached))) {
                Ok(data) => data.saturating_sub(begin).min(bytes),
                Err(Errno::NXIO) => bytes, // nothing but holes up to the end of the file
                Err(_) => reached,         // a kernel that can't tell: it may hold something
            };
            let granule = data.saturating_sub(data.checked_rem(self.granule).unwrap_or(0)).max(reached);
            add(reached..granule, false);
            reached = granule.saturating_add(self.granule).min(bytes);
            add(granule..reached, true);
        }
        parts
    }

    /// Gives the memory of a run back: it becomes a hole, which reads as zero.
    pub(crate) fn punch(&self, run: Run) -> Result<(), Fault> {
        failpoints::check(Failpoint::Punch)?;
        let bytes = run.frames.saturating_mul(self.granule);
        self.with(run, Access::ReadWrite, |file, at| {
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, mode, at, bytes))
                .map_err(|errno| Fault::new("fallocate(FALLOC_FL_PUNCH_HOLE)", errno))
        })
    }

    /// Acts on the file that a run lies in, and on its place there. All of the run is within the file.
    fn with(
        &self,
        run: Run,
        access: Access,
        act: impl FnOnce(BorrowedFd<'_>, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let number = usize::try_from(run.first.div_euclid(SEGMENT_STRIDE)).unwrap_or(usize::MAX);
        let first = run.first.rem_euclid(SEGMENT_STRIDE);
        let is_within = first.saturating_add(run.frames) <= self.frames_per_segment();
        let segment = segments.get(number).filter(|_| is_within);
        let segment = segment.ok_or(Fault::new("a frame outside the pool", Errno::INVAL))?;
        let file = match access {
            Access::ReadWrite => segment.writable.as_fd(),
            Access::ReadOnly => segment.read_only.as_fd(),
        };
        act(file, first.saturating_mul(self.granule))
    }

    /// Bytes of memory that the files hold, as the kernel counts them.
    #[cfg(test)]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let segments = self.segments.read().unwrap();
        let blocks = segments.iter().map(|segment| rustix::fs::fstat(&segment.writable).unwrap().st_blocks);
        u64::try_from(blocks.sum::<i64>()).unwrap().saturating_mul(512)
    }
}

impl Segment {
    fn open(bytes: u64) -> Result<Self, Fault> {
        let writable = memory_file()?;
        rustix::fs::ftruncate(&writable, bytes).map_err(|errno| Fault::new("ftruncate", errno))?;
        // Nobody can shrink it under a mapping, which would make a touch a SIGBUS; and nobody can forbid writing.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&writable, seals).map_err(|errno| Fault::new("fcntl(F_ADD_SEALS)", errno))?;
        // A descriptor that is duplicated keeps its mode; one that is opened anew has a mode of its own.
        let path = format!("/proc/self/fd/{}", writable.as_raw_fd());
        let read_only = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Fault::new("open(/proc/self/fd, O_RDONLY)", errno))?;
        Ok(Self { writable, read_only })
    }
}

/// A file in memory alone that can't be executed: a machine may refuse others (`vm.memfd_noexec`). A kernel before 6.3
/// doesn't know the flag.
fn memory_file() -> Result<OwnedFd, Fault> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let name = "leasehold-host-pool";
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        answer => answer,
    }
    .map_err(|errno| Fault::new("memfd_create", errno))
}

/// How large this process may make a file.
fn file_limit() -> u64 {
    rustix::process::getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// The refusal of a pool that can't have its first segment.
pub(crate) fn unavailable(fault: Fault) -> BackingError {
    let advice = "the pool needs memfd_create (Linux 3.17), /proc mounted, and two free descriptors (ulimit -n)";
    let message = format!("no pool: {fault}; {advice}");
    BackingError::new(ErrorKind::Unavailable, message).with_native_code(i64::from(fault.errno.raw_os_error()))
}
