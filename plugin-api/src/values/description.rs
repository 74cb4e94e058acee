//! What a backing says of itself.
#![expect(unsafe_code, reason = "one claim is the author's to make, and has duties")]

use super::DeviceKey;

/// Whether the CPU can load and store at the addresses of a backing.
///
/// The host makes slices of what has direct access, so that this is the one claim of the contract whose breach is
/// undefined behaviour; everything else that a backing answers is checked. A backing that wraps another and passes its
/// description on takes the claim over, with its duties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostAccess {
    is_direct: bool,
}

impl HostAccess {
    /// Only the device can touch the memory; see [`Transfer`](crate::Transfer).
    pub const NONE: Self = Self { is_direct: false };

    /// Committed bytes, and those of allocations and prefixes, are ordinary memory of this process.
    ///
    /// # Safety
    ///
    /// Of every address range that the backing answers, from its commit or allocation to its decommit or release; of a
    /// prefix's window from its creation to its release, and of a part of it from its mapping to its unmapping:
    ///
    /// * it is readable, writable (a prefix: until it is sealed) and initialised memory of this process, whose provenance is exposed (or was never
    ///   Rust's, as with memory that the kernel maps);
    /// * nobody but the host reads or writes it, the backing itself included;
    /// * nothing else takes it away: a second handle on the backing, say.
    #[must_use]
    pub const unsafe fn direct() -> Self {
        Self { is_direct: true }
    }

    /// What the author of a loaded plugin claimed on the other side of the boundary.
    pub(crate) const fn claimed(is_direct: bool) -> Self {
        Self { is_direct }
    }

    /// Whether the CPU can touch the memory.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        self.is_direct
    }
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
    /// What of it nobody used when the backing was made, other processes included; `None` where the backing can't tell.
    /// What an `"auto"` budget of a device is reckoned from.
    pub free_bytes: Option<u64>,
    /// Whether the CPU can touch it.
    pub host_access: HostAccess,
}

impl Description {
    /// A description whose memory is unknown.
    #[must_use]
    pub fn new(device: DeviceKey, device_name: impl Into<String>, host_access: HostAccess) -> Self {
        Self { device, device_name: device_name.into(), total_bytes: 0, free_bytes: None, host_access }
    }

    /// The same, with the physical memory of the device in bytes.
    #[must_use]
    pub fn with_total_bytes(mut self, total_bytes: u64) -> Self {
        self.total_bytes = total_bytes;
        self
    }

    /// The same, with what of that nobody used when the backing was made, if it can tell. Look once, at creation: the
    /// answer never changes.
    #[must_use]
    pub fn with_free_bytes(mut self, free_bytes: impl Into<Option<u64>>) -> Self {
        self.free_bytes = free_bytes.into();
        self
    }
}
