//! Takes one entry of the manifest through every stage, and keeps what was found at each.
//!
//! A stage that fails ends the entry there, with a state and a reason; what was made by then is destroyed. Backings that
//! are linked in, loaded, or brought by the program differ only in how they are made.

use super::budgets::Budgets;
use super::disks::{self, DiskNumbers};
use super::entry::Entry;
use super::report::{BackingState, Stage};
use crate::backing::{AddressMap, CheckedBacking, DirectBacking, Discovery, MadeBacking, ServiceContext, contain};
use crate::error::Error;
use crate::governor::{DomainBooks, GovernorCore};
use crate::loader::{Door, Plugin};
use crate::registry::{BudgetSpec, Enablement, LibrarySource, Manifest, ManifestEntry, Selection};
use leasehold_plugin_api::{
    Accounting, Backing, BackingError, CpuAccess, Description, Domain, ErrorKind, HostServices, Tier,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// How a backing that the program brings is made.
type Factory = Box<dyn FnOnce(HostServices) -> Result<Box<dyn Backing>, BackingError>>;

/// Who wants to see each backing before the host uses it.
pub(super) type Examiner = Box<dyn FnMut(&str, &dyn Backing)>;

/// A backing that the program brings itself.
pub(super) struct Brought {
    pub(super) name: String,
    /// What its type claims.
    pub(super) access: CpuAccess,
    pub(super) create: Factory,
}

/// What all entries of one host share while they are assembled.
pub(super) struct Assembly {
    core: Arc<GovernorCore>,
    budgets: Budgets,
    disks: DiskNumbers,
    addresses: BTreeMap<Domain, Arc<AddressMap>>,
    examiner: Option<Examiner>,
}

impl Assembly {
    /// Opens the books that can be opened before any device is known.
    pub(super) fn open(
        core: Arc<GovernorCore>,
        manifest: &Manifest,
        limits: &[(Domain, u64)],
        examiner: Option<Examiner>,
    ) -> Result<Self, Error> {
        let budgets = Budgets::new(manifest.budgets.clone(), limits);
        core.open(Domain::Host)?.settle_limit(budgets.host_limit()?);
        for (domain, budget) in budgets.named() {
            let books = core.open(domain)?;
            if let BudgetSpec::Bytes(bytes) = budget {
                books.settle_limit(bytes);
            }
        }
        Ok(Self { core, budgets, disks: DiskNumbers::default(), addresses: BTreeMap::new(), examiner })
    }

    pub(super) fn into_core(self) -> Arc<GovernorCore> {
        self.core
    }

    /// Takes an entry of the registry file through every stage.
    pub(super) fn load(&mut self, written: &ManifestEntry) -> Entry {
        let mut entry = Entry::new(&written.name, library_text(&written.source));
        entry.priority = written.priority;
        entry.required = written.required;
        match &written.enabled {
            Enablement::Enabled => entry.passed(Stage::Registry, format!("enabled, priority {}", written.priority)),
            Enablement::DisabledInFile => return disabled(entry, "enabled = false in the registry file"),
            Enablement::DisabledBySelection(reason) => return disabled(entry, reason),
        }
        let plugin = match &written.source {
            LibrarySource::Missing { tried } => return entry.rejected(Stage::Resolve, not_found(tried)),
            LibrarySource::Builtin => {
                entry.passed(Stage::Resolve, "linked in");
                entry.door = Some(Door::Builtin);
                Ok(Plugin::builtin())
            }
            LibrarySource::File(path) => {
                entry.passed(Stage::Resolve, path.display().to_string());
                entry.door = Some(Door::AbiStable);
                Plugin::open(path, written.sha256)
            }
        };
        let offer = plugin.and_then(|plugin| plugin.choose(written.backing.as_deref(), &written.name));
        match offer {
            Err(error) => {
                entry.door = None;
                entry.rejected(Stage::Load, error.to_string())
            }
            Ok(offer) => {
                let (name, package, summary) = (offer.name(), offer.package(), offer.summary());
                entry.passed(Stage::Load, format!("backing {name:?} of {package}: {summary}"));
                self.create(entry, disks::named(&written.options), |services| offer.create(&written.options, services))
            }
        }
    }

    /// Takes a backing that the program brings through the stages that are left.
    pub(super) fn bring(&mut self, brought: Brought, selection: &Selection) -> Entry {
        let mut entry = Entry::new(&brought.name, "brought by the program".to_owned());
        entry.door = Some(Door::Builtin);
        match Enablement::of(&brought.name, selection) {
            Enablement::DisabledBySelection(reason) => return disabled(entry, &reason),
            _ => entry.passed(Stage::Registry, "brought by the program"),
        }
        let Brought { access, create, .. } = brought;
        self.create(entry, Ok(None), |services| {
            contain(|| create(services)).map(|backing| MadeBacking::Linked { backing, access })
        })
    }

    /// Makes the backing. If it turns out to be a disk, the option that its entry names numbers it.
    fn create(
        &mut self,
        mut entry: Entry,
        ordinal: Result<Option<u32>, String>,
        create: impl FnOnce(HostServices) -> Result<MadeBacking, BackingError>,
    ) -> Entry {
        let disk = ordinal.clone().ok().flatten().unwrap_or_else(|| self.disks.next());
        let context = ServiceContext::open(Arc::clone(&entry.name), Arc::clone(&self.core), disk);
        let backing = match create(context.services()) {
            Ok(backing) => backing,
            Err(error) => {
                context.close();
                let state = not_created(&error);
                return entry.ended(Stage::Create, state);
            }
        };
        entry.passed(Stage::Create, "created");
        match self.discover(&mut entry, &backing, &context, ordinal) {
            Ok(found) => self.keep(entry, backing, found, context),
            Err((stage, reason)) => {
                // Refused after it was made: it is still destroyed.
                let _ = backing.destroy();
                context.close();
                entry.rejected(stage, reason)
            }
        }
    }

    /// What the backing says of itself, with the books that its memory is charged to; or why it is rejected.
    fn discover(
        &mut self,
        entry: &mut Entry,
        backing: &MadeBacking,
        context: &ServiceContext,
        ordinal: Result<Option<u32>, String>,
    ) -> Result<(Discovery, Arc<DomainBooks>), (Stage, String)> {
        let in_discovery = |why: String| (Stage::Discover, format!("{why}; report this to the plugin's author"));
        let discovery = backing.discover().map_err(|error| in_discovery(error.to_string()))?;
        let discovery = discovery.on_disk(context.disk());
        let Description { device, device_name, .. } = &discovery.description;
        context.settle_domain(device.domain()).map_err(in_discovery)?;
        if device.tier == Tier::Disk {
            // Last, so that a disk that is rejected has no place.
            let taken = ordinal.and_then(|named| self.disks.take(&entry.name, named));
            taken.map_err(|why| (Stage::Discover, why))?;
        }
        let offers = discovery.capabilities.names().join(", ");
        entry.passed(Stage::Discover, format!("{device} ({device_name}), offers {offers}"));
        let books = self.core.open(device.domain()).map_err(|error| (Stage::Books, error.to_string()))?;
        let differs = self.budgets.settle(&books, &entry.name, &discovery.description);
        if let Some(differs) = &differs {
            tracing::warn!(backing = &*entry.name, "{differs}");
        }
        let differs = differs.map(|differs| format!("; {differs}")).unwrap_or_default();
        entry.passed(Stage::Books, books_finding(&books, discovery.accounting) + &differs);
        Ok((discovery, books))
    }

    /// Puts a backing that was discovered into service.
    fn keep(
        &mut self,
        mut entry: Entry,
        backing: MadeBacking,
        (discovery, books): (Discovery, Arc<DomainBooks>),
        context: Arc<ServiceContext>,
    ) -> Entry {
        if let Some(examine) = &mut self.examiner {
            examine(&entry.name, &DirectBacking::new(&backing, &discovery));
        }
        let addresses = match discovery.capabilities.host_access().is_direct() {
            true => AddressMap::of_process(),
            false => Arc::clone(self.addresses.entry(books.domain()).or_default()),
        };
        let name = Arc::clone(&entry.name);
        entry.backing = Some(CheckedBacking::new(name, backing, discovery, books, addresses, context));
        entry
    }
}

fn disabled(entry: Entry, reason: &str) -> Entry {
    entry.ended(Stage::Registry, BackingState::Disabled { reason: reason.to_owned() })
}

fn library_text(source: &LibrarySource) -> String {
    match source {
        LibrarySource::Builtin => "builtin".to_owned(),
        LibrarySource::File(path) => path.display().to_string(),
        LibrarySource::Missing { tried } => {
            tried.first().map_or_else(|| "not found".to_owned(), |path| path.display().to_string())
        }
    }
}

fn not_found(tried: &[PathBuf]) -> String {
    let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
    let tried = if tried.is_empty() { "no folder, since `search` is empty".to_owned() } else { tried.join(", ") };
    format!(
        "no such library: looked at {tried}; build the plugin, or correct `library` or `search` in the registry file"
    )
}

fn not_created(error: &BackingError) -> BackingState {
    match error.kind() {
        ErrorKind::Unavailable => BackingState::Unavailable { reason: error.to_string() },
        _ => BackingState::Rejected { stage: Stage::Create, reason: error.to_string() },
    }
}

fn books_finding(books: &DomainBooks, accounting: Accounting) -> String {
    let (domain, ours, limit) = (books.domain(), books.authority(), books.ledger().limit());
    match accounting {
        Accounting::Buffer => format!("buffers lease on {domain} (limit {limit} bytes, authority {ours})"),
        Accounting::Backing { authority } if authority == ours => {
            format!("the backing charges {domain} itself (limit {limit} bytes, authority {ours})")
        }
        Accounting::Backing { authority } => {
            format!("the backing keeps the books {authority}, this host {ours}: no buffer will be admitted")
        }
    }
}
