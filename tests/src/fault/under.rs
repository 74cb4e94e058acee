//! Which backing stands behind the faults.

use super::{Books, Faults, FaultyBacking, HostMemory, host_mmap};
use leasehold::Host;
use leasehold_host_pool::HostPool;
use leasehold_plugin_api::{Backing, BackingError, BackingFactory, Domain, HostServices, OptionValue, Options};

/// Which backing stands behind the faults. Its granule is a page.
#[derive(Clone, Copy, Debug)]
pub enum Under {
    /// host-mmap, with books as the function makes them.
    Mmap(fn(HostServices) -> Books),
    /// host-pool, which keeps its own books and parks up to so many bytes.
    Pool {
        /// The most that it parks.
        park: u64,
    },
}

impl Under {
    /// host-mmap, whose buffers pay.
    pub const MMAP: Self = Self::Mmap(|_| Books::OfTheBuffers);
    /// host-mmap that charges by itself.
    pub const CHARGING_MMAP: Self = Self::Mmap(Books::OfItsHost);
    /// host-pool that parks nothing, so that it owns exactly what is committed.
    pub const POOL: Self = Self::Pool { park: 0 };
    /// Those that own exactly what is committed, one for each backing.
    pub const EXACT: [Self; 2] = [Self::MMAP, Self::POOL];

    /// Makes the backing behind these faults.
    pub fn create(self, faults: &Faults) -> impl FnOnce(HostServices) -> Result<FaultyBacking, BackingError> + 'static {
        let faults = faults.clone();
        move |services| {
            let books = match self {
                Self::Mmap(books) => books(services),
                Self::Pool { .. } => Books::OfTheWrapped,
            };
            Ok(FaultyBacking::new(self.memory(services)?, &faults, books))
        }
    }

    /// Makes the backing alone.
    ///
    /// # Errors
    ///
    /// What its creation answers.
    pub fn bare(self, services: HostServices) -> Result<Box<dyn Backing>, BackingError> {
        self.memory(services).map(HostMemory::into_backing)
    }

    fn memory(self, services: HostServices) -> Result<HostMemory, BackingError> {
        match self {
            Self::Mmap(_) => host_mmap(services).map(HostMemory::from),
            Self::Pool { park } => {
                let text = |text: &str| OptionValue::Text(text.to_owned());
                let options = Options::new().with("granule", text("4 KiB")).with("park", text(&park.to_string()));
                HostPool::create(options.read()?, services).map(HostMemory::from)
            }
        }
    }

    /// A host with this backing, `"faulty"`.
    ///
    /// # Panics
    ///
    /// When it can't be made.
    #[must_use]
    pub fn host(self, faults: &Faults, limit_bytes: u64) -> Host {
        let builder = Host::builder().limit(Domain::Host, limit_bytes);
        let builder = builder.with_accessible_backing("faulty", FaultyBacking::ACCESS, self.create(faults));
        builder.load().expect("needs nothing")
    }

    /// The most bytes that it owns though nothing is committed to them.
    #[must_use]
    pub fn park(self) -> u64 {
        match self {
            Self::Mmap(_) => 0,
            Self::Pool { park } => park,
        }
    }

    /// Whether the charge is a buffer's lease. Where it isn't, the backing charges what it owns, and is never in doubt.
    #[must_use]
    pub fn leases(self) -> bool {
        matches!(self, Self::Mmap(_))
    }

    /// Whether it shares prefixes.
    #[must_use]
    pub fn shares(self) -> bool {
        matches!(self, Self::Pool { .. })
    }
}
