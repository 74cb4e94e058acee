//! What a host is made from: a registry file, a selection, and backings that the program brings itself.

use super::assembly::{Assembly, Brought, Examiner};
use super::entry::Entry;
use super::{Host, find};
use crate::error::{BroughtError, Error};
use crate::governor::GovernorCore;
use crate::registry::{Manifest, RegistryFile, Selection, is_backing_name};
use leasehold_plugin_api::{Backing, BackingError, CpuAccess, Domain, HostAccess, HostServices};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a host is made from. Without a registry file it has the built-in `host-mmap`, unless the program brings
/// backings of its own.
#[must_use = "a builder makes no host until `load` or `survey`"]
pub struct HostBuilder {
    registry: Option<PathBuf>,
    selection: Selection,
    limits: Vec<(Domain, u64)>,
    brought: Vec<Brought>,
    examiner: Option<Examiner>,
}

impl HostBuilder {
    pub(super) fn new() -> Self {
        Self { registry: None, selection: Selection::all(), limits: Vec::new(), brought: Vec::new(), examiner: None }
    }

    /// Reads this registry file.
    pub fn registry(mut self, path: impl AsRef<Path>) -> Self {
        self.registry = Some(path.as_ref().to_owned());
        self
    }

    /// Loads only the backings that the selection takes.
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets the budget of a domain in bytes, whatever the registry file says.
    pub fn limit(mut self, domain: Domain, bytes: u64) -> Self {
        self.limits.push((domain, bytes));
        self
    }

    /// Adds a backing that the program brings itself. It goes through the same checks as any other, and the selection
    /// applies to it. Its name is of the same form as in a registry file, and not taken there; its priority is 0. The
    /// traits to implement are in [`contract`](crate::contract).
    ///
    /// No slices are made of its memory, even where it wraps a backing that has them: see
    /// [`with_accessible_backing`](Self::with_accessible_backing).
    pub fn with_backing(
        self,
        name: impl Into<String>,
        create: impl FnOnce(HostServices) -> Result<Box<dyn Backing>, BackingError> + 'static,
    ) -> Self {
        self.bring(name.into(), CpuAccess::None, create)
    }

