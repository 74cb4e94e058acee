//! A backing called directly, for whoever examines it: no answer is checked, and nothing is kept of what it makes.

use super::made::{Discovery, MadeBacking};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, Backing, BackingError, Description, ReleaseOutcome, ReleaseTarget,
    SharedMapping, Transfer, VirtualBacking,
};

/// A backing through either door, as it was discovered.
pub(crate) struct DirectBacking<'b> {
    made: &'b MadeBacking,
    discovery: &'b Discovery,
}

impl<'b> DirectBacking<'b> {
    pub(crate) fn new(made: &'b MadeBacking, discovery: &'b Discovery) -> Self {
        Self { made, discovery }
    }
}

impl Backing for DirectBacking<'_> {
    fn describe(&self) -> Description {
        self.discovery.description.clone()
    }

    fn accounting(&self) -> Accounting {
        self.discovery.accounting
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.made.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.made.release(target)
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        self.made.trim(bytes)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.made.known_virtual_backing()
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        self.made.known_shared_mapping()
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        self.made.known_transfer()
    }
}
