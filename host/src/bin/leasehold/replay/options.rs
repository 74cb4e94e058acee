//! How to replay a trace.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayOptions {
    /// The virtual time in which each running request generates one token.
    pub(crate) step: Duration,
    /// The most requests that run at once; `None` leaves it to the store.
    pub(crate) max_running: Option<NonZeroUsize>,
    /// What one token needs, for the ideal that owned bytes are held against.
    pub(crate) bytes_per_token: u64,
}
