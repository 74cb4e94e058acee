//! Over which backing a model is played.

use crate::fault::{Books, Faults};
use leasehold::Host;
use leasehold_plugin_api::{HostServices, OptionValue, Options};

/// Over which backing a model is played. Its granule is a page.
#[derive(Clone, Copy, Debug)]
pub enum Under {
    /// host-mmap, with books as the function makes them.
    Mmap(fn(HostServices) -> Books),
    /// host-pool, which keeps its own books and parks as many bytes.
    Pool {
        /// The most that it parks.
        park: u64,
    },
}

impl Under {
    /// A host with this backing, `"faulty"`.
    ///
    /// # Panics
    ///
    /// When it can't be made.
    #[must_use]
    pub fn host(self, faults: &Faults, limit_bytes: u64) -> Host {
        let host = match self {
            Self::Mmap(books) => faults.host_with(limit_bytes, books),
            Self::Pool { park } => {
                let text = |text: &str| OptionValue::Text(text.to_owned());
                let options = Options::new().with("granule", text("4 KiB")).with("park", text(&park.to_string()));
                faults.pool_host(limit_bytes, options)
            }
        };
        host.expect("needs nothing")
    }

    /// The most that is owned and behind nothing.
    #[must_use]
    pub fn park(self) -> u64 {
        match self {
            Self::Mmap(_) => 0,
            Self::Pool { park } => park,
        }
    }

    /// Whether a buffer's lease is the charge. Where it isn't, the backing knows what it owns, in doubt too.
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
