//! What went wrong where nobody could be told: counted for the process, for the tests.
//!
//! A backing closes what it owns and logs what fails. What is left for drop has no host to tell: contexts and their streams
//! are every backing's, and a [`Bound`](crate::Bound) ends on the way out of any call. Without a count, tests could not tell
//! a drop that failed from one that went well.

use std::sync::atomic::{AtomicU64, Ordering};

static CONTEXTS_NOT_RESTORED: AtomicU64 = AtomicU64::new(0);
static DROPS_FAILED: AtomicU64 = AtomicU64::new(0);

/// What went wrong in drops, since the process began.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Troubles {
    /// How often the context that had been current on a thread could not be made current again.
    pub contexts_not_restored: u64,
    /// How many reservations, handles, allocations, streams and contexts the driver did not take back on drop. They are
    /// lost until the process ends.
    pub drops_failed: u64,
}

/// What this library could not undo so far.
#[doc(hidden)]
#[must_use]
pub fn troubles() -> Troubles {
    Troubles {
        contexts_not_restored: CONTEXTS_NOT_RESTORED.load(Ordering::Relaxed),
        drops_failed: DROPS_FAILED.load(Ordering::Relaxed),
    }
}

pub(crate) fn count_context_not_restored() {
    CONTEXTS_NOT_RESTORED.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn count_drop_failed() {
    DROPS_FAILED.fetch_add(1, Ordering::Relaxed);
}
