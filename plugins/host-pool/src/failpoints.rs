//! Failpoints: a test makes the nth system call from now of one kind fail, on its own thread.

use leasehold_host_memory::Fault;

/// The system calls that a test can make fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failpoint {
    /// mmap of a file.
    Map,
    /// mmap of inaccessible memory in the place of something.
    Withdraw,
    /// munmap.
    Unmap,
    /// madvise that keeps a mapping from children.
    KeepFromChildren,
    /// fallocate that makes a hole.
    Punch,
}

/// Fails where a test wants it.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "fails in tests alone")]
pub(crate) fn check(_kind: Failpoint) -> Result<(), Fault> {
    Ok(())
}

#[cfg(test)]
pub(crate) use planned::check;
#[cfg(test)]
pub(crate) use planned::plan;

#[cfg(test)]
mod planned {
    use super::{Failpoint, Fault};
    use rustix::io::Errno;
    use std::cell::RefCell;

    thread_local! {
        /// Each planned failure with the calls of its kind that still succeed.
        static PLAN: RefCell<Vec<(Failpoint, u64)>> = const { RefCell::new(Vec::new()) };
    }

    /// Fails where a test wants it.
    pub(crate) fn check(kind: Failpoint) -> Result<(), Fault> {
        PLAN.with_borrow_mut(|plan| {
            let mut is_due = false;
            plan.retain_mut(|(planned, left)| {
                is_due |= *planned == kind && *left == 0;
                let stays = *planned != kind || *left > 0;
                *left = left.saturating_sub(u64::from(*planned == kind));
                stays
            });
            if is_due { Err(Fault::new("a planned failure", Errno::NOMEM)) } else { Ok(()) }
        })
    }

    /// Makes the call of that kind fail that comes after `more` others.
    pub(crate) fn plan(kind: Failpoint, more: u64) {
        PLAN.with_borrow_mut(|plan| plan.push((kind, more)));
    }
}
