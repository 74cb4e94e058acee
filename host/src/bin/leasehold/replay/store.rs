//! The one door between the scheduler and memory.
//!
//! The scheduler calls, the store answers; what a cache is made of is the store's own affair. One
//! thread; a call may block for as long as the store's memory takes.

use super::prefix::PrefixUse;
use super::trace::Request;

/// Something that holds the caches of running requests.
///
/// Sizes are in tokens, counted from the cache's beginning. A call that fails leaves store and
/// cache as they were.
pub(crate) trait CacheStore {
    /// One request's cache. The scheduler gives every one back through [`close`](Self::close),
    /// except when a [`StoreError::Broken`] ends the run: then it drops them.
    type Cache;

    /// Whether a request of `tokens` in all could ever run, alone in the store; if not, why.
    ///
    /// # Errors
    /// With the reason, for a person.
    fn fits(&self, tokens: u64) -> Result<(), String>;

    /// An empty cache. It belongs to no request until it is grown.
    ///
    /// # Errors
    /// [`StoreError`].
    fn open(&mut self) -> Result<Self::Cache, StoreError>;

    /// Gives the cache to a request, and shares what the store can of its prompt. Called before the first growth for a
    /// request; a cache that was not grown may go to another one. Not timed.
    ///
    /// # Errors
    /// [`StoreError`].
    fn begin(&mut self, cache: &mut Self::Cache, request: &Request) -> Result<(), StoreError> {
        let _ = (cache, request);
        Ok(())
    }

    /// Makes room for `tokens` in all. The scheduler times this call.
    ///
    /// # Errors
    /// [`StoreError`].
    fn grow(&mut self, cache: &mut Self::Cache, tokens: u64) -> Result<(), StoreError>;

    /// Writes the rows of the tokens `from..to`, which `grow` has made room for, as far as they are not shared. Not timed.
    ///
    /// # Errors
    /// [`StoreError`]; being exhausted is no answer here, and ends the run as being broken does.
    fn fill(&mut self, cache: &mut Self::Cache, from: u64, to: u64) -> Result<(), StoreError>;

    /// Checks what the cache's `tokens` rows hold, and gives everything back.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    fn close(&mut self, cache: Self::Cache, tokens: u64) -> Result<(), StoreError>;

    /// Physical bytes held for all caches.
    fn owned_bytes(&self) -> u64;

    /// The most that it ever held at once, within a call too: a store that copies holds old and new.
    fn peak_owned_bytes(&self) -> u64;

    /// Bytes that caches see at their addresses: more than are owned where caches share some.
    fn mapped_bytes(&self) -> u64 {
        self.owned_bytes()
    }

    /// What caches shared so far, over the whole run.
    fn prefix_use(&self) -> PrefixUse {
        PrefixUse::default()
    }
}

/// Why a store did not do what it was asked. Both hold the reason, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// The budget refuses: make room and try again.
    Exhausted(String),
    /// The store can't be trusted any more: stop the run.
    Broken(String),
}

impl StoreError {
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Exhausted(reason) | Self::Broken(reason) => reason,
        }
    }
}
