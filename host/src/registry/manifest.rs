//! Turns a [`RegistryFile`] and a [`Selection`] into a [`Manifest`]: what they resolve to on this disk.
//!
//! It asks the disk which files are there, and opens none. A path is never taken from the working directory: a
//! relative one starts from the folder of the registry file itself, also when that was reached through a link.

use super::budget::BudgetSpec;
use super::file::RegistryFile;
use super::library::LibrarySource;
use super::selection::Selection;
use leasehold_plugin_api::{Domain, Options};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The backing that is there when there is no registry file.
const BUILTIN_BACKING: &str = "host-mmap";

/// Everything that the host is to load, and what it may spend.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// The registry file, as it was named; none when there is none.
    pub(crate) registry: Option<PathBuf>,
    /// In the order in which they were written. Two may have one library.
    pub(crate) entries: Vec<ManifestEntry>,
    /// The domains that were named.
    pub(crate) budgets: BTreeMap<Domain, BudgetSpec>,
}

/// One backing to load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ManifestEntry {
    pub(crate) name: String,
    /// Which of the library's backings; its only one when none.
    pub(crate) backing: Option<String>,
    pub(crate) source: LibrarySource,
    pub(crate) options: Options,
    /// Among backings that fit, the highest wins.
    pub(crate) priority: i64,
    /// Whether the host refuses to start without it.
    pub(crate) required: bool,
    /// What the library's bytes must hash to.
    pub(crate) sha256: Option<[u8; 32]>,
    pub(crate) enabled: Enablement,
}

/// Whether a backing is to be loaded, and if not, who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Enablement {
    Enabled,
    /// `enabled = false`.
    DisabledInFile,
    /// The selection, in these words.
    DisabledBySelection(String),
}

impl Manifest {
    /// What `file` and `selection` lead to now. A library that is not found is an entry too: the loader rejects it,
    /// and the others go on.
    pub(crate) fn resolve(file: &RegistryFile, selection: &Selection) -> Self {
        let entries = file.backings.iter().map(|written| ManifestEntry {
            name: written.name.value.clone(),
            backing: written.backing.clone(),
            source: LibrarySource::find(&written.library.value, &file.folder, &file.search),
            options: written.options.clone(),
            priority: written.priority,
            required: written.required,
            sha256: written.sha256,
            enabled: match written.enabled {
                true => Enablement::of(&written.name.value, selection),
                false => Enablement::DisabledInFile,
            },
        });
        Self { registry: Some(file.path.clone()), entries: entries.collect(), budgets: file.budgets.clone() }
    }

    /// What there is without a registry file: the built-in host-mmap with its default options, every budget `Auto`.
    pub(crate) fn builtin_only(selection: &Selection) -> Self {
        let entry = ManifestEntry {
            name: BUILTIN_BACKING.to_owned(),
            backing: Some(BUILTIN_BACKING.to_owned()),
            source: LibrarySource::Builtin,
            options: Options::new(),
            priority: 0,
            required: false,
            sha256: None,
            enabled: Enablement::of(BUILTIN_BACKING, selection),
        };
        Self { registry: None, entries: vec![entry], budgets: BTreeMap::new() }
    }
}

impl Enablement {
    /// What the selection says of a name.
    pub(crate) fn of(name: &str, selection: &Selection) -> Self {
        selection.exclusion(name).map_or(Self::Enabled, Self::DisabledBySelection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use tempfile::TempDir;

    const TWO: &str = r#"format = 1
search = ["lib"]
[budget]
host = "75%"
[[backing]]
name = "first"
library = "vendor"
required = true
priority = 4
[[backing]]
name = "second"
library = "vendor"
backing = "other"
enabled = false
"#;

    fn resolve(text: &str, selection: &Selection) -> Manifest {
        let file = RegistryFile::parse(text, Path::new("/nowhere/registry.toml")).unwrap();
        Manifest::resolve(&file, selection)
    }

    #[test]
    fn an_entry_carries_what_was_written() {
        let manifest = resolve(TWO, &Selection::all());
        let first = &manifest.entries[0];
        assert_eq!((first.name.as_str(), first.required, first.priority), ("first", true, 4));
        assert_eq!(manifest.entries[1].backing.as_deref(), Some("other"));
        assert_eq!(manifest.registry.as_deref(), Some(Path::new("/nowhere/registry.toml")));
    }

    #[test]
    fn two_entries_may_have_one_library() {
        let manifest = resolve(TWO, &Selection::all());
        assert_eq!(manifest.entries[0].source, manifest.entries[1].source);
    }

    #[test]
    fn a_domain_that_is_not_named_has_an_auto_budget() {
        let manifest = resolve(TWO, &Selection::all());
        assert_eq!(manifest.budgets.get(&Domain::Host).copied().unwrap_or_default(), "75%".parse().unwrap());
        assert_eq!(manifest.budgets.get(&Domain::Device(3)).copied().unwrap_or_default(), BudgetSpec::Auto);
    }

    #[test]
    fn a_disabled_entry_says_who_disabled_it() {
        let manifest = resolve(TWO, &Selection::new(None, Some("*")).unwrap());
        let by_selection = Enablement::DisabledBySelection("LEASEHOLD_DISABLE=\"*\" matches it".to_owned());
        assert_eq!(manifest.entries[0].enabled, by_selection);
        assert_eq!(manifest.entries[1].enabled, Enablement::DisabledInFile);
    }

    #[test]
    fn a_selection_does_not_enable_what_the_file_disables() {
        let manifest = resolve(TWO, &Selection::new(Some("second"), None).unwrap());
        assert_eq!(manifest.entries[1].enabled, Enablement::DisabledInFile);
    }

    #[test]
    fn without_a_file_there_is_the_builtin_alone() {
        let manifest = Manifest::builtin_only(&Selection::all());
        let [entry] = &manifest.entries[..] else { panic!("{manifest:?}") };
        assert_eq!((entry.name.as_str(), &entry.source), ("host-mmap", &LibrarySource::Builtin));
        assert_eq!(entry.enabled, Enablement::Enabled);
        assert_eq!(manifest.budgets.get(&Domain::Host).copied().unwrap_or_default(), BudgetSpec::Auto);
        let disabled = Manifest::builtin_only(&Selection::new(None, Some("host-*")).unwrap());
        assert!(matches!(disabled.entries[0].enabled, Enablement::DisabledBySelection(_)));
    }

    #[test]
    fn a_registry_behind_a_symbolic_link_finds_the_same_libraries() {
        let folder = TempDir::new().unwrap();
        let (real, elsewhere) = (folder.path().join("real"), folder.path().join("elsewhere"));
        fs::create_dir_all(real.join("lib")).unwrap();
        fs::create_dir_all(elsewhere.join("lib")).unwrap();
        fs::write(real.join("registry.toml"), TWO).unwrap();
        fs::write(real.join("lib/libvendor.so"), "").unwrap();
        fs::write(elsewhere.join("lib/libvendor.so"), "").unwrap();
        symlink("../real/registry.toml", elsewhere.join("registry.toml")).unwrap();
        let sources = [&real, &elsewhere].map(|folder| {
            let file = RegistryFile::read(&folder.join("registry.toml")).unwrap();
            Manifest::resolve(&file, &Selection::all()).entries[0].source.clone()
        });
        let expected = LibrarySource::File(fs::canonicalize(&real).unwrap().join("lib/libvendor.so"));
        assert_eq!(sources, [expected.clone(), expected]);
    }
}
