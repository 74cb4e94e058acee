//! Logs where nothing may go wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Logs where nothing may go wrong, as in a drop: a subscriber that panics, because its writer is gone, is not heard.
pub(crate) fn quietly(log: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(log)) {
        std::mem::forget(payload);
    }
}
