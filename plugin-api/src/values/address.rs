//! An address in some device's address space.

use std::fmt;

/// An address in the address space of one device.
///
/// For a host-accessible backing it is an address of this process; for any other it must never be made a pointer.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u64);

impl Address {
    /// An address from its number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The address of host memory. The pointer's provenance is exposed, so that [`Address::to_pointer`] may use it: where
    /// the host is to write, the pointer must be one that may be written through.
    #[must_use]
    pub fn from_pointer<T>(pointer: *mut T) -> Self {
        let address = pointer.expose_provenance();
        Self(u64::try_from(address).unwrap_or(u64::MAX))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The pointer to host memory whose provenance was exposed; null when the address doesn't fit this machine.
    ///
    /// Making the pointer is safe; it may be followed only where the backing is host-accessible and the bytes are
    /// committed.
    #[must_use]
    pub fn to_pointer<T>(self) -> *mut T {
        usize::try_from(self.0).map_or(std::ptr::null_mut(), std::ptr::with_exposed_provenance_mut)
    }

    /// Whether it is the null address, which no region may have.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address `bytes` further on, or `None` past the end of the address space.
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }

    /// Whether it is a multiple of `align`. An alignment of zero or one suits every address.
    #[must_use]
    pub fn is_aligned_to(self, align: u64) -> bool {
        align <= 1 || self.0.is_multiple_of(align)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}
