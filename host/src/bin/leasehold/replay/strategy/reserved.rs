//! Caches with address space for the whole context: committed as they grow, or all at once.

use super::super::store::{CacheStore, StoreError};
use super::plane::Touch;
use super::setting::Setting;
use leasehold::{Address, BufferSet, BufferSpec, GrowthPolicy};

/// When the context is committed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Commitment {
    AsItGrows(GrowthPolicy),
    UpFront,
}

/// A store of reserved caches.
#[derive(Debug)]
pub(crate) struct ReservedStore<'run> {
    setting: Setting<'run>,
    commitment: Commitment,
}

/// One cache, with where its planes began.
#[derive(Debug)]
pub(crate) struct ReservedCache {
    planes: BufferSet,
    bases: Vec<Option<Address>>,
}

impl<'run> ReservedStore<'run> {
    pub(crate) fn growing(setting: Setting<'run>, growth: GrowthPolicy) -> Self {
        Self { setting, commitment: Commitment::AsItGrows(growth) }
    }

    pub(crate) fn preallocated(setting: Setting<'run>) -> Self {
        Self { setting, commitment: Commitment::UpFront }
    }

    fn tokens_to_commit(&self, tokens: u64) -> u64 {
        match self.commitment {
            Commitment::AsItGrows(_) => tokens,
            Commitment::UpFront => self.setting.context,
        }
    }
}

impl ReservedCache {
    fn bases_of(planes: &BufferSet) -> Vec<Option<Address>> {
        (0..planes.planes()).map(|plane| planes.base(plane)).collect()
    }
}

impl CacheStore for ReservedStore<'_> {
    type Cache = ReservedCache;

    fn fits(&self, tokens: u64) -> Result<(), String> {
        self.setting.fits(tokens, self.setting.plane_bytes(self.tokens_to_commit(tokens)))
    }

    fn open(&mut self) -> Result<ReservedCache, StoreError> {
        let Setting { host, backing, planes, context, .. } = &self.setting;
        let spec = BufferSpec::new(self.setting.plane_bytes(*context));
        let spec = match self.commitment {
            Commitment::AsItGrows(growth) => spec.growth(growth),
            Commitment::UpFront => spec,
        };
        let planes = host.buffer_set(backing, *planes, &spec)?;
        let bases = ReservedCache::bases_of(&planes);
        Ok(ReservedCache { planes, bases })
    }

    fn grow(&mut self, cache: &mut ReservedCache, tokens: u64) -> Result<(), StoreError> {
        let bytes = self.setting.plane_bytes(self.tokens_to_commit(tokens));
        Ok(cache.planes.grow_to(bytes)?)
    }

    fn fill(&mut self, cache: &mut ReservedCache, from: u64, to: u64) -> Result<(), StoreError> {
        if self.setting.touch == Touch::Nothing {
            return Ok(());
        }
        for plane in 0..cache.planes.planes() {
            self.setting.touch.write((&mut cache.planes, plane), self.setting.rows(plane), from..to)?;
        }
        Ok(())
    }

    fn close(&mut self, cache: ReservedCache, tokens: u64) -> Result<(), StoreError> {
        if ReservedCache::bases_of(&cache.planes) != cache.bases {
            return Err(StoreError::Broken("a plane moved".to_owned()));
        }
        for plane in 0..cache.planes.planes() {
            self.setting.touch.check((&cache.planes, plane), self.setting.rows(plane), tokens)?;
        }
        cache.planes.close().map_err(|error| StoreError::Broken(error.to_string()))
    }

    fn owned_bytes(&self) -> u64 {
        self.setting.owned_bytes()
    }

    fn peak_owned_bytes(&self) -> u64 {
        self.setting.peak_owned_bytes()
    }
}
