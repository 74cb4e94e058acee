//! How many bytes of one domain each backing's releases could not give back, for refusals and snapshots to show.
//!
//! Figures alone: what is kept, and tried again, is the backing's own quarantine. The lock is held for a look or a sum. In
//! a forked child, where it may be held for ever, nothing is noted and nothing is shown.

use crate::error::Quarantined;
use crate::machine::ProcessMark;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes in quarantine of one domain, by backing.
#[derive(Debug)]
pub(crate) struct QuarantinedBytes {
    /// More than 0 each.
    by_backing: Mutex<BTreeMap<Arc<str>, u64>>,
    process: ProcessMark,
}

impl QuarantinedBytes {
    pub(super) fn new() -> Self {
        Self { by_backing: Mutex::default(), process: ProcessMark::current() }
    }

    /// A release of the backing could not give back so many bytes.
    pub(crate) fn note(&self, backing: &Arc<str>, bytes: u64) {
        let Some(mut by_backing) = self.lock().filter(|_| bytes > 0) else { return };
        let sum = by_backing.entry(Arc::clone(backing)).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// Bytes that were noted are released, or noted anew.
    pub(crate) fn forget(&self, backing: &Arc<str>, bytes: u64) {
        let Some(mut by_backing) = self.lock() else { return };
        let left = by_backing.get(backing).map_or(0, |sum| sum.saturating_sub(bytes));
        match by_backing.get_mut(backing) {
            Some(sum) if left > 0 => *sum = left,
            _ => drop(by_backing.remove(backing)),
        }
    }

    /// The bytes of each backing that has any.
    pub(crate) fn by_backing(&self) -> Vec<Quarantined> {
        let of_backing =
            |(backing, bytes): (&Arc<str>, &u64)| Quarantined { backing: backing.to_string(), bytes: *bytes };
        self.lock().map_or_else(Vec::new, |by_backing| by_backing.iter().map(of_backing).collect())
    }

    /// The bytes of all backings.
    pub(super) fn total(&self) -> u64 {
        let sum = |sum: u64, bytes: &u64| sum.saturating_add(*bytes);
        self.lock().map_or(0, |by_backing| by_backing.values().fold(0, sum))
    }

    fn lock(&self) -> Option<MutexGuard<'_, BTreeMap<Arc<str>, u64>>> {
        self.process.is_here().then(|| self.by_backing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_no_longer_shown() {
        let (bytes, one, other): (_, Arc<str>, Arc<str>) = (QuarantinedBytes::new(), "one".into(), "other".into());
        bytes.note(&one, 10);
        bytes.note(&other, 5);
        bytes.note(&other, 0);
        bytes.forget(&one, 4);
        assert_eq!((bytes.total(), bytes.by_backing().len()), (11, 2));
        bytes.forget(&one, 6);
        bytes.forget(&one, 1);
        assert_eq!(bytes.by_backing(), [Quarantined { backing: "other".to_owned(), bytes: 5 }]);
    }
}
