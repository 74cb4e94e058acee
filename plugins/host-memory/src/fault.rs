//! A system call that failed: which one, with which code, in words that name both.

use leasehold_plugin_api::{BackingError, ErrorKind};
use rustix::io::Errno;
use std::fmt;

/// One failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call, with the flag that sets it apart.
    pub call: &'static str,
    /// Its code.
    pub errno: Errno,
}

impl Fault {
    /// The codes that the calls of this crate are documented to answer: mmap(2), munmap(2), mprotect(2), madvise(2),
    /// memfd_create(2), ftruncate(2), fallocate(2), open(2).
    const NAMES: [(Errno, &'static str); 16] = [
        (Errno::ACCESS, "EACCES"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::BADF, "EBADF"),
        (Errno::FAULT, "EFAULT"),
        (Errno::FBIG, "EFBIG"),
        (Errno::HWPOISON, "EHWPOISON"),
        (Errno::INTR, "EINTR"),
        (Errno::INVAL, "EINVAL"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NFILE, "ENFILE"),
        (Errno::NOENT, "ENOENT"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::NOTSUP, "EOPNOTSUPP"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::PERM, "EPERM"),
    ];

    /// The failure of `call` with that code.
    #[must_use]
    pub fn new(call: &'static str, errno: Errno) -> Self {
        Self { call, errno }
    }

    /// The codes of what ran out: memory, mappings or what is locked; the process's or the machine's open files; the size
    /// that a file may have; room in a file system.
    const SCARCE: [Errno; 6] = [Errno::NOMEM, Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::FBIG, Errno::NOSPC];

    /// The failure that the host acts on: `scarce` when the kernel ran out of something, else internal.
    #[must_use]
    pub fn into_error(self, scarce: ErrorKind, what: impl fmt::Display, advice: &str) -> BackingError {
        let kind = if Self::SCARCE.contains(&self.errno) { scarce } else { ErrorKind::Internal };
        BackingError::new(kind, format!("{what}: {self}; {advice}"))
            .with_native_code(i64::from(self.errno.raw_os_error()))
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(errno, _)| *errno == self.errno).map_or("errno", |(_, name)| *name);
        write!(formatter, "{} failed: {name} ({})", self.call, self.errno.raw_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_call_and_its_code() {
        assert_eq!(Fault::new("mprotect", Errno::NOMEM).to_string(), "mprotect failed: ENOMEM (12)");
        assert_eq!(Fault::new("munmap", Errno::XDEV).to_string(), "munmap failed: errno (18)");
    }

    #[test]
    fn only_what_ran_out_is_reported_as_scarce() {
        let scarce = Fault::new("mprotect", Errno::NOMEM).into_error(ErrorKind::OutOfMemory, "commit", "free some");
        assert_eq!(scarce.kind(), ErrorKind::OutOfMemory);
        assert_eq!(scarce.native_code(), Some(12));
        assert_eq!(scarce.message(), "commit: mprotect failed: ENOMEM (12); free some");
        for errno in [Errno::MFILE, Errno::NFILE, Errno::FBIG, Errno::NOSPC] {
            let scarce = Fault::new("memfd_create", errno).into_error(ErrorKind::OutOfMemory, "commit", "free some");
            assert_eq!(scarce.kind(), ErrorKind::OutOfMemory, "{errno:?}");
        }
        let wrong = Fault::new("mprotect", Errno::INVAL).into_error(ErrorKind::OutOfMemory, "commit", "report it");
        assert_eq!(wrong.kind(), ErrorKind::Internal);
    }
}
