//! One owned range of device addresses, and what is mapped in it: made by cuMemAddressReserve, given back by
//! [`Reservation::close`] or on drop.
//!
//! In: offsets and sizes in bytes. Out: the base address, and a [`Fault`] where the driver refuses. Offsets that leave
//! the reservation answer `CUDA_ERROR_INVALID_VALUE`; nothing panics. It doesn't know what is mapped: its owner does.
//!
//! ```text
//! reserved   ├──────────────────────────────┤   what the driver gave, and what is given back
//! its own         ├───────────────┤             from the first multiple of the alignment on
//! ```
#![expect(unsafe_code, reason = "owns the addresses that it maps, unmaps and frees")]

use crate::device::Device;
use crate::error::Fault;
use crate::physical::PhysicalHandle;
use crate::properties::{self, Access, Grant};
use crate::span::Span;
use crate::troubles;
use leasehold_plugin_api::Address;

/// One owned range of device addresses, with nothing mapped at first.
#[derive(Debug)]
pub struct Reservation {
    device: Device,
    /// Invariant 1: until `ended`, base and size were returned by `cuMemAddressReserve` for this value alone.
    reserved: (Address, u64),
    /// Invariant 2: `base .. base + bytes` lies within what is reserved.
    base: Address,
    /// See invariant 2.
    bytes: u64,
    ended: bool,
}

/// The addresses that a device shares with the host: a reservation of that many, or at a multiple of that, there can't be.
const ADDRESSES: u64 = 1 << 47;

impl Reservation {
    pub(crate) fn reserve(device: &Device, bytes: u64, align: u64) -> Result<Self, Fault> {
        if bytes >= ADDRESSES || align >= ADDRESSES {
            // What the driver answers to that isn't documented.
            return Err(Fault::out_of_memory("cuMemAddressReserve"));
        }
        let first = Self::ask(device, bytes, align)?;
        if first.base.is_aligned_to(align) {
            return Ok(first);
        }
        first.close().map_err(|(_, fault)| fault)?;
        let wide = bytes.saturating_add(align);
        if wide >= ADDRESSES {
            return Err(Fault::out_of_memory("cuMemAddressReserve"));
        }
        Self::ask(device, wide, align)?.cut(bytes, align)
    }

    /// One reservation, aligned or not: the alignment is a request, CUDA Driver API, `cuMemAddressReserve`.
    fn ask(device: &Device, bytes: u64, align: u64) -> Result<Self, Fault> {
        let base = device.run(|calls| calls.reserve(bytes, align))?;
        Ok(Self { device: device.clone(), reserved: (base, bytes), base, bytes, ended: false })
    }

    /// Has that many bytes of it for its own, from the first multiple of `align` on.
    fn cut(mut self, bytes: u64, align: u64) -> Result<Self, Fault> {
        let skipped = self.base.get().wrapping_neg() & align.wrapping_sub(1);
        self.base = self.part("cuMemAddressReserve", skipped, bytes)?;
        self.bytes = bytes;
        Ok(self)
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> Address {
        self.base
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that it was made on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where a part of it begins.
    fn part(&self, call: &'static str, offset: u64, bytes: u64) -> Result<Address, Fault> {
        let outside = Fault::invalid_value(call);
        let end = offset.checked_add(bytes).ok_or(outside)?;
        if end > self.bytes {
            return Err(outside);
        }
        self.base.checked_add(offset).ok_or(outside)
    }

    /// A part of it, to read, write, fill and copy what is mapped there.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a part that doesn't lie within it.
    pub fn span(&self, offset: u64, bytes: u64) -> Result<Span<'_>, Fault> {
        let base = self.part("cuMemcpy", offset, bytes)?;
        // SAFETY: within the reservation (1, 2), whose addresses are the device's, and which is not freed while it is borrowed.
        Ok(unsafe { Span::new(&self.device, base, bytes) })
    }

    /// Maps all of a physical memory, where nothing is mapped. No device can reach it there until access is set.
    ///
    /// # Errors
    ///
    /// What the driver answers; then nothing is mapped.
    pub fn map(&self, offset: u64, memory: &PhysicalHandle) -> Result<(), Fault> {
        let base = self.part("cuMemMap", offset, memory.bytes())?;
        // SAFETY: within the reservation (1, 2); the handle is live, since its value is.
        self.device.run(|calls| unsafe { calls.map(base, memory.bytes(), memory.raw()) })
    }

    /// Unmaps a range that one mapping or several touching ones make up exactly. Memory that nothing refers to any more
    /// is freed.
    ///
    /// The driver doesn't order this against work that was not submitted yet: whoever uses the range has stopped
    /// before.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn unmap(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        let base = self.part("cuMemUnmap", offset, bytes)?;
        // SAFETY: within the reservation (1, 2).
        self.device.give_back(|calls| unsafe { calls.unmap(base, bytes) })
    }

