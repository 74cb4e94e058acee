//! The one error of the library: opaque, with a kind to act on and words for people.
//!
//! Each stage has a small enum of its own beside its code; this file puts them behind one type. Texts say what failed,
//! why (seen, wanted) and what to do.

use crate::admission::AdmissionError;
use crate::backing::BackingFault;
use crate::buffer::BufferError;
use crate::host::FindError;
use crate::registry::{RegistryError, SelectionError};
use leasehold_plugin_api::{self as api, Domain, MemoryRole, Tier};
use std::fmt;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The registry file or a selection can't be read or is wrong. The text names line and column.
    Registry,
    /// A backing that the registry file calls required is not ready.
    RequiredBacking,
    /// No backing that is ready fits the requirements, or none has that name.
    NoBackingFits,
    /// No books are kept of that domain.
    UnknownDomain,
    /// The backing keeps other books than this governor's, or belongs to another host.
    AuthorityMismatch,
    /// The backing hasn't got the capability that is needed.
    Unsupported,
    /// A size, alignment or range that could never be granted.
    InvalidRequest,
    /// The growth would pass the reservation.
    CapacityExceeded,
    /// The budget of the domain is used up. Making room and trying again may help.
    TierExhausted,
    /// The system or device has no memory left. Making room and trying again may help.
    OutOfMemory,
    /// The system or device has no address space, or no more mappings, left.
    AddressSpaceExhausted,
    /// The backing is out of service: it broke the contract, panicked, or lost its device.
    OutOfService,
    /// Some memory could not be given back yet. It stays charged; see [`Host::reap`](crate::Host::reap).
    NotReleased,
    /// Any other failure that the backing reported.
    Backing,
    /// The operating system failed the host itself.
    System,
}

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
    Find(FindError),
    #[error(
        "domain {0} has no books: no backing serves it and [budget] does not name it; name it in [budget] of registry.toml"
    )]
    UnknownDomain(Domain),
    #[error(transparent)]
    Exhausted(TierExhausted),
    #[error(transparent)]
    Admission(AdmissionError),
    #[error(transparent)]
    Backing(BackingFault),
    #[error(transparent)]
    Buffer(BufferError),
    #[error("no authority minted: the operating system gave no randomness ({0}); check that getrandom(2) is allowed")]
    NoRandomness(String),
    #[error("no budget set: /proc/meminfo does not say how much memory there is ({0}); mount /proc")]
    NoMemorySize(String),
}

/// A budget that is used up, with the figures on which the request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierExhausted {
    /// Whose budget.
    pub domain: Domain,
    /// What the memory was for.
    pub role: MemoryRole,
    /// Bytes that were asked for.
    pub requested_bytes: u64,
    /// Bytes in use at that moment.
    pub used_bytes: u64,
    /// Bytes that may be used.
    pub limit_bytes: u64,
}

impl TierExhausted {
    /// The kind of memory.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.domain.tier()
    }

    /// Bytes that were left at that moment.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

impl fmt::Display for TierExhausted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, role, requested_bytes, limit_bytes, .. } = self;
        let available = self.available_bytes();
        write!(
            formatter,
            "asks {requested_bytes} bytes on {domain} for {role}, {available} of {limit_bytes} left; \
             lower the request or raise budget.\"{domain}\" in registry.toml"
        )
    }
}

impl std::error::Error for TierExhausted {}

impl Error {
    pub(crate) fn unknown_domain(domain: Domain) -> Self {
        Reason::UnknownDomain(domain).into()
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
            Reason::Find(error) => error.kind(),
            Reason::UnknownDomain(_) => ErrorKind::UnknownDomain,
            Reason::Exhausted(_) => ErrorKind::TierExhausted,
            Reason::Admission(error) => error.kind(),
            Reason::Backing(fault) => fault.kind(),
            Reason::Buffer(error) => error.kind(),
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
            Reason::Buffer(error) => error.tier_exhausted(),
            _ => None,
        }
    }

    /// The failure as the backing reported it.
    #[must_use]
    pub fn backing_error(&self) -> Option<&api::BackingError> {
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
    FindError => Find,
    TierExhausted => Exhausted,
    AdmissionError => Admission,
    BackingFault => Backing,
    BufferError => Buffer,
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self(Box::new(reason))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
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
