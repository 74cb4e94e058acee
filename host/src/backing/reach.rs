//! Who can copy in and out of a backing's memory.

use super::CheckedBacking;

/// Who can copy in and out of a backing's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The CPU.
    Direct,
    /// The backing.
    Transfer,
    /// Nobody on this side.
    None,
}

impl CheckedBacking {
    pub(crate) fn reach(&self) -> Reach {
        if self.description().host_access.is_direct() {
            Reach::Direct
        } else if self.capabilities().has_transfer() {
            Reach::Transfer
        } else {
            Reach::None
        }
    }
}
