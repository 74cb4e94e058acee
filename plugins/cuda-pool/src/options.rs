//! The options as they are written in the registry.

use leasehold_cuda_regions::{DeviceOptions, GranularityChoice};
use leasehold_plugin_api::ByteSize;
use serde::Deserialize;
use std::path::PathBuf;

/// The most bytes to park, unless the options say otherwise.
const PARK: u64 = 1 << 30;

/// The options of [`CudaPool`](crate::CudaPool), as written. Those of [`DeviceOptions`] are repeated, since serde refuses no
/// unknown key where one struct is flattened into another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CudaPoolOptions {
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
    /// The most bytes to park, in whole granules. Default: 1 GiB.
    pub park: Option<ByteSize>,
}

impl CudaPoolOptions {
    /// What it has in common with other backings of CUDA devices.
    pub(crate) fn device_options(&self) -> DeviceOptions {
        let Self { device, granularity, handle, peers, driver, .. } = self.clone();
        DeviceOptions { device, granularity, handle, peers, driver }
    }

    /// The most granules to park.
    pub(crate) fn park_granules(&self, granule: u64) -> u64 {
        self.park.map_or(PARK, |ByteSize(bytes)| bytes).checked_div(granule).unwrap_or(0)
    }
}