    /// Says what devices may do with a range that is mapped throughout and holds whole mappings: a contiguous run, in
    /// one call. A device that isn't named keeps what it had: nothing, on a fresh mapping, and that goes for the owner
    /// too.
    ///
    /// # Errors
    ///
    /// What the driver answers; [`Unsupported`](leasehold_plugin_api::ErrorKind::Unsupported) where a device doesn't
    /// know the access.
    pub fn set_access(&self, offset: u64, bytes: u64, grants: &[Grant]) -> Result<(), Fault> {
        let base = self.part("cuMemSetAccess", offset, bytes)?;
        let descriptions: Vec<_> = grants.iter().map(|grant| grant.raw()).collect();
        // SAFETY: within the reservation (1, 2).
        self.device.run(|calls| unsafe { calls.set_access(base, bytes, &descriptions) })
    }

    /// What a device may do at an offset, where something is mapped. Of what is not no documentation says what this reports:
    /// ask [`is_mapped`](Self::is_mapped).
    ///
    /// # Errors
    ///
    /// The driver's error of `cuMemGetAccess`.
    pub fn access(&self, offset: u64, ordinal: u32) -> Result<Option<Access>, Fault> {
        let address = self.part("cuMemGetAccess", offset, 1)?;
        let location = properties::device(ordinal);
        // As in `CUmemAccess_flags`.
        match self.device.run(|calls| calls.access(&location, address))? {
            1 => Ok(Some(Access::ReadOnly)),
            3 => Ok(Some(Access::ReadWrite)),
            _ => Ok(None),
        }
    }

    /// Whether anything is mapped at an offset.
    ///
    /// # Errors
    ///
    /// The driver's error of `cuPointerGetAttribute`; whether anything is mapped is unknown then.
    pub fn is_mapped(&self, offset: u64) -> Result<bool, Fault> {
        const CALL: &str = "cuPointerGetAttribute";
        let address = self.part(CALL, offset, 1)?;
        // An address of ours is refused only where it is none of an allocation. That goes for this call alone: where the
        // context could not be made current it was not made.
        match self.device.run(|calls| calls.is_mapped(address)) {
            Err(fault) if fault.call == CALL && fault.is_invalid_value() => Ok(false),
            outcome => outcome,
        }
    }

    /// Gives the addresses back. All of it has to be unmapped before.
    ///
    /// # Errors
    ///
    /// The reservation itself, with what the driver answers. After a fault of a kind that leaves doubt nobody can tell
    /// whether it was given back.
    pub fn close(mut self) -> Result<(), (Self, Fault)> {
        match self.free() {
            Ok(()) => {
                self.ended = true;
                Ok(())
            }
            Err(fault) => Err((self, fault)),
        }
    }

    fn free(&self) -> Result<(), Fault> {
        let (base, bytes) = self.reserved;
        // SAFETY: the reservation is this value's (1), by the checks in `close` and drop, and no span borrows it.
        self.device.give_back(|calls| unsafe { calls.free_addresses(base, bytes) })
    }
}

impl Drop for Reservation {
    /// For the ways out of a failed creation. Whoever has someone to tell calls [`Reservation::close`].
    fn drop(&mut self) {
        if !self.ended && self.free().is_err() {
            troubles::count_drop_failed();
        }
    }
}
