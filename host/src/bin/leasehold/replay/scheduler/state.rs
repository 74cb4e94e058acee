//! Where a request stands: waiting for a turn, or running with a cache of its own.

use super::super::store::CacheStore;
use super::super::tally::Tally;
use super::super::trace::Request;
use super::answer::{Answer, ReplayError, answered, done};

/// A request of the queue.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'run> {
    pub(super) request: &'run Request,
    /// What its prefill fills: the prompt, and what it had generated before a preemption.
    pub(super) tokens: u64,
    /// What its prefill grows to: `tokens`, and after a preemption one more. At most the final
    /// tokens.
    pub(super) room: u64,
}

impl<'run> Waiting<'run> {
    pub(super) fn new(request: &'run Request) -> Self {
        Self { request, tokens: request.prompt_tokens, room: request.prompt_tokens }
    }

    /// After a preemption that took `tokens` away, fewer than its final ones.
    pub(super) fn preempted(request: &'run Request, tokens: u64) -> Self {
        Self { request, tokens, room: tokens.saturating_add(1) }
    }
}

/// A request of the batch.
pub(super) struct Running<'run, C> {
    pub(super) request: &'run Request,
    pub(super) cache: C,
    /// Held in the cache; at most `final_tokens`.
    pub(super) tokens: u64,
}

impl<C> Running<'_, C> {
    /// Whether it has generated all its output.
    pub(super) fn is_complete(&self) -> bool {
        self.tokens >= self.request.final_tokens()
    }

    /// Grows the cache by one token and fills it; refused, nothing has changed.
    pub(super) fn grow_by_one<S: CacheStore<Cache = C>>(
        &mut self,
        store: &mut S,
        tally: &mut Tally<'_>,
    ) -> Result<Answer<()>, ReplayError> {
        let to = self.tokens.saturating_add(1); // it runs: below its final tokens
        let grown = tally.time_growth(|| store.grow(&mut self.cache, to));
        if let Err(reason) = answered(self.request, "growing", grown)? {
            return Ok(Err(reason));
        }
        done(self.request, "filling", store.fill(&mut self.cache, self.tokens, to))?;
        self.tokens = to;
        tally.footprint.add(1);
        Ok(Ok(()))
    }
}
