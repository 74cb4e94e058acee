//! What can go wrong in a call to a backing.

use super::{ErrorKind, TierExhausted};
use leasehold_plugin_api::{self as api, BackingError};
use std::fmt;
use std::sync::Arc;

/// The operation that was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Discover,
    Reserve,
    Commit,
    Decommit,
    Cost,
    CommittedBytes,
    Allocate,
    Release,
    CreatePrefix,
    Seal,
    IncrementalOwnedBytes,
    MapPrefix,
    Unmap,
    ReleasePrefix,
    Read,
    Write,
    Fill,
    Lend,
    Trim,
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Operation::Discover => "discovery",
            Operation::Reserve => "reserve",
            Operation::Commit => "commit",
            Operation::Decommit => "decommit",
            Operation::Cost => "cost",
            Operation::CommittedBytes => "committed_bytes",
            Operation::Allocate => "allocate",
            Operation::Release => "release",
            Operation::CreatePrefix => "create_prefix",
            Operation::Seal => "seal",
            Operation::IncrementalOwnedBytes => "incremental_owned_bytes",
            Operation::MapPrefix => "map_prefix",
            Operation::Unmap => "unmap",
            Operation::ReleasePrefix => "release_prefix",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Fill => "fill",
            Operation::Lend => "a slice",
            Operation::Trim => "trim",
        })
    }
}

/// Why nothing of a host works in a forked child, and what to do.
pub(super) const FORKED: &str = "this process was forked from the one that made the host, whose memory and books stay \
     the parent's; make a host of its own in the child, or start the child before the host or with exec";

/// What went wrong in a call to a backing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackingFault {
    /// The backing reported a failure.
    #[error("backing {backing:?}: {operation} failed: {error}{}", remedy(error))]
    Failed {
        backing: Arc<str>,
        operation: Operation,
        error: BackingError,
        /// The figures of the charge that was refused to it, where that is why it failed.
        refusal: Option<TierExhausted>,
    },
    /// The backing is out of service: nothing was called.
    #[error(
        "backing {backing:?}: {operation} refused: the backing is out of service: {reason}; use another backing, and report this to the plugin's author"
    )]
    OutOfService { backing: Arc<str>, operation: Operation, reason: String },
    /// This process was forked from the one that made the backing: nothing was called.
    #[error("backing {backing:?}: {operation} refused: {FORKED}")]
    Forked { backing: Arc<str>, operation: Operation },
    /// The call was made, and its answer can't be: the backing is out of service from now on.
    #[error(
        "backing {backing:?}: {operation} not believed: {breach}; the backing is out of service from now on: use another, and report this to the plugin's author"
    )]
    Breach { backing: Arc<str>, operation: Operation, breach: String },
}

impl BackingFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Failed { error, .. } => kind_of(error.kind()),
            Self::OutOfService { .. } | Self::Forked { .. } | Self::Breach { .. } => ErrorKind::OutOfService,
        }
    }

    /// Whether nobody can tell what the call left behind. Any other failure left everything as it was.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Breach { .. } => true,
            Self::Failed { error, .. } => error.kind().leaves_doubt(),
            Self::OutOfService { .. } | Self::Forked { .. } => false,
        }
    }

    /// The figures of a budget that is used up.
    pub(crate) fn tier_exhausted(&self) -> Option<&TierExhausted> {
        match self {
            Self::Failed { refusal, .. } => refusal.as_ref(),
            Self::OutOfService { .. } | Self::Forked { .. } | Self::Breach { .. } => None,
        }
    }

    pub(crate) fn backing_error(&self) -> Option<&BackingError> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::OutOfService { .. } | Self::Forked { .. } | Self::Breach { .. } => None,
        }
    }
}

/// What to do about a failure after which the backing is out of service.
fn remedy(error: &BackingError) -> &'static str {
    match error.kind() {
        api::ErrorKind::Panicked => {
            "; the backing is out of service from now on: use another, and report this to its author"
        }
        api::ErrorKind::DeviceLost => {
            "; the backing is out of service from now on: use another, or start the host anew"
        }
        _ => "",
    }
}

fn kind_of(kind: api::ErrorKind) -> ErrorKind {
    match kind {
        api::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
        api::ErrorKind::AddressSpaceExhausted => ErrorKind::AddressSpaceExhausted,
        api::ErrorKind::BudgetRefused => ErrorKind::TierExhausted,
        api::ErrorKind::InvalidRequest => ErrorKind::InvalidRequest,
        api::ErrorKind::Unsupported => ErrorKind::Unsupported,
        api::ErrorKind::Foreign => ErrorKind::ForeignPrefix,
        api::ErrorKind::WrongState => ErrorKind::WrongState,
        kind if kind.ends_service() => ErrorKind::OutOfService,
        _ => ErrorKind::Backing,
    }
}

/// A release that did not, or not wholly, happen.
#[derive(Debug)]
pub(crate) struct Unreleased {
    /// Physical bytes that are still owned, and stay charged.
    pub(crate) remaining_bytes: u64,
    /// Why.
    pub(crate) fault: BackingFault,
}
