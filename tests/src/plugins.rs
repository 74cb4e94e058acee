//! Where the plugins are, and registry files that name them.
//!
//! Cargo leaves the library of a crate that is a dependency as `deps/lib{name}.so`, beside the program of the test, and
//! never in a folder that is searched. So the suites name libraries by path, in registry files of their own.

use leasehold::{Door, Host, HostBuilder};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The library of a crate, such as `leasehold_rogue`, as Cargo has built it for this test.
///
/// # Panics
///
/// When it is not there.
#[must_use]
pub fn library(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("the system knows which program runs");
    let path = program.with_file_name(format!("lib{name}.so"));
    assert!(path.is_file(), "{} is not there; is the crate a dependency of the tests?", path.display());
    path
}

/// What a registry file writes for a crate's backings that come in by that door.
///
/// # Panics
///
/// As [`library`], where they are loaded from it.
#[must_use]
pub fn library_by(door: Door, name: &str) -> String {
    if door == Door::Builtin { "builtin".to_owned() } else { text(&library(name)) }
}

/// The two ways in to a crate's backings: linked into this program, and loaded from its library. What holds for one has
/// to hold for the other.
#[must_use]
pub fn doors(name: &str) -> [(Door, String); 2] {
    [Door::Builtin, Door::AbiStable].map(|door| (door, library_by(door, name)))
}

/// A folder with a registry file in the making, and what it names. Dropping it removes them.
#[derive(Debug)]
pub struct Registry {
    folder: TempDir,
    text: String,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry that names no backing and lets the host spend 64 MiB.
    ///
    /// # Panics
    ///
    /// When there is no room for temporary files.
    #[must_use]
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        Self { folder, text: "format = 1\n[budget]\nhost = \"64 MiB\"\n".to_owned() }
    }

    /// One more `[[backing]]`: its name, its library, and further lines such as `backing = "liar"`. Lines after
    /// `[backing.options]` are options.
    #[must_use]
    pub fn backing(mut self, name: &str, library: &str, lines: &str) -> Self {
        self.text.push_str(&format!("[[backing]]\nname = {name:?}\nlibrary = {library:?}\n{lines}\n"));
        self
    }

    /// One more budget, as the file writes it; before the first backing.
    #[must_use]
    pub fn budget(mut self, domain: &str, value: &str) -> Self {
        self.text.push_str(&format!("{domain:?} = {value}\n"));
        self
    }

    /// The folder of the registry file.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Copies a file into the folder: for the linker a library of its own, with statics of its own.
    ///
    /// # Panics
    ///
    /// When it can't be copied.
    #[must_use]
    pub fn copy(&self, file: &Path, name: &str) -> String {
        let copy = self.folder().join(name);
        fs::copy(file, &copy).expect("the library can be copied");
        text(&copy)
    }

    /// Links to a file from the folder: for the linker the same library.
    ///
    /// # Panics
    ///
    /// When it can't be linked to.
    #[must_use]
    pub fn link(&self, file: &str, name: &str) -> String {
        let link = self.folder().join(name);
        symlink(file, &link).expect("a link can be made");
        text(&link)
    }

    /// Puts a file with these bytes into the folder.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    #[must_use]
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder().join(name);
        fs::write(&path, bytes).expect("a file can be written");
        text(&path)
    }

    /// Writes the registry file.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    #[must_use]
    pub fn write(&self) -> PathBuf {
        PathBuf::from(self.file("registry.toml", self.text.as_bytes()))
    }

    /// A builder of a host that reads the registry file.
    pub fn builder(&self) -> HostBuilder {
        Host::builder().registry(self.write())
    }

    /// A host from the registry file, whatever became of its backings.
    ///
    /// # Panics
    ///
    /// When the registry file is wrong.
    #[must_use]
    pub fn host(&self) -> Host {
        self.builder().survey().expect("the registry file is right")
    }
}

/// A path as registry files write it.
///
/// # Panics
///
/// When it is no UTF-8.
#[must_use]
pub fn text(path: &Path) -> String {
    path.to_str().expect("paths of tests are UTF-8").to_owned()
}
