//! The service contexts that live, by the numbers that plugins know them by.
//!
//! A number is never used twice, so one that outlives its context leads to nothing. The table does not keep a context alive.

use super::ServiceContext;
use crate::machine::ProcessMark;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

type Contexts = BTreeMap<u64, Weak<ServiceContext>>;

/// The table of each process, by its number among its ancestors: a forked child has one of its own, since a lock that another
/// thread held during the fork is held for ever there. One of 16 ancestors that made hosts shares its table.
static PROCESSES: [RwLock<Contexts>; 16] = [const { RwLock::new(BTreeMap::new()) }; 16];

/// A number for a context.
pub(super) fn mint() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Adds a context that was made in this process.
pub(super) fn add(number: u64, context: &Arc<ServiceContext>) {
    let mut contexts = of_process(ProcessMark::current()).write().unwrap_or_else(PoisonError::into_inner);
    contexts.insert(number, Arc::downgrade(context));
}

/// The context of that number, unless it has ended or is that of the process that this one was forked from.
pub(super) fn find(number: u64) -> Option<Arc<ServiceContext>> {
    let contexts = of_process(ProcessMark::current()).read().unwrap_or_else(PoisonError::into_inner);
    let context = contexts.get(&number).and_then(Weak::upgrade);
    drop(contexts);
    context.filter(|context| context.is_of_this_process())
}

/// Forgets a context that was made in this process.
pub(super) fn remove(number: u64) {
    of_process(ProcessMark::current()).write().unwrap_or_else(PoisonError::into_inner).remove(&number);
}

fn of_process(process: ProcessMark) -> &'static RwLock<Contexts> {
    let [first, ..] = &PROCESSES;
    let place = process.number().checked_rem(16).and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| PROCESSES.get(place)).unwrap_or(first)
}
