//! The options that the CUDA backings have in common, and what they resolve to on this machine.

use leasehold_cuda_driver::{Device, Driver, Properties};
use leasehold_plugin_api::{BackingError, ErrorKind};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Which of the driver's two granularities the granule is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GranularityChoice {
    /// The smallest that the device has.
    #[default]
    Minimum,
    /// What the driver recommends for speed.
    Recommended,
}

/// The options that the CUDA backings have in common, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceOptions {
    /// The device's ordinal, as the driver counts them. Default: 0.
    pub device: u32,
    /// Which of the driver's two granularities the granule is made of. Default: the minimum.
    pub granularity: GranularityChoice,
    /// How many times the driver's granularity one handle has, and so the granule: a power of two. Default: 1.
    pub handle: Option<u64>,
    /// Ordinals of other devices that get access too. Default: none.
    pub peers: Vec<u32>,
    /// A library to load instead of the system's driver.
    pub driver: Option<PathBuf>,
}

/// What the options resolve to on this machine.
#[derive(Debug)]
pub struct DeviceSetting {
    /// The device. No context is made on it yet.
    pub device: Device,
    /// What memory is to be like.
    pub properties: Properties,
    /// The unit of commit: the bytes of one handle, a power of two.
    pub granule: u64,
    /// Who gets access: the device first, then its peers.
    pub ordinals: Arc<[u32]>,
    /// The device's name.
    pub name: String,
    /// All its memory, in bytes.
    pub total_bytes: u64,
}

impl DeviceOptions {
    /// Opens the driver and the device, and checks what the options need from them.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable) where driver, device or virtual memory management isn't here,
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) where an option can't be served.
    pub fn resolve(&self) -> Result<DeviceSetting, BackingError> {
        self.check_as_written()?;
        let driver = Driver::open(self.driver.as_deref())?;
        let device = driver.device(self.device)?;
        let ask =
            |what: &'static str| move |fault: leasehold_cuda_driver::Fault| fault.into_error(what, "see nvidia-smi");
        if !device.supports_virtual_memory().map_err(ask("the device says nothing of its abilities"))? {
            let message = format!("device {} has no virtual memory management; use another device", self.device);
            return Err(BackingError::new(ErrorKind::Unavailable, message));
        }
        for peer in &self.peers {
            self.check_peer(&driver, *peer)?;
        }
        let properties = Properties::of_device(self.device);
        let granularity = device.granularity(properties).map_err(ask("the device does not tell its granularity"))?;
        let driver_granularity = match self.granularity {
            GranularityChoice::Minimum => granularity.minimum,
            GranularityChoice::Recommended => granularity.recommended,
        };
        let total_bytes = device.total_bytes().map_err(ask("the device does not tell its memory"))?;
        Ok(DeviceSetting {
            properties,
            granule: self.granule(driver_granularity, total_bytes)?,
            ordinals: [self.device].into_iter().chain(self.peers.iter().copied()).collect(),
            name: device.name().map_err(ask("the device does not tell its name"))?,
            total_bytes,
            device,
        })
    }

    /// Checks what needs no device, so that mistakes show on a machine that has none.
    fn check_as_written(&self) -> Result<(), BackingError> {
        if let Some(path) = self.driver.as_ref().filter(|path| !path.is_absolute()) {
            // The dynamic linker would look for it in folders of its own.
            let path = path.display();
            return Err(BackingError::invalid(format!(
                "option `driver` refused: {path} is no absolute path; write all of it, from / on"
            )));
        }
        if let Some(factor) = self.handle.filter(|factor| !factor.is_power_of_two()) {
            return Err(BackingError::invalid(format!(
                "option `handle` refused: {factor} is no power of two; write 1, 2, 4 and so on"
            )));
        }
        let refuse = |why: String| BackingError::invalid(format!("option `peers` refused: {why}; leave it out"));
        for (index, peer) in self.peers.iter().enumerate() {
            if *peer == self.device {
                return Err(refuse(format!("{peer} is the device itself")));
            }
            if self.peers.iter().take(index).any(|before| before == peer) {
                return Err(refuse(format!("{peer} is written twice")));
            }
        }
        Ok(())
    }

    /// Bytes of one handle.
    fn granule(&self, driver_granularity: u64, total_bytes: u64) -> Result<u64, BackingError> {
        let factor = self.handle.unwrap_or(1);
        let bytes = driver_granularity.checked_mul(factor);
        bytes.filter(|bytes| *bytes <= total_bytes && bytes.is_power_of_two()).ok_or_else(|| {
            BackingError::invalid(format!(
                "option `handle` refused: {factor} times the driver's granularity of {driver_granularity} bytes are no \
                 power of two that the device's {total_bytes} bytes have room for; write a smaller one"
            ))
        })
    }

    fn check_peer(&self, driver: &Driver, peer: u32) -> Result<(), BackingError> {
        if driver.can_reach(peer, self.device)? {
            return Ok(());
        }
        let why = format!("device {peer} can't reach device {}", self.device);
        Err(BackingError::invalid(format!("option `peers` refused: {why}; leave it out")))
    }
}
