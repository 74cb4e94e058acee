//! What a backing reports about itself.

use super::DeviceKey;

/// What a backing reports about itself; constant for its life. Whether the CPU can touch its memory is no part
/// of it: see [`HostAccess`](crate::HostAccess).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The device whose memory it hands out.
    pub device: DeviceKey,
    /// The device's name for people, at most 255 bytes across a library boundary.
    pub device_name: String,
    /// The physical memory of the device in bytes, or 0 where the backing doesn't know it.
    pub total_bytes: u64,
    /// Bytes that were free when the backing was made, other processes counted as users; `None` where the backing does
    /// not ask. An `"auto"` budget of a device is computed from it, or from all of `total_bytes`.
    pub free_bytes: Option<u64>,
}

impl Description {
    /// A description whose memory is unknown.
    #[must_use]
    pub fn new(device: DeviceKey, device_name: impl Into<String>) -> Self {
        Self { device, device_name: device_name.into(), total_bytes: 0, free_bytes: None }
    }

    /// The same, with the physical memory of the device in bytes.
    #[must_use]
    pub fn with_total_bytes(mut self, total_bytes: u64) -> Self {
        self.total_bytes = total_bytes;
        self
    }

    /// The same, with the bytes that were free at creation, if known. Query once: a description never changes.
    #[must_use]
    pub fn with_free_bytes(mut self, free_bytes: impl Into<Option<u64>>) -> Self {
        self.free_bytes = free_bytes.into();
        self
    }
}
