//! Decides whether a backing may serve a buffer or a prefix, before anything is reserved or made.
//!
//! Input: a backing, the books of this host, what the buffer needs. Output: the lease that the buffer will grow, or a
//! refusal. Nothing is changed either way; but a backing whose answers changed is taken out of service.

use crate::backing::{Capability, CheckedBacking};
use crate::error::{AdmissionError, Error, Operation};
use crate::governor::{GovernorCore, Lease};
use leasehold_plugin_api::{Accounting, MemoryRole};
use std::sync::Arc;

/// Who pays for what a buffer commits.
#[derive(Debug)]
pub(crate) enum Payer {
    /// The buffer, with this lease.
    Buffer(Lease),
    /// The backing, through its services.
    Backing,
}

/// Admits a backing, or says why not. The answers that it gave at creation are asked for again.
pub(crate) fn admit(backing: &CheckedBacking, governor: &GovernorCore, role: MemoryRole) -> Result<Payer, Error> {
    backing.check_process(Operation::Discover)?;
    check_books(backing, governor)?;
    backing.discover_again()?;
    Ok(match backing.accounting() {
        Accounting::Buffer => Payer::Buffer(Lease::empty(Arc::clone(backing.books()), role)),
        Accounting::Backing { .. } => Payer::Backing,
    })
}

/// The unit of commit of a backing that offers one.
pub(crate) fn granularity(backing: &CheckedBacking) -> Result<u64, AdmissionError> {
    backing.capabilities().granularity().ok_or_else(|| AdmissionError::Unsupported {
        backing: Arc::clone(backing.name()),
        capability: Capability::VirtualBacking.name(),
    })
}

/// Refuses a backing that can't share.
pub(crate) fn require_shared_mapping(backing: &CheckedBacking) -> Result<(), AdmissionError> {
    if backing.capabilities().has_shared_mapping() {
        return Ok(());
    }
    let capability = Capability::SharedMapping.name();
    Err(AdmissionError::Unsupported { backing: Arc::clone(backing.name()), capability })
}

/// Refuses a backing that keeps other books than these.
pub(crate) fn check_books(backing: &CheckedBacking, governor: &GovernorCore) -> Result<(), AdmissionError> {
    let domain = backing.books().domain();
    let name = || Arc::clone(backing.name());
    let Some(books) = governor.books(domain) else {
        return Err(AdmissionError::UnknownDomain { backing: name(), domain });
    };
    let ours = books.authority();
    let theirs = match backing.accounting() {
        Accounting::Backing { authority } => authority,
        Accounting::Buffer => backing.books().authority(),
    };
    if theirs != ours {
        return Err(AdmissionError::AuthorityMismatch { backing: name(), domain, theirs, ours });
    }
    Ok(())
}
