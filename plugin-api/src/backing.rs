//! What every backing does: say what it is, hand out memory, take it back.

use crate::{
    Accounting, AllocateRequest, Allocation, BackingError, Description, ReleaseOutcome, ReleaseTarget, SharedMapping,
    Transfer, VirtualBacking,
};
use std::ffi::c_void;

/// A table of operations that this version of the contract doesn't know, found by its string id.
///
/// The id fixes the table's type. The pointer is valid for as long as the backing lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension(pub *const c_void);

/// One memory mechanism on one device.
///
/// An eager allocator implements [`describe`](Backing::describe), [`allocate`](Backing::allocate) and
/// [`release`](Backing::release). Anything more is a capability, discovered through an `as_…` method; capabilities are
/// independent of each other, and none of them owns the release of what it made.
///
/// # Rules
///
/// * Every answer of `describe`, `accounting` and the `as_…` methods stays the same for the life of the backing.
/// * Any method may be called from any thread, and different calls at the same time; the host never makes two calls
///   about the same region, allocation or prefix at once.
/// * No lock of the backing is held while it calls [`HostServices`](crate::HostServices): a charge may make the host
///   call back into the same backing, on the same thread.
/// * A panic is caught at the boundary; the host then takes the backing out of service.
pub trait Backing: Send + Sync {
    /// Says which device it serves.
    fn describe(&self) -> Description;

    /// Says who pays for its physical memory.
    fn accounting(&self) -> Accounting {
        Accounting::Buffer
    }

    /// Hands out memory that is committed as a whole and reads as zero.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory),
    /// [`AddressSpaceExhausted`](crate::ErrorKind::AddressSpaceExhausted),
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest), and the kinds that fit the device. Nothing is left behind.
    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError>;

    /// The one terminal release, for regions and plain allocations. Whatever is committed or mapped in a region goes with
    /// it.
    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome;

    /// Gives up memory that is owned but behind nothing, as a pool's parked memory is: as much of it as makes `bytes`
    /// bytes, or all of it. Answers the physical bytes that are owned no longer. A backing that parks nothing answers 0.
    ///
    /// The host asks when its budget runs short, or when a backing finds no memory, and believes its own books before the
    /// answer. It may ask in the middle of this backing's own [`charge`](crate::HostServices::charge), on that thread, once
    /// somebody gave memory back that may be parked here.
    ///
    /// # Errors
    ///
    /// The kinds that fit the device. What could not be given up stays owned.
    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let _ = bytes;
        Ok(0)
    }

    /// Memory that grows behind a fixed address.
    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        None
    }

    /// One physical prefix in many regions.
    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        None
    }

    /// Copies in and out of memory that the CPU can't touch.
    fn as_transfer(&self) -> Option<&dyn Transfer> {
        None
    }

    /// A table that this version of the contract doesn't know. An unknown id answers `None`.
    fn extension(&self, id: &str) -> Option<Extension> {
        let _ = id;
        None
    }
}
