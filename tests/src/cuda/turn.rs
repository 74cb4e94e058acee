//! Whose turn it is with the simulated driver: one test of a process at a time.

use std::sync::{Condvar, Mutex, PoisonError};

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static GIVEN_BACK: Condvar = Condvar::new();

/// A turn, until it is dropped. Unlike a lock's guard it may be shared and dropped by any thread.
#[derive(Debug)]
pub(super) struct Turn(());

impl Turn {
    /// Waits for it.
    pub(super) fn take() -> Self {
        let taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = GIVEN_BACK.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        GIVEN_BACK.notify_one();
    }
}
