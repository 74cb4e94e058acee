//! Address space: CUDA Driver API, `cuMemAddressReserve` and `cuMemAddressFree`.

use super::Memory;
use crate::codes::{Answer, Code};
use crate::settings::Settings;
use leasehold_host_memory::AddressSpace;
use leasehold_host_memory::sys::{Counting, page_bytes};

/// One reserved range.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    /// Keeps its addresses reserved in this process.
    _space: AddressSpace,
}

impl Reserved {
    /// At a multiple of `align`, or where that is more than `honoured` of that alone.
    fn new(bytes: u64, align: u64, honoured: u64) -> Option<Self> {
        let skipped = if align > honoured { honoured } else { 0 };
        // The first multiple of the honoured alignment behind one of twice that.
        let align = if skipped > 0 { honoured.checked_mul(2)? } else { align };
        let space = AddressSpace::reserve(bytes.checked_add(skipped)?, align, Counting::Uncounted).ok()?;
        Some(Self { base: space.base().get() + skipped, bytes, _space: space })
    }
}

impl Memory {
    /// `cuMemAddressReserve`: size and hint are multiples of the page size of the host, the alignment is a power of two
    /// or 0, and a request that a setting may honour in part; flags are 0. The hint is one: it is not followed. Where
    /// address space runs out the documentation has `CUDA_ERROR_OUT_OF_MEMORY` and `CUDA_ERROR_INVALID_VALUE` to choose
    /// from: a setting does.
    pub(crate) fn reserve(
        &mut self,
        settings: &Settings,
        bytes: u64,
        align: u64,
        hint: u64,
        flags: u64,
    ) -> Answer<u64> {
        let page = page_bytes();
        let whole_pages = bytes > 0 && bytes.is_multiple_of(page) && hint.is_multiple_of(page);
        if !whole_pages || flags != 0 || !(align == 0 || align.is_power_of_two()) {
            return Err(Code::INVALID_VALUE);
        }
        if self.reserved_bytes().saturating_add(bytes) > settings.address_space {
            return Err(settings.address_refusal);
        }
        let align = align.max(settings.granularity).max(page);
        let reserved = Reserved::new(bytes, align, settings.honoured_alignment.max(page));
        let reserved = reserved.ok_or(settings.address_refusal)?;
        let base = reserved.base;
        self.reservations.insert(base, reserved);
        Ok(base)
    }

    /// `cuMemAddressFree`: exactly the address and the size of a reservation, in which nothing is mapped.
    ///
    /// Another size, an address where nothing is reserved, and a mapping that is still there are mistakes of the caller's
    /// books: violations too.
    pub(crate) fn free_addresses(&mut self, base: u64, bytes: u64) -> Answer<()> {
        match self.reservations.get(&base).map(|reserved| reserved.bytes) {
            Some(reserved) if reserved == bytes => {}
            Some(reserved) => {
                self.violation(format!("cuMemAddressFree: {bytes} bytes at {base:#x}, where {reserved} are reserved"));
                return Err(Code::INVALID_VALUE);
            }
            None => {
                self.violation(format!("cuMemAddressFree: no reservation begins at {base:#x}"));
                return Err(Code::INVALID_VALUE);
            }
        }
        if self.mappings.range(base..base + bytes).next().is_some() {
            self.violation(format!("cuMemAddressFree: something is mapped in the {bytes} bytes at {base:#x}"));
            return Err(Code::INVALID_VALUE);
        }
        // Dropping it gives the addresses back.
        self.reservations.remove(&base);
        Ok(())
    }

    /// Whether a range lies within one reservation.
    pub(super) fn is_reserved(&self, base: u64, bytes: u64) -> bool {
        let Some(end) = base.checked_add(bytes) else { return false };
        let Some((begin, reserved)) = self.reservations.range(..=base).next_back() else { return false };
        end <= begin + reserved.bytes
    }
}
