//! Makes backings that are linked in, by their names. It panics where one is not linked in.

use leasehold_host_mmap::{HostMmap, HostMmapOptions};
use leasehold_plugin_api::{Backing, BackingError, BackingFactory, BackingRegistration, HostServices, Options};

/// The built-in host-mmap, with its default options.
///
/// # Errors
///
/// What its creation answers.
pub fn host_mmap(services: HostServices) -> Result<HostMmap, BackingError> {
    HostMmap::create(HostMmapOptions::default(), services)
}

/// A backing that is linked in.
///
/// # Errors
///
/// What its creation answers.
///
/// # Panics
///
/// When it isn't linked in.
pub fn linked_in(name: &str, options: &Options, services: HostServices) -> Result<Box<dyn Backing>, BackingError> {
    let linked_in = BackingRegistration::linked_in();
    let found = linked_in.iter().find(|registration| registration.name() == name).expect("is linked in");
    found.create(options, services)
}

/// What makes a backing that is linked in, for [`HostBuilder::with_backing`](leasehold::HostBuilder::with_backing).
pub fn creator(
    name: &'static str,
    options: Options,
) -> impl FnOnce(HostServices) -> Result<Box<dyn Backing>, BackingError> + 'static {
    move |services| linked_in(name, &options, services)
}
