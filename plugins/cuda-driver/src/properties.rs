//! What physical memory is to be like, and who may reach it: the driver's structs from plain values.

use crate::sys::raw;

/// What physical memory is to be like. The granularity goes with the whole of it, so ask for the granularity of the
/// very value that memory is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    ordinal: u32,
    rdma: bool,
    exportable: bool,
}

impl Properties {
    /// Pinned memory of that device.
    #[must_use]
    pub fn of_device(ordinal: u32) -> Self {
        Self { ordinal, rdma: false, exportable: false }
    }

    /// The same, which network cards can reach (GPUDirect RDMA).
    #[must_use]
    pub fn with_gpu_direct_rdma(mut self) -> Self {
        self.rdma = true;
        self
    }

    /// The same, whose handles can be exported as file descriptors.
    #[must_use]
    pub fn with_file_descriptors(mut self) -> Self {
        self.exportable = true;
        self
    }

    pub(crate) fn raw(self) -> raw::CUmemAllocationProp {
        let handle_type = u32::from(self.exportable);
        raw::CUmemAllocationProp {
            type_: raw::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
            // 0 is CU_MEM_HANDLE_TYPE_NONE, 1 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
            requestedHandleTypes: raw::CUmemAllocationHandleType_enum(handle_type),
            location: device(self.ordinal),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: raw::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: u8::from(self.rdma),
                usage: 0,
                reserved: [0; 4],
            },
        }
    }
}

/// What a device may do with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Load.
    ReadOnly,
    /// Load and store.
    ReadWrite,
}

/// Access for one device: the owner of the memory, or a peer that can reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The ordinal of the device.
    pub ordinal: u32,
    /// What it may do.
    pub access: Access,
}

impl Grant {
    pub(crate) fn raw(self) -> raw::CUmemAccessDesc {
        use raw::CUmemAccess_flags_enum as Flags;
        let flags = match self.access {
            Access::ReadOnly => Flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
            Access::ReadWrite => Flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        raw::CUmemAccessDesc { location: device(self.ordinal), flags }
    }
}

/// Which sizes physical memory comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// Every size is a multiple of it, in bytes.
    pub minimum: u64,
    /// For the best performance, in bytes. Often the same.
    pub recommended: u64,
}

/// A device as a location. No machine has an ordinal that an `i32` can't name; one that were so would be refused as -1.
pub(crate) fn device(ordinal: u32) -> raw::CUmemLocation {
    let id = i32::try_from(ordinal).unwrap_or(-1);
    raw::CUmemLocation { type_: raw::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE, id }
}
