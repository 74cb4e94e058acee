//! Reclaimers of memory of the host that answer as a test says, and write down that they were asked.
//!
//! [`Asked`] is the list; [`Asked::register`] puts each request on it before the answer is given. What an answer gives
//! back, and whether it tells the truth about that, is the test's own business. Any thread may ask.

use leasehold::{Domain, Governor, Reclaim, ReclaimOrder, Registration, Shortfall};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A reclaimer that answers by a function.
#[derive(Clone, Copy, Debug)]
pub struct Answer<F>(pub F);

impl<F: Fn(&Shortfall) -> u64 + Send + Sync> Reclaim for Answer<F> {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        (self.0)(shortfall)
    }
}

/// Registers a reclaimer that answers by this function.
///
/// # Panics
///
/// Where the governor has no books of the host's memory.
pub fn register(
    governor: &Governor,
    order: ReclaimOrder,
    answer: impl Fn(&Shortfall) -> u64 + Send + Sync + 'static,
) -> Registration {
    governor.on_pressure(Domain::Host, order, Arc::new(Answer(answer))).expect("it has books of the host's memory")
}

/// Who was asked, and for what, in order. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<Mutex<Vec<(&'static str, Shortfall)>>>);

impl Asked {
    /// Registers somebody of this name, whose requests are noted before they are answered.
    ///
    /// # Panics
    ///
    /// As [`register`].
    pub fn register(
        &self,
        governor: &Governor,
        name: &'static str,
        order: ReclaimOrder,
        answer: impl Fn(&Shortfall) -> u64 + Send + Sync + 'static,
    ) -> Registration {
        let asked = self.clone();
        register(governor, order, move |shortfall| {
            asked.note(name, shortfall);
            answer(shortfall)
        })
    }

    /// Notes one request.
    pub fn note(&self, name: &'static str, shortfall: &Shortfall) {
        self.lock().push((name, *shortfall));
    }

    /// Who was asked since the last call, and for how many bytes.
    #[must_use]
    pub fn take(&self) -> Vec<(&'static str, u64)> {
        self.lock().drain(..).map(|(name, shortfall)| (name, shortfall.bytes)).collect()
    }

    /// Who was asked since the last call.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.lock().drain(..).map(|(name, _)| name).collect()
    }

    /// What was asked since the last call, with all that a reclaimer is told.
    #[must_use]
    pub fn shortfalls(&self) -> Vec<Shortfall> {
        self.lock().drain(..).map(|(_, shortfall)| shortfall).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(&'static str, Shortfall)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
