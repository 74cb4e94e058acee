//! A store for tests: it counts bytes in granules under a budget, checks every call, and can break
//! at the nth.

use std::collections::BTreeMap;

use super::store::{CacheStore, StoreError};

/// One token takes one byte.
#[derive(Debug)]
pub(super) struct CountingStore {
    pub(super) budget: u64,
    pub(super) granule: u64,
    /// Bytes that an empty cache owns.
    pub(super) empty: u64,
    /// Whether `fits` tells the truth, or lets every request try.
    pub(super) foresees: bool,
    /// The fallible call, counted from 1, that answers `Broken`.
    pub(super) break_at: Option<u64>,
    pub(super) calls: u64,
    pub(super) opened: u64,
    pub(super) owned: u64,
    pub(super) peak_owned: u64,
    /// Tokens at close → how many caches were closed with as many; unused ones are left out.
    pub(super) closed: BTreeMap<u64, u64>,
    pub(super) live: u64,
}

#[derive(Debug)]
pub(super) struct CountedCache {
    owned: u64,
    filled: u64,
}

impl CountingStore {
    pub(super) fn with_budget(budget: u64) -> Self {
        Self {
            budget,
            granule: 1,
            empty: 0,
            foresees: true,
            break_at: None,
            calls: 0,
            opened: 0,
            owned: 0,
            peak_owned: 0,
            closed: BTreeMap::new(),
            live: 0,
        }
    }

    pub(super) fn size_of(&self, tokens: u64) -> u64 {
        self.empty.max(tokens.next_multiple_of(self.granule))
    }

    fn charge(&mut self, bytes: u64) -> Result<(), StoreError> {
        let owned = self.owned.checked_add(bytes).unwrap();
        if owned > self.budget {
            return Err(StoreError::Exhausted(format!("{bytes} bytes on top of {}", self.owned)));
        }
        self.owned = owned;
        self.peak_owned = self.peak_owned.max(owned);
        Ok(())
    }

    fn count_call(&mut self) -> Result<(), StoreError> {
        self.calls = self.calls.checked_add(1).unwrap();
        match self.break_at {
            Some(call) if call == self.calls => Err(StoreError::Broken(format!("call {call} broke"))),
            _ => Ok(()),
        }
    }
}

impl CacheStore for CountingStore {
    type Cache = CountedCache;

    fn fits(&self, tokens: u64) -> Result<(), String> {
        if self.foresees && self.size_of(tokens) > self.budget {
            return Err(format!("{tokens} tokens never fit"));
        }
        Ok(())
    }

    fn open(&mut self) -> Result<CountedCache, StoreError> {
        self.count_call()?;
        self.charge(self.empty)?;
        self.opened = self.opened.checked_add(1).unwrap();
        self.live = self.live.checked_add(1).unwrap();
        Ok(CountedCache { owned: self.empty, filled: 0 })
    }

    fn grow(&mut self, cache: &mut CountedCache, tokens: u64) -> Result<(), StoreError> {
        self.count_call()?;
        assert!(tokens > cache.filled, "a cache only grows");
        let size = self.size_of(tokens);
        self.charge(size.checked_sub(cache.owned).unwrap())?;
        cache.owned = size;
        Ok(())
    }

    fn fill(&mut self, cache: &mut CountedCache, from: u64, to: u64) -> Result<(), StoreError> {
        self.count_call()?;
        assert_eq!(from, cache.filled, "every row is written once");
        assert!(from < to && to <= cache.owned, "rows lie within the cache");
        cache.filled = to;
        Ok(())
    }

    fn close(&mut self, cache: CountedCache, tokens: u64) -> Result<(), StoreError> {
        self.count_call()?;
        assert_eq!(cache.filled, tokens, "a cache holds what the scheduler thinks");
        self.owned = self.owned.checked_sub(cache.owned).unwrap();
        self.live = self.live.checked_sub(1).unwrap();
        if tokens > 0 {
            let closed = self.closed.entry(tokens).or_default();
            *closed = closed.checked_add(1).unwrap();
        }
        Ok(())
    }

    fn owned_bytes(&self) -> u64 {
        self.owned
    }

    fn peak_owned_bytes(&self) -> u64 {
        self.peak_owned
    }
}
