//! One plugin, loaded or linked in, and the choice among its backings.

use super::error::{LoadError, LoadStage};
use super::{candidate, library};
use crate::backing::{ForeignEntry, MadeBacking, contain};
use leasehold_plugin_api::{BackingError, BackingRegistration, HostServices, Options};
use std::fmt;
use std::path::{Path, PathBuf};

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
    /// The library; none for what is linked in.
    path: Option<PathBuf>,
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
        Self { path: None, offers: BackingRegistration::linked_in().into_iter().map(Offer::Linked).collect() }
    }

    /// A library, opened for the rest of the process's life.
    pub(crate) fn open(path: &Path, pin: Option<[u8; 32]>) -> Result<Self, LoadError> {
        candidate::inspect(path, pin)?;
        let entries = library::open(path).map_err(|error| error.at(path))?;
        Ok(Self { path: Some(path.to_owned()), offers: entries.into_iter().map(Offer::Loaded).collect() })
    }

    /// The backing that is named; without a name the only one of a library, or the one that is called like the entry
    /// itself. What is linked in has no "only one": another program links in more.
    pub(crate) fn choose(&self, named: Option<&str>, entry: &str) -> Result<Offer, LoadError> {
        if let (None, Some(_), [only]) = (named, &self.path, self.offers.as_slice()) {
            return Ok(*only);
        }
        let wanted = named.unwrap_or(entry);
        let mut found = self.offers.iter().filter(|offer| offer.name() == wanted);
        match (found.next(), found.next()) {
            (Some(offer), None) => Ok(*offer),
            (Some(one), Some(other)) => {
                let (one, other) = (one.package(), other.package());
                let why = format!("offers two backings {wanted:?}, of {one} and of {other}");
                Err(self.refusal(&why, "rename one of them"))
            }
            (None, _) => {
                let names: Vec<_> = self.offers.iter().map(Offer::name).collect();
                let why = format!("offers no backing {wanted:?}, but {}", list(&names));
                Err(self.refusal(&why, "set `backing` to one of those"))
            }
        }
    }

    fn refusal(&self, why: &str, todo: &str) -> LoadError {
        match &self.path {
            Some(path) => LoadError::new(LoadStage::Choose, why, todo).at(path),
            None => LoadError::new(LoadStage::Choose, format!("what is linked in {why}"), todo),
        }
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

    /// What it is, in a few words.
    pub(crate) fn summary(&self) -> String {
        match self {
            Offer::Linked(registration) => registration.summary().to_owned(),
            Offer::Loaded(entry) => entry.summary(),
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
    pub(crate) fn create(&self, options: &Options, services: HostServices) -> Result<MadeBacking, BackingError> {
        match self {
            Offer::Linked(registration) => {
                let access = registration.access();
                let made = contain(|| registration.create(options, services));
                made.map(|backing| MadeBacking::Linked { backing, access })
            }
            Offer::Loaded(entry) => entry.create(options, services).map(MadeBacking::Loaded),
        }
    }
}
