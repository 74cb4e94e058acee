//! What the simulated machine is like: from the environment at first, then as a test sets it.

use crate::codes::{Answer, Code};
use std::collections::BTreeSet;

/// What fresh memory reads as, until a test sets another byte.
pub(crate) const FRESH: u8 = 0xD1;

/// As many devices as a test may ask for.
pub(crate) const MOST_DEVICES: u8 = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) devices: i32,
    /// The bytes of each device.
    pub(crate) memory: Vec<u64>,
    /// The minimum granularity.
    pub(crate) granularity: u64,
    /// The recommended one.
    pub(crate) recommended: u64,
    /// The minimum granularity of memory that is capable of GPUDirect RDMA: it goes with the property struct.
    pub(crate) rdma_granularity: u64,
    /// Whether access can be set to read-only.
    pub(crate) read_only: bool,
    /// How much address space may be reserved.
    pub(crate) address_space: u64,
    /// What a reservation is answered that there are no addresses for.
    pub(crate) address_refusal: Code,
    pub(crate) fresh: u8,
    /// What `cuMemGetInfo` reports as free, where that is not the truth.
    pub(crate) reported_free: Option<u64>,
    /// As `cuDriverGetVersion` tells it: 1000 × major + 10 × minor.
    pub(crate) version: i32,
    /// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
    pub(crate) virtual_memory: bool,
    /// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE` of each device.
    pub(crate) compute_mode: i32,
    /// The largest alignment of a reservation that is honoured: a request beyond it gets this one, and no more.
    pub(crate) honoured_alignment: u64,
    /// Whether `cuMemGetAccess` reports no access where nothing is mapped, and not a refusal: no documentation says which.
    pub(crate) has_access_everywhere: bool,
    /// Whether `cuPointerGetAttribute` refuses an address where nothing is mapped, and not reports that.
    pub(crate) refuses_unmapped: bool,
    /// Whether the calls that give memory and addresses back work without a current context, as their documented codes allow.
    pub(crate) gives_back_without_context: bool,
    /// Whether the number of a handle that ended is that of the next one.
    pub(crate) has_handles_again: bool,
    /// Whether what may be read may be written too, though its access says otherwise.
    pub(crate) lets_write: bool,
    /// Whether each handle takes a file descriptor of the process.
    pub(crate) has_descriptors: bool,
    /// Pairs (device, peer) where the device can't reach the peer's memory.
    pub(crate) strangers: BTreeSet<(i32, i32)>,
}

impl Settings {
    /// `LEASEHOLD_SIM_DEVICES` (default 2), `LEASEHOLD_SIM_MEMORY` (bytes of each device, 256 MiB) and
    /// `LEASEHOLD_SIM_GRANULARITY` (bytes, 2 MiB). What is no number counts as not set. `LEASEHOLD_SIM_PLAN` plans a failure:
    /// `cuMemMap 3 700`, that the third call answers 700, and `cuMemMap 3 700 on`, that every later one does too.
    /// `LEASEHOLD_SIM_LETS_WRITE` (1) has read-only access enforced nowhere.
    pub(crate) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    pub(crate) fn from_variables(read: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name, default| read(name).and_then(|text| text.trim().parse().ok()).unwrap_or(default);
        let granularity: u64 = number("LEASEHOLD_SIM_GRANULARITY", 2 << 20);
        let devices = number("LEASEHOLD_SIM_DEVICES", 2).min(MOST_DEVICES.into());
        Self {
            devices: i32::try_from(devices).unwrap_or(0),
            memory: vec![number("LEASEHOLD_SIM_MEMORY", 256 << 20); MOST_DEVICES.into()],
            granularity,
            recommended: granularity,
            rdma_granularity: granularity,
            read_only: true,
            address_space: 1 << 47,
            address_refusal: Code::OUT_OF_MEMORY,
            fresh: FRESH,
            reported_free: None,
            version: 12_080,
            virtual_memory: true,
            compute_mode: 0,
            honoured_alignment: u64::MAX,
            has_access_everywhere: false,
            refuses_unmapped: false,
            gives_back_without_context: false,
            has_handles_again: false,
            lets_write: number("LEASEHOLD_SIM_LETS_WRITE", 0) != 0,
            has_descriptors: false,
            strangers: BTreeSet::new(),
        }
    }

    /// Changes one setting, by its name; `device` counts for `memory` alone.
    pub(crate) fn set(&mut self, name: &str, device: i32, value: u64) -> Answer<()> {
        match name {
            "devices" if value <= MOST_DEVICES.into() => self.devices = i32::try_from(value).unwrap_or(0),
            "memory" => *self.memory_of(device)? = value,
            "granularity" if value.is_power_of_two() => {
                (self.granularity, self.recommended, self.rdma_granularity) = (value, value, value);
            }
            "recommended" if value.is_power_of_two() => self.recommended = value,
            "rdma_granularity" if value.is_power_of_two() => self.rdma_granularity = value,
            "read_only" => self.read_only = value != 0,
            "address_space" => self.address_space = value,
            "address_refusal" => self.address_refusal = Code(u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?),
            "fresh" => self.fresh = u8::try_from(value).map_err(|_| Code::INVALID_VALUE)?,
            "reported_free" => self.reported_free = Some(value),
            "version" => self.version = i32::try_from(value).map_err(|_| Code::INVALID_VALUE)?,
            "virtual_memory" => self.virtual_memory = value != 0,
            "compute_mode" => self.compute_mode = i32::try_from(value).map_err(|_| Code::INVALID_VALUE)?,
            "honoured_alignment" if value.is_power_of_two() => self.honoured_alignment = value,
            _ => return self.set_manner(name, value != 0),
        }
        Ok(())
    }

    /// Changes what a driver may do in one way or another.
    fn set_manner(&mut self, name: &str, holds: bool) -> Answer<()> {
        match name {
            "access_everywhere" => self.has_access_everywhere = holds,
            "refuses_unmapped" => self.refuses_unmapped = holds,
            "gives_back_without_context" => self.gives_back_without_context = holds,
            "handles_again" => self.has_handles_again = holds,
            "lets_write" => self.lets_write = holds,
            "descriptors" => self.has_descriptors = holds,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    fn memory_of(&mut self, device: i32) -> Answer<&mut u64> {
        let index = usize::try_from(device).map_err(|_| Code::INVALID_DEVICE)?;
        self.memory.get_mut(index).ok_or(Code::INVALID_DEVICE)
    }

    /// The bytes of a device.
    pub(crate) fn limit(&self, device: i32) -> u64 {
        usize::try_from(device).ok().and_then(|index| self.memory.get(index).copied()).unwrap_or(0)
    }

    /// Whether `device` can reach the memory of `owner`: CUDA Driver API, `cuDeviceCanAccessPeer`.
    pub(crate) fn can_reach(&self, device: i32, owner: i32) -> bool {
        device == owner || !self.strangers.contains(&(device, owner))
    }
}
