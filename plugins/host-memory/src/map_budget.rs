//! How many kernel mappings a library's backings may use: a count and a limit for the library, and shares that give
//! themselves back on drop.
//!
//! The kernel refuses more than `vm.max_map_count` mappings in a process, and past that even `munmap` of a middle
//! fails. The count is an upper bound of what the kernel holds. It makes no system call after the first reading of the
//! limit.

use leasehold_plugin_api::{BackingError, ErrorKind};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel's default, for a process that sees no `/proc`: `DEFAULT_MAX_MAP_COUNT` in `include/linux/mm.h`.
const DEFAULT_MAX_MAP_COUNT: u64 = 65_530;

/// Mappings in use and how many may be.
#[derive(Debug)]
pub struct MapBudget {
    used: AtomicU64,
    limit: u64,
    max_map_count: u64,
}

/// The mappings of one region, given back on drop.
#[derive(Debug)]
pub struct MapShare {
    budget: &'static MapBudget,
    maps: u64,
}

impl MapBudget {
    /// The budget of this library, for every backing in it: three quarters of what the kernel allows the process. The
    /// rest is for threads, libraries and files. Another library counts for itself; see the crate.
    #[must_use]
    pub fn of_library() -> &'static Self {
        static LIBRARY: LazyLock<MapBudget> = LazyLock::new(|| MapBudget::below(max_map_count()));
        &LIBRARY
    }

    /// Three quarters of `max_map_count`.
    #[must_use]
    pub fn below(max_map_count: u64) -> Self {
        let limit = max_map_count.saturating_sub(max_map_count.div_ceil(4));
        Self { used: AtomicU64::new(0), limit, max_map_count }
    }

    /// Takes `maps` mappings.
    ///
    /// # Errors
    ///
    /// [`AddressSpaceExhausted`](ErrorKind::AddressSpaceExhausted) past the limit.
    pub fn take(&'static self, maps: u64) -> Result<MapShare, BackingError> {
        let mut share = MapShare { budget: self, maps: 0 };
        share.resize_within_limit(maps)?;
        Ok(share)
    }

    /// Mappings in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A compare-exchange loop, so that a request that is refused never makes another one fail meanwhile.
    fn add_within_limit(&self, maps: u64) -> Result<(), BackingError> {
        let within = |used: u64| used.checked_add(maps).filter(|sum| *sum <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(used) => Err(self.refusal(used, maps)),
        }
    }

    fn refusal(&self, used: u64, maps: u64) -> BackingError {
        let Self { limit, max_map_count, .. } = self;
        BackingError::new(
            ErrorKind::AddressSpaceExhausted,
            format!(
                "no mappings are left: {used} of {limit} are in use and {maps} more are needed; commit ranges that \
                 touch each other, or raise vm.max_map_count ({max_map_count}) and restart"
            ),
        )
    }
}

impl MapShare {
    /// Changes the share, unless that needs more than the budget has.
    ///
    /// # Errors
    ///
    /// [`AddressSpaceExhausted`](ErrorKind::AddressSpaceExhausted) past the limit; the share is as it was.
    pub fn resize_within_limit(&mut self, maps: u64) -> Result<(), BackingError> {
        if maps > self.maps {
            self.budget.add_within_limit(maps.saturating_sub(self.maps))?;
            self.maps = maps;
        } else {
            self.resize(maps);
        }
        Ok(())
    }

    /// Changes the share whatever the limit says: freeing the middle of a piece makes two of it, and has to work.
    pub fn resize(&mut self, maps: u64) {
        if maps > self.maps {
            self.budget.used.fetch_add(maps.saturating_sub(self.maps), Ordering::Relaxed);
        } else if maps < self.maps {
            self.budget.used.fetch_sub(self.maps.saturating_sub(maps), Ordering::Relaxed);
        }
        self.maps = maps;
    }
}

impl Drop for MapShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// How many mappings the kernel allows a process.
#[must_use]
pub fn max_map_count() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(DEFAULT_MAX_MAP_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaked(max_map_count: u64) -> &'static MapBudget {
        Box::leak(Box::new(MapBudget::below(max_map_count)))
    }

    #[test]
    fn a_share_past_the_limit_is_refused_and_changes_nothing() {
        let budget = leaked(100);
        let mut share = budget.take(70).unwrap();
        let error = share.resize_within_limit(76).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted);
        assert_eq!(
            error.message(),
            "no mappings are left: 70 of 75 are in use and 6 more are needed; commit ranges that touch each other, or \
             raise vm.max_map_count (100) and restart"
        );
        assert_eq!(budget.used(), 70);
        share.resize_within_limit(75).unwrap();
        assert!(budget.take(1).is_err());
    }

    #[test]
    fn freeing_passes_the_limit_and_the_last_share_leaves_nothing_in_use() {
        let budget = leaked(100);
        let mut share = budget.take(75).unwrap();
        share.resize(77);
        assert_eq!(budget.used(), 77);
        drop(share);
        assert_eq!(budget.used(), 0);
    }
}
