//! Hosts to measure on: a backing through its shared library, or linked in.

use leasehold::{
    BackingHandle, Buffer, BufferSet, BufferSpec, Domain, GrowthPolicy, HolderId, Host, PrefixSpec, SharedPrefix,
};
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
    beside_this_program("libleasehold_host_mmap.so")
}

fn beside_this_program(name: &str) -> PathBuf {
    std::env::current_exe().expect("the program knows its path").with_file_name(name)
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

    /// host-pool through its shared library, parking up to so many bytes.
    pub(crate) fn pool(park: u64) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let library = beside_this_program("libleasehold_host_pool.so");
        let text = format!(
            "format = 1\n[[backing]]\nname = \"backing-0\"\nrequired = true\nlibrary = {library:?}\n\
             [backing.options]\npark = \"{park}\"\n"
        );
        let registry = folder.path().join("registry.toml");
        fs::write(&registry, text).expect("a temporary folder can be written");
        Self::load(&registry)
    }

    fn with(library: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        Self::load(&registry(folder.path(), [library]))
    }

    fn load(registry: &Path) -> Self {
        let host = Host::builder().registry(registry).limit(Domain::Host, BUDGET).load().expect("its backing is ready");
        let backing = host.backing("backing-0").expect("it is there");
        Self { host, backing }
    }

    /// A sealed prefix of one plane, every byte of it written.
    pub(crate) fn prefix(&self, bytes: u64) -> SharedPrefix {
        let mut prefix = self.host.prefix(&self.backing, &PrefixSpec::new(bytes)).expect("it fits");
        prefix.plane_mut(0).expect("the CPU can touch it").fill(7);
        prefix.seal().expect("it is not sealed yet")
    }

    /// A buffer on somebody's behalf.
    pub(crate) fn buffer_of(&self, holder: u64, capacity: u64) -> Buffer {
        let spec = BufferSpec::new(capacity).holder(HolderId::new(holder));
        self.host.buffer(&self.backing, &spec).expect("address space costs nothing")
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
