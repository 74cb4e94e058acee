//! Plain allocations: CUDA Driver API, `cuMemAlloc` and `cuMemFree`.

use super::Memory;
use crate::codes::{Answer, Code};
use crate::settings::Settings;
use leasehold_host_memory::AddressSpace;
use leasehold_host_memory::sys::{Counting, page_bytes};

/// How `cuMemAlloc` aligns, and the sizes that it takes memory in.
const ALIGN: u64 = 512;

/// One plain allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) device: i32,
    /// Keeps its addresses from everybody else.
    pub(crate) space: AddressSpace,
    pub(crate) requested: u64,
    /// Where its bytes are in the store.
    pub(crate) begin: u64,
}

impl Allocation {
    /// What it takes of its device.
    pub(crate) fn bytes(&self) -> u64 {
        self.requested.next_multiple_of(ALIGN)
    }
}

impl Memory {
    /// `cuMemAlloc`: 0 bytes are `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn allocate(&mut self, settings: &Settings, device: i32, requested: u64) -> Answer<u64> {
        if requested == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let free = self.free(settings, device);
        let bytes = requested.checked_next_multiple_of(ALIGN).filter(|bytes| *bytes <= free);
        let pages = bytes.ok_or(Code::OUT_OF_MEMORY)?.next_multiple_of(page_bytes());
        let space = AddressSpace::reserve(pages, page_bytes(), Counting::Uncounted).map_err(|_| Code::OUT_OF_MEMORY)?;
        let begin = self.store.take(pages)?;
        let base = space.base().get();
        let allocation = Allocation { device, space, requested, begin };
        self.charge(device, allocation.bytes());
        self.allocations.insert(base, allocation);
        Ok(base)
    }

    /// `cuMemFree`: exactly what `cuMemAlloc` answered. Anything else is a mistake of the caller's books.
    pub(crate) fn free_allocation(&mut self, base: u64) -> Answer<u64> {
        let Some(allocation) = self.allocations.remove(&base) else {
            self.violation(format!("cuMemFree: no allocation begins at {base:#x}"));
            return Err(Code::INVALID_VALUE);
        };
        self.refund(allocation.device, allocation.bytes());
        self.store.give_back(allocation.begin, allocation.space.bytes());
        Ok(allocation.requested)
    }

    /// Whose memory an address is, where it lies in a plain allocation.
    pub(crate) fn allocation_owner(&self, address: u64) -> Option<i32> {
        let (base, allocation) = self.allocations.range(..=address).next_back()?;
        (address - base < allocation.requested).then_some(allocation.device)
    }

    /// Ends the allocations of a device whose context ended: `cuDevicePrimaryCtxReset`.
    pub(crate) fn end_allocations(&mut self, device: i32) {
        let bases: Vec<_> =
            self.allocations.iter().filter(|(_, each)| each.device == device).map(|(base, _)| *base).collect();
        for base in bases {
            let _ = self.free_allocation(base);
        }
    }
}
