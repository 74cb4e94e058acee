//! The device under check, and hosts with one backing on it.

use leasehold::{BackingHandle, Domain, Error, Host, HostBuilder};
use leasehold_cuda_driver::{Device, Driver, Properties};
use leasehold_plugin_api::{Backing, BackingError, HostServices, OptionValue, Options};
use leasehold_tests::fault::linked_in;
use std::path::PathBuf;

/// What is checked, and how far.
pub(crate) struct Settings {
    pub(crate) driver: Option<PathBuf>,
    pub(crate) device: Device,
    pub(crate) properties: Properties,
    /// Bytes of one granule.
    pub(crate) granule: u64,
    /// Bytes of the long growth.
    pub(crate) growth: u64,
    /// Bytes of everything else.
    pub(crate) size: u64,
    version: String,
}

impl Settings {
    pub(crate) fn find(path: Option<PathBuf>, ordinal: u32, growth: u64, size: u64) -> Result<Self, BackingError> {
        let driver = Driver::open(path.as_deref())?;
        let device = driver.device(ordinal)?;
        let properties = Properties::of_device(ordinal);
        let ask =
            |fault: leasehold_cuda_driver::Fault| fault.into_error("the device does not answer", "see nvidia-smi");
        let granule = device.granularity(properties).map_err(ask)?.minimum;
        let free = device.memory().map_err(ask)?.free;
        // A margin for contexts and whoever else is there.
        let most = free.saturating_sub(free / 16) / granule * granule;
        let version = driver.version().map_err(ask)?;
        let growth = growth.min(most);
        Ok(Self { driver: path, device, properties, granule, growth, size: size.min(most / 4), version })
    }

    pub(crate) fn title(&self) -> String {
        let name = self.device.name().unwrap_or_else(|fault| fault.to_string());
        format!("{name}, CUDA {}, granule {} KiB", self.version, self.granule >> 10)
    }

    pub(crate) fn options(&self) -> Options {
        let options = Options::new().with("device", OptionValue::Integer(self.device.ordinal().into()));
        match self.driver.as_ref().and_then(|path| path.to_str()) {
            Some(path) => options.with("driver", OptionValue::Text(path.to_owned())),
            None => options,
        }
    }

    /// A host in the making with that backing, under a budget that is no obstacle.
    pub(crate) fn builder(&self, name: &'static str) -> HostBuilder {
        let options = self.options();
        let create = move |services: HostServices| -> Result<Box<dyn Backing>, BackingError> {
            linked_in(name, &options, services)
        };
        let domain = Domain::Device(self.device.ordinal());
        Host::builder().limit(domain, u64::MAX).with_backing(name, create)
    }

    /// A host with that backing.
    pub(crate) fn host(&self, name: &'static str) -> Result<(Host, BackingHandle), Error> {
        let host = self.builder(name).load()?;
        let backing = host.backing(name)?;
        Ok((host, backing))
    }
}
