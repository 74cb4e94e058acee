//! Caches that double and copy, as engines without growable memory do; or that hold the context from the first on.
//!
//! The first allocation holds the prompt, or the context; each later one at least twice what there was. Old and new are
//! held until the rows are copied, plane by plane as an engine would: all new planes first, since a growth either
//! succeeds or leaves the cache as it was.

use super::super::store::{CacheStore, StoreError};
use super::plane::Touch;
use super::setting::Setting;
use leasehold::{Allocation, AllocationSpec, Error, MemoryRole};

/// A store of reallocated caches.
#[derive(Debug)]
pub(crate) struct ReallocatedStore<'run> {
    setting: Setting<'run>,
    /// What the first allocation of a cache holds at least.
    first_tokens: u64,
}

/// One cache.
#[derive(Debug, Default)]
pub(crate) struct ReallocatedCache {
    planes: Vec<Allocation>,
    capacity_tokens: u64,
}

impl<'run> ReallocatedStore<'run> {
    pub(crate) fn new(setting: Setting<'run>) -> Self {
        Self { setting, first_tokens: 0 }
    }

    /// The context up front, on a backing that reserves nothing.
    pub(crate) fn preallocated(setting: Setting<'run>) -> Self {
        Self { first_tokens: setting.context, setting }
    }

    fn allocate(&self, tokens: u64) -> Result<Vec<Allocation>, Error> {
        let Setting { host, backing, planes, .. } = &self.setting;
        let spec = AllocationSpec::new(self.setting.plane_bytes(tokens)).role(MemoryRole::KvCache);
        (0..*planes).map(|_| host.allocate(backing, &spec)).collect()
    }

    fn copy(&self, from: &[Allocation], to: &mut [Allocation]) -> Result<(), Error> {
        let mut rows = Vec::new();
        for (old, new) in from.iter().zip(to) {
            match self.setting.touch {
                Touch::Nothing => {}
                Touch::Slices => new.write(0, old.as_slice()?)?,
                Touch::Copies => {
                    rows.resize(usize::try_from(old.len()).unwrap_or(usize::MAX), 0);
                    old.read(0, &mut rows)?;
                    new.write(0, &rows)?;
                }
            }
        }
        Ok(())
    }
}

impl CacheStore for ReallocatedStore<'_> {
    type Cache = ReallocatedCache;

    fn fits(&self, tokens: u64) -> Result<(), String> {
        self.setting.fits(tokens, self.setting.plane_bytes(tokens.max(self.first_tokens)))
    }

    fn open(&mut self) -> Result<ReallocatedCache, StoreError> {
        Ok(ReallocatedCache::default())
    }

    fn grow(&mut self, cache: &mut ReallocatedCache, tokens: u64) -> Result<(), StoreError> {
        if tokens <= cache.capacity_tokens {
            return Ok(());
        }
        let doubled =
            cache.capacity_tokens.saturating_mul(2).min(self.setting.context).max(tokens).max(self.first_tokens);
        let mut planes = self.allocate(doubled)?;
        self.copy(&cache.planes, &mut planes)?;
        *cache = ReallocatedCache { planes, capacity_tokens: doubled };
        Ok(())
    }

    fn fill(&mut self, cache: &mut ReallocatedCache, from: u64, to: u64) -> Result<(), StoreError> {
        if self.setting.touch == Touch::Nothing {
            return Ok(());
        }
        for (plane, allocation) in cache.planes.iter_mut().enumerate() {
            self.setting.touch.write(allocation, self.setting.rows(plane), from..to)?;
        }
        Ok(())
    }

    fn close(&mut self, cache: ReallocatedCache, tokens: u64) -> Result<(), StoreError> {
        for (plane, allocation) in cache.planes.iter().enumerate() {
            self.setting.touch.check(allocation, self.setting.rows(plane), tokens)?;
        }
        let closed = cache.planes.into_iter().try_for_each(Allocation::close);
        closed.map_err(|error| StoreError::Broken(error.to_string()))
    }

    fn owned_bytes(&self) -> u64 {
        self.setting.owned_bytes()
    }

    fn peak_owned_bytes(&self) -> u64 {
        self.setting.peak_owned_bytes()
    }
}
