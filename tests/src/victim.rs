//! Somebody whose buffer shrinks by whatever a request is short of.

use leasehold::{Buffer, Domain, Host, Reclaim, ReclaimOrder, Registration, Shortfall};
use std::sync::{Arc, Mutex, PoisonError};

/// A buffer that gives way to others, for as long as this lives.
#[derive(Debug)]
pub struct Victim {
    giving: Arc<Giving>,
    _registration: Registration,
}

#[derive(Debug)]
struct Giving {
    buffer: Mutex<Buffer>,
    asked: Mutex<Vec<u64>>,
}

impl Victim {
    /// Registers the buffer's owner, of the ordinary priority.
    ///
    /// # Panics
    ///
    /// Where the host has no books of that domain.
    #[must_use]
    pub fn register(host: &Host, domain: Domain, buffer: Buffer) -> Self {
        let giving = Arc::new(Giving { buffer: Mutex::new(buffer), asked: Mutex::default() });
        let reclaimer: Arc<dyn Reclaim> = Arc::<Giving>::clone(&giving);
        let registration = host.governor().on_pressure(domain, ReclaimOrder::new(), reclaimer).expect("it has books");
        Self { giving, _registration: registration }
    }

    /// Bytes that it has left.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.giving.buffer.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it gave all that it had.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how many bytes it was asked, each time.
    #[must_use]
    pub fn asked(&self) -> Vec<u64> {
        self.giving.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reclaim for Giving {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(shortfall.bytes);
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let given = shortfall.bytes.min(buffer.len());
        let len = buffer.len() - given;
        buffer.shrink_to(len).expect("a shrink needs nothing");
        given
    }
}
