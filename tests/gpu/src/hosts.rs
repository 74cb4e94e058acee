//! The device under check, and hosts with one backing on it.

use crate::sizes::{Asked, Sizes};
use leasehold::{BackingHandle, Domain, Error, Host, HostBuilder};
use leasehold_cuda_driver::{Device, Driver, Fault, Properties};
use leasehold_plugin_api::{Backing, BackingError, HostServices, OptionValue, Options};
use leasehold_tests::fault::linked_in;
use std::path::{Path, PathBuf};

/// What is checked, and how far.
pub(crate) struct Settings {
    pub(crate) driver: Option<PathBuf>,
    pub(crate) device: Device,
    pub(crate) properties: Properties,
    pub(crate) sizes: Sizes,
    version: String,
}

impl Settings {
    /// The device of that ordinal, by the driver at that path or the system's.
    ///
    /// # Errors
    ///
    /// Words for why there is nothing to check.
    pub(crate) fn find(path: Option<PathBuf>, ordinal: u32, asked: Asked) -> Result<Self, String> {
        let properties = Properties::of_device(ordinal);
        let found = Self::ask(path.as_deref(), ordinal, properties);
        let (device, version, granule, free) = found.map_err(|error| format!("no device to check: {error}"))?;
        let sizes = asked.resolve(granule, free)?;
        Ok(Self { driver: path, device, properties, sizes, version })
    }

    /// The device, the driver's version, the bytes of a granule, and those that are free.
    fn ask(
        path: Option<&Path>,
        ordinal: u32,
        properties: Properties,
    ) -> Result<(Device, String, u64, u64), BackingError> {
        let driver = Driver::open(path)?;
        let device = driver.device(ordinal)?;
        let ask = |fault: Fault| fault.into_error("the device does not answer", "see nvidia-smi");
        let granule = device.granularity(properties).map_err(ask)?.minimum;
        let free = device.memory().map_err(ask)?.free;
        let version = driver.version().map_err(ask)?;
        Ok((device, version, granule, free))
    }

    pub(crate) fn title(&self) -> String {
        let name = self.device.name().unwrap_or_else(|fault| fault.to_string());
        format!("{name}, CUDA {}, granule {} KiB", self.version, self.sizes.granule >> 10)
    }

    fn options(&self) -> Options {
        let options = Options::new().with("device", OptionValue::Integer(self.device.ordinal().into()));
        match self.driver.as_ref().and_then(|path| path.to_str()) {
            Some(path) => options.with("driver", OptionValue::Text(path.to_owned())),
            None => options,
        }
    }

    /// A host in the making with that backing, under a budget that is no obstacle.
    pub(crate) fn builder(&self, name: &'static str) -> HostBuilder {
        self.builder_with(name, self.options())
    }

    fn builder_with(&self, name: &'static str, options: Options) -> HostBuilder {
        let create = move |services: HostServices| -> Result<Box<dyn Backing>, BackingError> {
            linked_in(name, &options, services)
        };
        let domain = Domain::Device(self.device.ordinal());
        Host::builder().limit(domain, u64::MAX).with_backing(name, create)
    }

    /// A host with that backing.
    pub(crate) fn host(&self, name: &'static str) -> Result<(Host, BackingHandle), Error> {
        load(self.builder(name), name)
    }

    /// A host with a pool that parks as much as the size, however large that is.
    pub(crate) fn parking_host(&self) -> Result<(Host, BackingHandle), Error> {
        let name = "cuda-pool";
        let options = self.options().with("park", OptionValue::Text(self.sizes.size.to_string()));
        load(self.builder_with(name, options), name)
    }
}

fn load(builder: HostBuilder, name: &str) -> Result<(Host, BackingHandle), Error> {
    let host = builder.load()?;
    let backing = host.backing(name)?;
    Ok((host, backing))
}
