//! One plugin, loaded or linked in, and the choice among its backings.

use super::error::{LoadError, LoadStage};
use super::{candidate, library};
use crate::backing::{ForeignEntry, contain};
use leasehold_plugin_api::{Backing, BackingError, BackingRegistration, HostServices, Options};
use std::fmt;
use std::path::Path;

/// How a plugin's backings come to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// Linked into the program, or handed over by it.
    Builtin,
    /// Loaded from a shared library through the abi_stable root module.
    AbiStable,
}

impl fmt::Display for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Door::Builtin => "builtin",
            Door::AbiStable => "abi_stable",
        })
    }
}

/// One plugin.
#[derive(Debug)]
pub(crate) struct Plugin {
    offers: Vec<Offer>,
}

/// One backing that a plugin offers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    Linked(&'static BackingRegistration),
    Loaded(ForeignEntry),
}

impl Plugin {
    /// Everything that is linked into this program.
    pub(crate) fn builtin() -> Self {
        Self { offers: BackingRegistration::linked_in().into_iter().map(Offer::Linked).collect() }
    }

    /// A library, opened for the rest of the process's life.
    pub(crate) fn open(path: &Path, pin: Option<[u8; 32]>) -> Result<Self, LoadError> {
        candidate::inspect(path, pin)?;
        let entries = library::open(path).map_err(|error| error.at(path))?;
        Ok(Self { offers: entries.into_iter().map(Offer::Loaded).collect() })
    }

    /// The backing that is named; without a name the only one, or the one that is called like the entry itself.
    pub(crate) fn choose(&self, named: Option<&str>, entry: &str) -> Result<Offer, LoadError> {
        let find = |name: &str| self.offers.iter().find(|offer| offer.name() == name).copied();
        let found = match (named, self.offers.as_slice()) {
            (Some(name), _) => find(name),
            (None, [only]) => Some(*only),
            (None, _) => find(entry),
        };
        found.ok_or_else(|| {
            let names: Vec<_> = self.offers.iter().map(Offer::name).collect();
            let wanted = named.unwrap_or(entry);
            let why = format!("offers no backing {wanted:?}, but {}", list(&names));
            LoadError::new(LoadStage::Choose, why, "set `backing` to one of those")
        })
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}

impl Offer {
    pub(crate) fn name(&self) -> String {
        match self {
            Offer::Linked(registration) => registration.name().to_owned(),
            Offer::Loaded(entry) => entry.name(),
        }
    }

    /// The package that it comes from, with its version.
    pub(crate) fn package(&self) -> String {
        match self {
            Offer::Linked(registration) => format!("{} {}", registration.package(), registration.version()),
            Offer::Loaded(entry) => entry.package(),
        }
    }

    /// Makes a backing.
    pub(crate) fn create(&self, options: &Options, services: HostServices) -> Result<Box<dyn Backing>, BackingError> {
        match self {
            Offer::Linked(registration) => contain(|| registration.create(options, services)),
            Offer::Loaded(entry) => Ok(Box::new(entry.create(options, services)?)),
        }
    }
}
