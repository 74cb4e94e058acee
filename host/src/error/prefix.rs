//! Why a prefix was not written, mapped or taken away.

use super::ErrorKind;
use std::sync::Arc;

/// Why a prefix was not written, mapped or taken away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrefixError {
    #[error(
        "backing {backing:?}: prefix refused: backing {theirs:?} of {whose} made it; use it with that one, or fill a private part instead"
    )]
    Foreign { backing: Arc<str>, theirs: Arc<str>, whose: &'static str },
    #[error(
        "backing {backing:?}: prefix not mapped: it has {prefix} planes, the buffer has {buffer}; make both with the same number"
    )]
    Planes { backing: Arc<str>, prefix: usize, buffer: usize },
    #[error(
        "backing {backing:?}: prefix not mapped: {committed} private bytes a plane are in the way; map prefixes before the buffer grows past them, or shrink_to({shared}) first"
    )]
    PrivateInTheWay { backing: Arc<str>, committed: u64, shared: u64 },
    #[error(
        "backing {backing:?}: no slice to write: the first {shared} bytes of each plane are a sealed prefix's; write the rest through private_mut, or by `write` and `fill` behind them"
    )]
    ReadOnly { backing: Arc<str>, shared: u64 },
    #[error(
        "backing {backing:?}: no part of the prefix: {bytes} bytes at offset {offset} of planes of {plane_bytes}; ask for whole granules of {granule} bytes within a plane"
    )]
    Part { backing: Arc<str>, offset: u64, bytes: u64, plane_bytes: u64, granule: u64 },
    #[error(
        "backing {backing:?}: prefix not cached: it has {planes} planes of {plane_bytes} bytes, {blocks} blocks take {wanted_planes} of {wanted}; make it for those blocks"
    )]
    NotTheBlocks {
        backing: Arc<str>,
        planes: usize,
        plane_bytes: u64,
        blocks: usize,
        wanted_planes: usize,
        wanted: u64,
    },
    #[error(
        "backing {backing:?}: no slice to write: sealing the prefix broke off, so that it may be sealed; drop it and make another"
    )]
    SealInDoubt { backing: Arc<str> },
}

impl PrefixError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Foreign { .. } => ErrorKind::ForeignPrefix,
            Self::Planes { .. } | Self::Part { .. } | Self::NotTheBlocks { .. } => ErrorKind::InvalidRequest,
            Self::PrivateInTheWay { .. } | Self::ReadOnly { .. } | Self::SealInDoubt { .. } => ErrorKind::WrongState,
        }
    }
}
