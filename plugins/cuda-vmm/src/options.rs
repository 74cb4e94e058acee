//! The options as they are written in the registry.

use leasehold_cuda_regions::{DeviceOptions, GranularityChoice};
use serde::Deserialize;
use std::path::PathBuf;

/// The options of [`CudaVmm`](crate::CudaVmm), as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CudaVmmOptions {
    /// The device's ordinal, as the driver counts them. Default: 0.
    pub device: u32,
    /// Which granularity a unit is made of. Default: the minimum.
    pub granularity: GranularityChoice,
    /// How many granules one handle has: a power of two. Default: 1.
    pub handle: Option<u64>,
    /// Ordinals of other devices that get access too. Default: none.
    pub peers: Vec<u32>,
    /// A library to load instead of the system's driver.
    pub driver: Option<PathBuf>,
}

impl CudaVmmOptions {
    /// What it has in common with other backings of CUDA devices.
    pub(crate) fn device_options(&self) -> DeviceOptions {
        let Self { device, granularity, handle, peers, driver } = self.clone();
        DeviceOptions { device, granularity, handle, peers, driver }
    }
}
