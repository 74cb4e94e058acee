//! What a backing says of itself.

use super::DeviceKey;

/// Whether the CPU can load and store at the addresses of a backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostAccess {
    /// Committed bytes are ordinary memory of this process.
    Direct,
    /// Only the device can touch them; see [`Transfer`](crate::Transfer).
    None,
}

/// What a backing says of itself. The answer never changes in a backing's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The device whose memory it hands out.
    pub device: DeviceKey,
    /// The device's name for people, at most 255 bytes across a library boundary.
    pub device_name: String,
    /// The physical memory of the device in bytes, or 0 where the backing can't tell.
    pub total_bytes: u64,
    /// Whether the CPU can touch it.
    pub host_access: HostAccess,
}

impl Description {
    /// A description whose total is unknown.
    #[must_use]
    pub fn new(device: DeviceKey, device_name: impl Into<String>, host_access: HostAccess) -> Self {
        Self { device, device_name: device_name.into(), total_bytes: 0, host_access }
    }

    /// The same, with the physical memory of the device in bytes.
    #[must_use]
    pub fn with_total_bytes(mut self, total_bytes: u64) -> Self {
        self.total_bytes = total_bytes;
        self
    }
}
