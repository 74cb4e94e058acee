//! What goes back to the backing, and the quarantine of what could not go back yet.

use super::{CheckedBacking, quietly};
use crate::backing::made::contain;
use crate::backing::quarantine::{Existence, ReapReport, Target, Unreturned};
use crate::error::{Operation, Unreleased};
use crate::governor::Lease;
use leasehold_plugin_api::{BackingError, ErrorKind, ReleaseOutcome, ReleaseTarget, SharedMapping};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

/// How many releases of a backing may fail one after the other, with none in between that succeeds, before it is retired:
/// until then each may be a fault of the moment; after that new work would only fill the budget with quarantine.
const FAILED_RELEASES_UNTIL_RETIRED: u32 = 16;

impl CheckedBacking {
    /// Gives a region, an allocation or a prefix back, with the lease on it. What can't be given back stays charged, and
    /// is tried again by [`reap`](Self::reap). A forked child forgets it: it is the parent's.
    pub(crate) fn give_back(&self, entry: Unreturned) -> Result<(), Unreleased> {
        if let Err(fault) = self.check_process(operation(entry.target)) {
            std::mem::forget(entry);
            return Err(Unreleased { remaining_bytes: 0, fault });
        }
        let Err((entry, error)) = self.try_release(entry).map_err(|kept| *kept) else { return Ok(()) };
        let (target, remaining_bytes) = (entry.target, entry.remaining_bytes);
        self.quarantine(entry);
        self.note_failed_release(&error);
        quietly(|| {
            tracing::warn!(
                backing = &*self.name,
                "{target:?} not given back, {remaining_bytes} bytes stay charged: {error}"
            );
        });
        Err(Unreleased { remaining_bytes, fault: self.failed(operation(target), error) })
    }

    /// Gives back what nobody has seen: refused after it was made, or made before a call broke off, under the id that
    /// was asked for.
    pub(super) fn give_back_unseen(&self, target: Target, lease: Option<Lease>, owned_bytes: u64) {
        if let Err(kept) = self.try_release(Unreturned::unseen(target, owned_bytes, lease)) {
            let (entry, error) = *kept;
            self.quarantine(entry);
            self.note_failed_release(&error);
        }
    }

    /// Keeps what could not be given back, and notes it in the books.
    fn quarantine(&self, entry: Unreturned) {
        self.books.quarantined().note(&self.name, entry.remaining_bytes);
        self.lock_quarantine().push(entry);
    }

    /// Retires the backing once too many releases in a row have failed. Trying one again counts as none.
    fn note_failed_release(&self, error: &BackingError) {
        let failed = self.failed_releases.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failed >= FAILED_RELEASES_UNTIL_RETIRED {
            self.services.retire(format!(
                "{failed} releases in a row failed, the last: {error}; what they hold stays charged: call Host::reap(), or \
                 restart the process"
            ));
        }
    }

    /// Tries to give back once more what could not be given back before.
    pub(crate) fn reap(&self) -> ReapReport {
        if !self.is_of_this_process() {
            return ReapReport::default();
        }
        let entries = std::mem::take(&mut *self.lock_quarantine());
        let mut report = ReapReport::default();
        for entry in entries {
            let noted_bytes = entry.remaining_bytes;
            match self.try_release(entry) {
                Ok(()) => report.released = report.released.saturating_add(1),
                Err(kept) => self.quarantine(kept.0),
            }
            self.books.quarantined().forget(&self.name, noted_bytes);
        }
        // Prefixes that only what was released had kept may be among what remains.
        for entry in self.lock_quarantine().iter() {
            report.remaining = report.remaining.saturating_add(1);
            report.remaining_bytes = report.remaining_bytes.saturating_add(entry.remaining_bytes);
        }
        report
    }

    /// Gives the addresses back first: the moment that the backing has released them, the system may hand them to another
    /// thread's region. What could not be released takes them again.
    fn try_release(&self, mut entry: Unreturned) -> Result<(), Box<(Unreturned, BackingError)>> {
        if let Some((base, _)) = entry.addresses {
            self.addresses.give_back(base);
        }
        let (remaining_bytes, error) = match self.release_call(entry.target) {
            ReleaseOutcome::Complete => {
                self.failed_releases.store(0, Ordering::Relaxed);
                self.let_go_of(&mut entry);
                return Ok(());
            }
            ReleaseOutcome::Failed(error) if was_never_made(&entry, &error) => return Ok(()),
            ReleaseOutcome::Failed(error) => (entry.remaining_bytes, error),
            ReleaseOutcome::Quarantined { remaining_bytes, error } => {
                (remaining_bytes.min(entry.remaining_bytes), error)
            }
        };
        if let Some(lease) = &mut entry.lease {
            lease.shrink(entry.remaining_bytes.saturating_sub(remaining_bytes));
        }
        entry.remaining_bytes = remaining_bytes;
        entry.addresses = entry.addresses.filter(|(base, end)| self.addresses.take(*base, *end).is_ok());
        Err(Box::new((entry, error)))
    }

    /// Nothing is mapped any more in what was released: prefixes that nobody else holds go too.
    fn let_go_of(&self, released: &mut Unreturned) {
        for memory in released.prefixes.drain(..).filter_map(Arc::into_inner) {
            // What could not be given back is in the quarantine, and in the log.
            let _ = self.give_back(Unreturned::prefix(memory));
        }
    }

    fn release_call(&self, target: Target) -> ReleaseOutcome {
        let answer = contain(|| match target {
            Target::Memory(target) => Ok(self.inner.release(target)),
            Target::Prefix(id) => {
                let release = |shared: &dyn SharedMapping| shared.release_prefix(id);
                self.inner.known_shared_mapping().map(release).ok_or_else(|| BackingError::unknown_id(id))
            }
        });
        match answer {
            Ok(outcome) => {
                if let ReleaseOutcome::Failed(error) | ReleaseOutcome::Quarantined { error, .. } = &outcome {
                    self.note(operation(target), error);
                }
                outcome
            }
            Err(error) => {
                self.note(operation(target), &error);
                ReleaseOutcome::Quarantined { remaining_bytes: u64::MAX, error }
            }
        }
    }

    /// Gives up the addresses of what a backing that ends takes with it, those of prefixes that nothing else keeps included.
    pub(super) fn give_back_addresses(&self, kept: &Unreturned) {
        let windows = kept.prefixes.iter().map(|memory| memory.window);
        let bases = kept.addresses.map(|(base, _)| base).into_iter().chain(windows);
        bases.for_each(|base| self.addresses.give_back(base));
    }

    pub(super) fn lock_quarantine(&self) -> MutexGuard<'_, Vec<Unreturned>> {
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn was_never_made(entry: &Unreturned, error: &BackingError) -> bool {
    entry.existence == Existence::InDoubt && error.kind() == ErrorKind::UnknownId
}

fn operation(target: Target) -> Operation {
    match target {
        Target::Memory(ReleaseTarget::Region(_) | ReleaseTarget::Allocation(_)) => Operation::Release,
        Target::Prefix(_) => Operation::ReleasePrefix,
    }
}