    /// Adds a backing as [`with_backing`](Self::with_backing) does, with its type's claim that the CPU can touch its memory,
    /// so that slices are made of it. `create` returns the value itself, so that nothing but the host can decommit or
    /// release what it lends out. A backing of another crate brings its claim along, as
    /// [`BackingFactory::HOST_ACCESS`](crate::contract::BackingFactory::HOST_ACCESS); a type of the program's own makes one,
    /// which is `unsafe`: see [`HostAccess`]. One type's claim is none for another:
    ///
    /// ```
    /// use leasehold::Host;
    /// use leasehold::contract::BackingFactory as _;
    /// use leasehold_host_mmap::{HostMmap, HostMmapOptions};
    /// # fn main() -> Result<(), leasehold::Error> {
    /// let builder = Host::builder().with_accessible_backing("memory", HostMmap::HOST_ACCESS, |services| {
    ///     HostMmap::create(HostMmapOptions::default(), services)
    /// });
    /// assert!(builder.load()?.backing("memory")?.capabilities().host_access().is_direct());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0271
    /// use leasehold::Host;
    /// use leasehold::contract::{Backing, BackingFactory as _};
    /// use leasehold_host_mmap::{HostMmap, HostMmapOptions};
    /// fn wrap<W: Backing + 'static>(wrapper: fn(HostMmap) -> W) {
    ///     let _ = Host::builder().with_accessible_backing("wrapper", HostMmap::HOST_ACCESS, move |services| {
    ///         HostMmap::create(HostMmapOptions::default(), services).map(wrapper)
    ///     });
    /// }
    /// ```
    pub fn with_accessible_backing<B: Backing + 'static>(
        self,
        name: impl Into<String>,
        access: HostAccess<B>,
        create: impl FnOnce(HostServices) -> Result<B, BackingError> + 'static,
    ) -> Self {
        let create = |services| -> Result<Box<dyn Backing>, BackingError> { Ok(Box::new(create(services)?)) };
        self.bring(name.into(), access.access(), create)
    }

    fn bring(
        mut self,
        name: String,
        access: CpuAccess,
        create: impl FnOnce(HostServices) -> Result<Box<dyn Backing>, BackingError> + 'static,
    ) -> Self {
        self.brought.push(Brought { name, access, create: Box::new(create) });
        self
    }

    /// Shows every backing that is made to `examine`, by its name, before the host uses it: for a conformance suite, or to
    /// probe a device. The backing is called directly, through its library's interface where it is loaded: no answer is
    /// checked, what it charges is charged to this host's budgets, and whatever is made there is to be given back there. The
    /// host numbers what it makes from 1 on: an examiner's own numbers begin above, at `1 << 40` say. The host has lent out
    /// nothing of the backing by then, and the reference ends with the call, so that an examiner can take no slice's memory
    /// away.
    pub fn examine(mut self, examine: impl FnMut(&str, &dyn Backing) + 'static) -> Self {
        self.examiner = Some(Box::new(examine));
        self
    }

    /// Makes the host, and refuses to when a required backing is not ready.
    ///
    /// # Errors
    ///
    /// As [`survey`](Self::survey), and [`RequiredBacking`](crate::ErrorKind::RequiredBacking).
    pub fn load(self) -> Result<Host, Error> {
        let host = self.survey()?;
        host.check_required()?;
        Ok(host)
    }

    /// Makes the host, whatever became of its backings.
    ///
    /// # Errors
    ///
    /// [`Registry`](crate::ErrorKind::Registry) when the registry file is wrong,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when a backing that the program brings has a name that is
    /// wrong or taken, [`System`](crate::ErrorKind::System)
    /// when the operating system gives no randomness or doesn't say how much memory there is.
    pub fn survey(self) -> Result<Host, Error> {
        let manifest = self.manifest()?;
        self.check_names(&manifest)?;
        let core = Arc::new(GovernorCore::default());
        let mut assembly = Assembly::open(core, &manifest, &self.limits, self.examiner)?;
        let loaded: Vec<Entry> = manifest.entries.iter().map(|entry| assembly.load(entry)).collect();
        let brought: Vec<Entry> =
            self.brought.into_iter().map(|brought| assembly.bring(brought, &self.selection)).collect();
        let entries = loaded.into_iter().chain(brought).collect();
        Ok(Host { registry: manifest.registry, core: assembly.into_core(), entries })
    }

    /// Refuses names of brought backings that could not be asked for.
    fn check_names(&self, manifest: &Manifest) -> Result<(), BroughtError> {
        let mut taken: BTreeSet<&str> = manifest.entries.iter().map(|entry| entry.name.as_str()).collect();
        for Brought { name, .. } in &self.brought {
            if !is_backing_name(name) {
                return Err(BroughtError::Form { name: name.clone() });
            }
            if !taken.insert(name) {
                return Err(BroughtError::Taken { name: name.clone() });
            }
        }
        Ok(())
    }

    fn manifest(&self) -> Result<Manifest, Error> {
        match &self.registry {
            Some(path) => Ok(Manifest::resolve(&RegistryFile::read(path)?, &self.selection)),
            None if self.brought.is_empty() => Ok(Manifest::builtin_only(&self.selection)),
            None => Ok(Manifest::default()),
        }
    }
}

impl Host {
    /// Refuses when a backing that the registry file calls required is not ready.
    ///
    /// # Errors
    ///
    /// [`RequiredBacking`](crate::ErrorKind::RequiredBacking), naming the first.
    pub fn check_required(&self) -> Result<(), Error> {
        Ok(find::check_required(&self.entries)?)
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostBuilder")
            .field("registry", &self.registry)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}
