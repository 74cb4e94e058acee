//! Why a buffer was not made, grown, shrunk or given back.

use super::{BackingFault, ErrorKind, TierExhausted, Unreleased};
use leasehold_plugin_api::BackingError;
use std::sync::Arc;

/// Why a buffer was not made, grown, shrunk or given back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BufferError {
    #[error("backing {backing:?}: {what} not made: {why}")]
    InvalidSpec { backing: Arc<str>, what: &'static str, why: String },
    #[error(
        "backing {backing:?}: asks {requested} bytes a plane, the capacity is {capacity}; make the buffer with a larger capacity, which costs address space only"
    )]
    CapacityExceeded { backing: Arc<str>, requested: u64, capacity: u64 },
    #[error("backing {backing:?}: not {what}: {refusal}")]
    Exhausted { backing: Arc<str>, what: &'static str, refusal: Box<TierExhausted> },
    #[error("not grown: {fault}; {kept} bytes that it may have committed stay charged until the buffer is dropped")]
    NotGrown { kept: u64, fault: Box<BackingFault> },
    #[error(
        "not shrunk to {wanted} bytes a plane: {fault}; {left} of {before} bytes stay charged: call shrink_to again"
    )]
    NotShrunk { wanted: u64, left: u64, before: u64, fault: Box<BackingFault> },
    #[error(transparent)]
    Forked(BackingFault),
    #[error("{fault}; {remaining_bytes} bytes stay charged: call reap() to try again")]
    NotReleased { remaining_bytes: u64, fault: Box<BackingFault> },
    #[error(
        "backing {backing:?}: no slice: its type does not claim that the CPU can touch its memory; pass the address to the device, choose a host-accessible backing, or claim it (contract::HostAccess) where the backing is yours"
    )]
    NotHostAccessible { backing: Arc<str> },
    #[error(
        "backing {backing:?}: not copied: it implements no Transfer, and its type does not claim that the CPU can touch its memory; find a backing that copies (Requirements::copies), or claim it (contract::HostAccess) where the backing is yours"
    )]
    NotCopied { backing: Arc<str> },
    #[error(
        "backing {backing:?}: not copied: {bytes} bytes at offset {offset} of plane {plane} pass its {len} bytes; grow it first, or ask for less"
    )]
    PastTheEnd { backing: Arc<str>, plane: usize, offset: u64, bytes: u64, len: u64 },
    #[error(
        "backing {backing:?}: not copied: {bytes} bytes at offset {offset} pass the allocation's {len} bytes; ask for less"
    )]
    PastTheAllocation { backing: Arc<str>, offset: u64, bytes: u64, len: u64 },
    #[error("backing {backing:?}: no slice: plane {plane} was asked for, there are {planes}; ask for one below that")]
    NoSuchPlane { backing: Arc<str>, plane: usize, planes: usize },
}

impl From<Unreleased> for BufferError {
    fn from(unreleased: Unreleased) -> Self {
        match unreleased {
            Unreleased { fault: fault @ BackingFault::Forked { .. }, .. } => Self::Forked(fault),
            Unreleased { remaining_bytes, fault } => Self::NotReleased { remaining_bytes, fault: Box::new(fault) },
        }
    }
}

impl BufferError {
    pub(crate) fn exhausted(backing: &Arc<str>, what: &'static str, refusal: Box<TierExhausted>) -> Self {
        Self::Exhausted { backing: Arc::clone(backing), what, refusal }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidSpec { .. }
            | Self::NoSuchPlane { .. }
            | Self::PastTheEnd { .. }
            | Self::PastTheAllocation { .. } => ErrorKind::InvalidRequest,
            Self::CapacityExceeded { .. } => ErrorKind::CapacityExceeded,
            Self::Exhausted { .. } => ErrorKind::TierExhausted,
            Self::NotGrown { fault, .. } | Self::NotShrunk { fault, .. } => fault.kind(),
            Self::Forked(fault) => fault.kind(),
            Self::NotReleased { .. } => ErrorKind::NotReleased,
            Self::NotHostAccessible { .. } | Self::NotCopied { .. } => ErrorKind::Unsupported,
        }
    }

    pub(crate) fn tier_exhausted(&self) -> Option<&TierExhausted> {
        match self {
            Self::Exhausted { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    pub(crate) fn backing_error(&self) -> Option<&BackingError> {
        match self {
            Self::NotGrown { fault, .. } | Self::NotShrunk { fault, .. } | Self::NotReleased { fault, .. } => {
                fault.backing_error()
            }
            _ => None,
        }
    }
}
