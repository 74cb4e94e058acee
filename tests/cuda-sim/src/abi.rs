//! The C types that cross, with the driver's layouts. Enumerations are plain numbers: a caller may send any.

/// `CUmemLocation`: a device by its ordinal.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemLocation {
    /// `CUmemLocationType`; 1 is a device.
    pub(crate) kind: u32,
    /// The ordinal.
    pub(crate) id: i32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocationProp {
    /// `CUmemAllocationType`; 1 is pinned.
    pub(crate) kind: u32,
    /// `CUmemAllocationHandleType`; 0 is none, 1 a file descriptor.
    pub(crate) handle_types: u32,
    pub(crate) location: MemLocation,
    pub(crate) win32_meta_data: usize,
    pub(crate) compression: u8,
    pub(crate) gpu_direct_rdma: u8,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 4],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessDesc {
    pub(crate) location: MemLocation,
    /// `CUmemAccess_flags`.
    pub(crate) flags: u32,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub(crate) const LOCATION_DEVICE: u32 = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
pub(crate) const ALLOCATION_PINNED: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_NONE`.
pub(crate) const ACCESS_NONE: u32 = 0;
/// `CU_MEM_ACCESS_FLAGS_PROT_READ`.
pub(crate) const ACCESS_READ: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
pub(crate) const ACCESS_READ_WRITE: u32 = 3;

/// What `leasehold_sim_books` fills: how much is live.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BookCounts {
    pub(crate) reservations: u64,
    pub(crate) reserved_bytes: u64,
    pub(crate) mappings: u64,
    /// Physical memory that is alive, by a handle or by a mapping.
    pub(crate) physical: u64,
    /// References that `cuMemRelease` has to end.
    pub(crate) handle_references: u64,
    pub(crate) allocations: u64,
    pub(crate) streams: u64,
    /// Retains of primary contexts that are not released.
    pub(crate) context_retains: u64,
    /// Bytes in use on all devices.
    pub(crate) bytes: u64,
    pub(crate) violations: u64,
}
