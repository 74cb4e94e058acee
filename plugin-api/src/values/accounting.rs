//! Who pays for the physical bytes of a backing.

use super::AuthorityId;

/// Who charges the governor for the physical memory behind a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accounting {
    /// The buffer holds a lease on what it has committed; the backing charges nothing.
    Buffer,
    /// The backing charges through [`HostServices`](crate::HostServices) when it takes physical memory, mapped or
    /// parked; the buffer takes no second lease.
    Backing {
        /// The books that the backing charges: the answer of
        /// [`HostServices::authority`](crate::HostServices::authority). A governor admits no buffer whose backing
        /// keeps other books than its own.
        authority: AuthorityId,
    },
}
