//! The service contexts that live, by the numbers that plugins know them by.
//!
//! A number is never used twice, so one that outlives its context leads to nothing. The table does not keep a context alive.

use super::ServiceContext;
use crate::machine::PerProcess;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

type Contexts = BTreeMap<u64, Weak<ServiceContext>>;

static CONTEXTS: PerProcess<RwLock<Contexts>> = PerProcess::new();

/// A number for a context.
pub(super) fn mint() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Adds a context that was made in this process.
pub(super) fn add(number: u64, context: &Arc<ServiceContext>) {
    let mut contexts = CONTEXTS.here().write().unwrap_or_else(PoisonError::into_inner);
    contexts.insert(number, Arc::downgrade(context));
}

/// The context of that number, unless it has ended or is that of the process that this one was forked from.
pub(super) fn find(number: u64) -> Option<Arc<ServiceContext>> {
    let contexts = CONTEXTS.here().read().unwrap_or_else(PoisonError::into_inner);
    let context = contexts.get(&number).and_then(Weak::upgrade);
    drop(contexts);
    context.filter(|context| context.is_of_this_process())
}

/// Forgets a context that was made in this process.
pub(super) fn remove(number: u64) {
    CONTEXTS.here().write().unwrap_or_else(PoisonError::into_inner).remove(&number);
}
