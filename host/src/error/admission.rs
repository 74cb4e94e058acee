//! Why a backing may not serve a buffer.

use super::ErrorKind;
use leasehold_plugin_api::{AuthorityId, Domain};
use std::sync::Arc;

/// Why a backing may not serve a buffer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error(
        "backing {backing:?}: not admitted: it keeps the books {theirs} of {domain}, this governor keeps {ours}; use the host that created the backing, or let the backing charge through its host's services"
    )]
    AuthorityMismatch { backing: Arc<str>, domain: Domain, theirs: AuthorityId, ours: AuthorityId },
    #[error(
        "backing {backing:?}: not admitted: this governor keeps no books of {domain}; use the host that created the backing"
    )]
    UnknownDomain { backing: Arc<str>, domain: Domain },
    #[error(
        "backing {backing:?}: not admitted: it offers no {capability}; choose a backing that does (`leasehold list`)"
    )]
    Unsupported { backing: Arc<str>, capability: &'static str },
}

impl AdmissionError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::AuthorityMismatch { .. } => ErrorKind::AuthorityMismatch,
            Self::UnknownDomain { .. } => ErrorKind::UnknownDomain,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
        }
    }
}
