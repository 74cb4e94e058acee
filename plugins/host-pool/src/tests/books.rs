//! A treasury that counts, refuses the nth charge, and calls back.

use crate::treasury::Treasury;
use leasehold_plugin_api::{BackingError, ErrorKind, MemoryRole};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

type Callback = Box<dyn Fn(u64) + Send + Sync>;

/// Books that can be looked at.
#[derive(Default)]
pub(super) struct Books {
    charged: AtomicU64,
    charges: AtomicU64,
    /// The charge to refuse, counted from 1.
    refused: AtomicU64,
    reports: Mutex<Vec<String>>,
    callback: Mutex<Option<Arc<Callback>>>,
}

impl Books {
    /// Bytes that are charged and not refunded.
    pub(super) fn charged(&self) -> u64 {
        self.charged.load(Ordering::SeqCst)
    }

    /// Charges that were asked for.
    pub(super) fn charges(&self) -> u64 {
        self.charges.load(Ordering::SeqCst)
    }

    /// Refuses the nth charge from now.
    pub(super) fn refuse(&self, nth: u64) {
        self.refused.store(self.charges() + nth, Ordering::SeqCst);
    }

    /// What was reported.
    pub(super) fn reports(&self) -> Vec<String> {
        self.reports.lock().unwrap().clone()
    }

    /// What happens within each charge, on its thread.
    pub(super) fn call_back(&self, callback: Option<Callback>) {
        *self.callback.lock().unwrap() = callback.map(Arc::new);
    }
}

impl Treasury for Arc<Books> {
    fn charge(&self, bytes: u64, role: MemoryRole) -> Result<(), BackingError> {
        let number = self.charges.fetch_add(1, Ordering::SeqCst) + 1;
        let callback = self.callback.lock().unwrap().clone();
        if let Some(callback) = callback {
            callback(bytes);
        }
        if self.refused.load(Ordering::SeqCst) == number {
            return Err(BackingError::new(ErrorKind::BudgetRefused, format!("no budget for {bytes} bytes of {role}")));
        }
        self.charged.fetch_add(bytes, Ordering::SeqCst);
        Ok(())
    }

    fn refund(&self, bytes: u64) {
        let before = self.charged.fetch_sub(bytes, Ordering::SeqCst);
        assert!(before >= bytes, "{bytes} of {before} bytes refunded");
    }

    fn report(&self, what: &str) {
        self.reports.lock().unwrap().push(what.to_owned());
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Books").field("charged", &self.charged).finish_non_exhaustive()
    }
}
