//! The one error of the library: opaque, with a kind to act on and words for people.
//!
//! Each stage has a small enum of its own here, or beside its code where it holds places in a text; this file puts them
//! behind one type. Texts say what failed, why (seen, wanted) and what to do.

mod admission;
mod backing;
mod brought;
mod buffer;
mod exhausted;
mod find;
mod kind;
mod prefix;

pub(crate) use admission::AdmissionError;
use backing::FORKED;
pub(crate) use backing::{BackingFault, Operation, Unreleased};
pub(crate) use brought::BroughtError;
pub(crate) use buffer::BufferError;
pub(crate) use exhausted::RefusedFigures;
pub use exhausted::{Quarantined, TierExhausted};
pub(crate) use find::FindError;
pub use kind::ErrorKind;
pub(crate) use prefix::PrefixError;

use crate::registry::{RegistryError, SelectionError};
use crate::shareability::ShareabilityError;
use leasehold_plugin_api::{BackingError, Domain};
use std::fmt;

/// Why something that was asked of the library did not happen. What was there before is as it was, unless the text
/// says otherwise.
pub struct Error(Box<Reason>);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Registry(RegistryError),
    #[error(transparent)]
    Selection(SelectionError),
    #[error(transparent)]
    Brought(BroughtError),
    #[error(transparent)]
    Find(FindError),
    #[error(
        "domain {0} has no books: no backing serves it and [budget] does not name it; name it in [budget] of registry.toml"
    )]
    UnknownDomain(Domain),
    #[error("the books of {0} refused: {FORKED}")]
    ForkedBooks(Domain),
    #[error("lease refused: {0}")]
    Exhausted(TierExhausted),
    #[error(transparent)]
    Admission(AdmissionError),
    #[error(transparent)]
    Backing(BackingFault),
    #[error(transparent)]
    Buffer(BufferError),
    #[error(transparent)]
    Prefix(PrefixError),
    #[error(transparent)]
    Shareability(ShareabilityError),
    #[error("no authority minted: the operating system gave no randomness ({0}); check that getrandom(2) is allowed")]
    NoRandomness(String),
    #[error(
        "no budget set for host: nobody says how much memory there is ({0}); mount /proc, or give budget.host in bytes"
    )]
    NoMemorySize(String),
}

impl Error {
    pub(crate) fn unknown_domain(domain: Domain) -> Self {
        Reason::UnknownDomain(domain).into()
    }

    pub(crate) fn forked_books(domain: Domain) -> Self {
        Reason::ForkedBooks(domain).into()
    }

    pub(crate) fn no_randomness(error: &getrandom::Error) -> Self {
        Reason::NoRandomness(error.to_string()).into()
    }

    pub(crate) fn no_memory_size(error: &std::io::Error) -> Self {
        Reason::NoMemorySize(error.to_string()).into()
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Reason::Registry(_) | Reason::Selection(_) => ErrorKind::Registry,
            Reason::Brought(_) => ErrorKind::InvalidRequest,
            Reason::Find(error) => error.kind(),
            Reason::UnknownDomain(_) => ErrorKind::UnknownDomain,
            Reason::ForkedBooks(_) => ErrorKind::OutOfService,
            Reason::Exhausted(_) => ErrorKind::TierExhausted,
            Reason::Admission(error) => error.kind(),
            Reason::Backing(fault) => fault.kind(),
            Reason::Buffer(error) => error.kind(),
            Reason::Prefix(error) => error.kind(),
            Reason::Shareability(_) => ErrorKind::InvalidRequest,
            Reason::NoRandomness(_) | Reason::NoMemorySize(_) => ErrorKind::System,
        }
    }

    /// Whether making room and trying again may help: a budget or the memory itself is used up.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self.kind(), ErrorKind::TierExhausted | ErrorKind::OutOfMemory)
    }

    /// The figures of a budget that is used up.
    #[must_use]
    pub fn tier_exhausted(&self) -> Option<&TierExhausted> {
        match &*self.0 {
            Reason::Exhausted(refusal) => Some(refusal),
            Reason::Backing(fault) => fault.tier_exhausted(),
            Reason::Buffer(error) => error.tier_exhausted(),
            _ => None,
        }
    }

    /// The failure as the backing reported it.
    #[must_use]
    pub fn backing_error(&self) -> Option<&BackingError> {
        match &*self.0 {
            Reason::Backing(fault) => fault.backing_error(),
            Reason::Buffer(error) => error.backing_error(),
            _ => None,
        }
    }
}

macro_rules! from_stage {
    ($($stage:ty => $reason:ident),+ $(,)?) => {$(
        impl From<$stage> for Error {
            fn from(stage: $stage) -> Self {
                Reason::$reason(stage).into()
            }
        }
    )+};
}

from_stage! {
    RegistryError => Registry,
    SelectionError => Selection,
    BroughtError => Brought,
    FindError => Find,
    TierExhausted => Exhausted,
    AdmissionError => Admission,
    BackingFault => Backing,
    BufferError => Buffer,
    PrefixError => Prefix,
    ShareabilityError => Shareability,
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self(Box::new(reason))
    }
}

/// The kind and the text: what a program shows whose `main` answers the error.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.kind(), self.0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
