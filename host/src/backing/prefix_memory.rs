//! The memory of one prefix. It knows no backing, so that a region in quarantine can keep what is still mapped in it
//! without keeping the backing alive.

use crate::governor::Lease;
use leasehold_plugin_api::{Address, PrefixId};

/// The memory of one live prefix.
#[derive(Debug)]
pub(crate) struct PrefixMemory {
    pub(super) id: PrefixId,
    /// Where the creator's window begins; it is as large as the prefix.
    pub(super) window: Address,
    pub(super) bytes: u64,
    /// Physical bytes that its creation newly owned.
    pub(super) newly_owned_bytes: u64,
    /// The charge for it, unless the backing pays.
    pub(super) lease: Option<Lease>,
}
