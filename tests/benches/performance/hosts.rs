//! Hosts to measure on: host-mmap through its shared library, or linked in.

use leasehold::{BackingHandle, Buffer, BufferSet, BufferSpec, Domain, GrowthPolicy, Host};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// What the books allow: more than any row takes.
pub(crate) const BUDGET: u64 = 64 * GIB;

/// A host with one backing.
pub(crate) struct Single {
    host: Host,
    backing: BackingHandle,
}

/// host-mmap's library, which cargo builds next to this program.
pub(crate) fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the program knows its path");
    program.with_file_name("libleasehold_host_mmap.so")
}

/// A registry file with one entry for each library.
pub(crate) fn registry<'a>(folder: &Path, libraries: impl IntoIterator<Item = &'a str>) -> PathBuf {
    let mut text = "format = 1\n".to_owned();
    for (index, library) in libraries.into_iter().enumerate() {
        let name = format!("[[backing]]\nname = \"backing-{index}\"\nrequired = true\n");
        text.push_str(&name);
        text.push_str(&format!("library = \"{library}\"\nbacking = \"host-mmap\"\n"));
    }
    let path = folder.join("registry.toml");
    fs::write(&path, text).expect("a temporary folder can be written");
    path
}

impl Single {
    /// Through the shared library.
    pub(crate) fn loaded() -> Self {
        Self::with(library().to_str().expect("the path is text"))
    }

    /// Linked into this program.
    pub(crate) fn linked_in() -> Self {
        Self::with("builtin")
    }

    fn with(library: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let registry = registry(folder.path(), [library]);
        let host = Host::builder().registry(registry).limit(Domain::Host, BUDGET).load().expect("host-mmap is ready");
        let backing = host.backing("backing-0").expect("it is there");
        Self { host, backing }
    }

    pub(crate) fn buffer(&self, capacity: u64, growth: GrowthPolicy) -> Buffer {
        let spec = BufferSpec::new(capacity).growth(growth);
        self.host.buffer(&self.backing, &spec).expect("address space costs nothing")
    }

    /// A set of one plane.
    pub(crate) fn set(&self, capacity: u64) -> BufferSet {
        self.host.buffer_set(&self.backing, 1, &BufferSpec::new(capacity)).expect("address space costs nothing")
    }
}
