//! Hosts over each way in for the same backing, so that one suite runs over all of them.

use leasehold::{BackingHandle, Domain, Host, Requirements};
use leasehold_tests::fault::{Books, Faults};
use std::path::PathBuf;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// The budget of every host here.
pub(crate) const LIMIT: u64 = GIB;

/// One host with one backing that grows.
pub(crate) struct Ground {
    pub(crate) name: &'static str,
    pub(crate) host: Host,
    pub(crate) backing: BackingHandle,
    pub(crate) granule: u64,
}

impl Ground {
    pub(crate) fn over(name: &'static str, host: Host) -> Self {
        let backing = host.find(&Requirements::growable()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let granule = backing.capabilities().granularity().expect("it grows");
        Self { name, host, backing, granule }
    }

    pub(crate) fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).expect("the host has books").used_bytes
    }
}

/// Linked in, loaded from its library, behind a backing that charges by itself; and a pool that does and parks nothing, so
/// that what is freed leaves the books at once.
pub(crate) fn grounds() -> Vec<Ground> {
    let builtin = Host::builder().limit(Domain::Host, LIMIT).load().expect("needs nothing");
    let charging = Faults::new().host_with(LIMIT, Books::OfItsHost).expect("needs nothing");
    vec![
        Ground::over("built-in host-mmap", builtin),
        Ground::over("libleasehold_host_mmap.so", loaded("host-mmap", "leasehold_host_mmap", "")),
        Ground::over("host-mmap that charges by itself", charging),
        Ground::over("libleasehold_host_pool.so", loaded("host-pool", "leasehold_host_pool", POOL_OPTIONS)),
    ]
}

const POOL_OPTIONS: &str = "[backing.options]\ngranule = \"4 KiB\"\npark = 0\n";

fn loaded(name: &str, library: &str, options: &str) -> Host {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = folder.path().join("registry.toml");
    let text = format!(
        "format = 1\nsearch = [{:?}]\n\n[[backing]]\nname = {name:?}\nlibrary = {library:?}\nrequired = true\n{options}",
        libraries()
    );
    std::fs::write(&registry, text).expect("written");
    Host::builder().registry(&registry).limit(Domain::Host, LIMIT).load().unwrap_or_else(|error| panic!("{error}"))
}

/// The folder of this very program, where cargo leaves the libraries that it depends on.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.parent().expect("a folder").to_owned()
}
