//! Children that are forked off a test and inherit what it holds.
//!
//! A child has the thread that forked alone; a lock that another thread held then is held for ever. So the body must take
//! none that other tests take: it prints nothing. The child ends without a drop, by the code that the body comes to, or by
//! a signal after a minute where it waits for ever.
#![expect(unsafe_code, reason = "forks, and ends the child without its destructors")]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// How long a child may take: forked children do little.
const LIMIT_SECONDS: u32 = 60;

/// How a child is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// fork(2), by the C library.
    Fork,
    /// clone(2) as a system call, which the C library's handlers never see.
    RawClone,
}

/// Runs the body in a child; returns what it returned there.
///
/// # Errors
///
/// How else the child ended: by a panic, or by a signal.
///
/// # Panics
///
/// Where the process can't be forked.
pub fn in_fork(how: How, body: impl FnOnce() -> bool) -> Result<bool, String> {
    // SAFETY: the child runs the body alone, which takes no lock of another thread, and ends by `_exit`.
    let child = unsafe { fork(how) };
    assert!(child >= 0, "the process can't be forked");
    if child == 0 {
        // SAFETY: it only sets a timer of this process.
        unsafe { libc::alarm(LIMIT_SECONDS) };
        let code = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(_) => 2,
        };
        // SAFETY: it ends the process; nothing is run on the way.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: `status` is a place to write to, and the child is this process's own.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "the child is this process's own");
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code @ (0 | 1)) => Ok(code == 0),
        (true, code) => Err(format!("the child ended with {code}")),
        (false, _) => Err(format!("the child was ended by signal {}", libc::WTERMSIG(status))),
    }
}

/// The child's id in the parent, 0 in the child.
///
/// # Safety
///
/// As fork(2): the child has this thread alone, and must not wait for another.
unsafe fn fork(how: How) -> libc::pid_t {
    match how {
        // SAFETY: the caller's duty.
        How::Fork => unsafe { libc::fork() },
        How::RawClone => {
            // SAFETY: the caller's duty; with no flags but the signal the child has a copy of the memory, as after fork.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            libc::pid_t::try_from(child).unwrap_or(-1)
        }
    }
}
