//! Every call to a backing, with its answer checked.
//!
//! Input: a backing that was made, loaded or linked in. Output: answers that keep the contract, or a [`BackingFault`]. It owns
//! the backing (dropping it destroys it), what the backing could not give back, and the backing's services. A backing
//! that breaks the contract, panics or loses its device is taken out of service: it gets no new work, but what it holds
//! is still given back to it. Any thread may call; no lock is held across a call to the backing.
//!
//! In a child that was forked off the process that made the backing, no call reaches it and no lock is taken: the windows
//! are the parent's, and so is the state behind them. Every call returns [`BackingFault::Forked`]; what is dropped is
//! forgotten.
//!
//! * `checked/growing`: the calls of virtual backing.
//! * `checked/allocating`: the call of plain allocation.
//! * `checked/sharing`: the calls of shared mapping.
//! * `checked/transferring`: copies in and out of memory that the CPU can't touch.
//! * `checked/trim`: has a backing give up what it has parked.
//! * `checked/retrying`: has others give memory back where a call found none, and makes it once more.
//! * `checked/giving_back`: releases, and the quarantine of what could not be given back.
//!
//! What it does *not* do: charge budgets (see `buffer`), or load anything (see `loader`).

mod allocating;
mod giving_back;
mod growing;
mod retrying;
mod sharing;
mod transferring;
mod trim;

use super::made::{Discovery, MadeBacking, contain};
use super::quarantine::Unreturned;
use super::{AddressMap, Capabilities, Capability, ServiceContext, quietly};
use crate::error::{BackingFault, Operation};
use crate::governor::{DomainBooks, Place};
use crate::machine::ProcessMark;
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, Backing, BackingError, CpuAccess, Description, ErrorKind,
    HolderId, MemoryRole, ReleaseOutcome, ReleaseTarget,
};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Numbers of regions, allocations and prefixes, never used twice in this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// What memory is wanted for, and how it must lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) role: MemoryRole,
    pub(crate) holder: HolderId,
}

/// A backing whose every answer is checked.
pub(crate) struct CheckedBacking {
    name: Arc<str>,
    inner: MadeBacking,
    description: Description,
    accounting: Accounting,
    capabilities: Capabilities,
    books: Arc<DomainBooks>,
    addresses: Arc<AddressMap>,
    quarantine: Mutex<Vec<Unreturned>>,
    /// Releases that failed, with none after them that succeeded.
    failed_releases: AtomicU32,
    services: Arc<ServiceContext>,
    /// The process that it lives in.
    process: ProcessMark,
    /// Among those who are asked for room, while it lives.
    _place: Option<Place>,
}

impl CheckedBacking {
    pub(crate) fn new(
        name: Arc<str>,
        inner: MadeBacking,
        discovery: Discovery,
        books: Arc<DomainBooks>,
        addresses: Arc<AddressMap>,
        services: Arc<ServiceContext>,
    ) -> Arc<Self> {
        let Discovery { description, accounting, capabilities } = discovery;
        let (quarantine, failed_releases) = (Mutex::default(), AtomicU32::new(0));
        let process = ProcessMark::current();
        Arc::new_cyclic(|this: &Weak<Self>| {
            let _place = Self::take_place(&books, accounting, &services, this.clone());
            Self {
                name,
                inner,
                description,
                accounting,
                capabilities,
                books,
                addresses,
                quarantine,
                failed_releases,
                services,
                process,
                _place,
            }
        })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    pub(crate) fn accounting(&self) -> Accounting {
        self.accounting
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    pub(crate) fn books(&self) -> &Arc<DomainBooks> {
        &self.books
    }

    /// What the backing itself has charged to its domain; 0 in a forked child.
    pub(crate) fn charged_bytes(&self) -> u64 {
        if self.is_of_this_process() { self.services.charged_bytes(self.books.domain()) } else { 0 }
    }

    /// Whether both belong to one host.
    pub(crate) fn shares_host_with(&self, other: &Self) -> bool {
        self.services.shares_host_with(&other.services)
    }

    /// The unit that address space and prefixes come in; 1 where the backing maps nothing.
    pub(crate) fn granule(&self) -> u64 {
        self.capabilities.granularity().unwrap_or(1)
    }

    /// Why the backing is out of service.
    pub(crate) fn retired(&self) -> Option<&str> {
        self.services.retired()
    }

    /// Refuses an operation in a forked child. It comes before anything that a call changes or waits for: the child has
    /// none of the threads that may have held a lock during the fork.
    pub(crate) fn check_process(&self, operation: Operation) -> Result<(), BackingFault> {
        if self.is_of_this_process() {
            return Ok(());
        }
        Err(BackingFault::Forked { backing: Arc::clone(&self.name), operation })
    }

    /// Whether this is the process that made it.
    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process.is_here()
    }

    /// Asks everything again: an answer that changed takes the backing out of service.
    pub(crate) fn discover_again(&self) -> Result<(), BackingFault> {
        self.in_service(Operation::Discover)?;
        let now = self.call(Operation::Discover, || self.inner.discover())?.on_disk(self.services.disk());
        let changed = [
            ("its description", now.description != self.description),
            ("its accounting", now.accounting != self.accounting),
            ("its capabilities or granularity", now.capabilities != self.capabilities),
        ];
        match changed.iter().find(|(_, changed)| *changed) {
            None => Ok(()),
            Some((what, _)) => Err(self.breach(Operation::Discover, format!("{what} changed after creation"))),
        }
    }

    fn take_addresses(&self, base: Address, end: Address) -> Result<(), String> {
        self.addresses.take(base, end).map_err(|(taken, taken_end)| {
            format!("it answered {base}..{end}, inside the live range {taken}..{taken_end}")
        })
    }

    fn in_service(&self, operation: Operation) -> Result<(), BackingFault> {
        match self.services.retired() {
            None => Ok(()),
            Some(reason) => Err(self.out_of_service(operation, reason.to_owned())),
        }
    }

    /// The answer of a capability, unless the backing no longer offers what it did: then nothing was done. `is_offered`
    /// is asked only after a failure that says nothing else, since each question is a crossing.
    fn capability_answer<T>(
        &self,
        operation: Operation,
        capability: Capability,
        answer: Result<Option<T>, BackingError>,
        is_offered: impl FnOnce() -> Result<bool, BackingError>,
    ) -> Result<T, BackingFault> {
        let lost =
            |error: &BackingError| error.kind() == ErrorKind::Internal && matches!(contain(is_offered), Ok(false));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Err(error) if !lost(&error) => {
                self.note(operation, &error);
                Err(self.failed(operation, error))
            }
            Ok(None) | Err(_) => {
                let breach = broken(&format!("it no longer offers {}, as it did at first", capability.name()));
                self.services.retire(breach.clone());
                Err(self.out_of_service(operation, breach))
            }
        }
    }

    fn call<T>(&self, operation: Operation, call: impl FnOnce() -> Result<T, BackingError>) -> Result<T, BackingFault> {
        self.check_process(operation)?;
        contain_call(call).map_err(|error| {
            self.note(operation, &error);
            self.failed(operation, error)
        })
    }

    /// Takes the backing out of service where the failure says that it must not go on.
    fn note(&self, operation: Operation, error: &BackingError) {
        if error.kind().ends_service() {
            self.services.retire(format!("{operation}: {error}"));
        }
    }

    fn failed(&self, operation: Operation, error: BackingError) -> BackingFault {
        let refusal = (error.kind() == ErrorKind::BudgetRefused).then(|| self.services.take_refusal()).flatten();
        BackingFault::Failed { backing: Arc::clone(&self.name), operation, error, refusal }
    }

    fn breach(&self, operation: Operation, breach: String) -> BackingFault {
        self.services.retire(broken(&breach));
        BackingFault::Breach { backing: Arc::clone(&self.name), operation, breach: broken(&breach) }
    }

    fn out_of_service(&self, operation: Operation, reason: String) -> BackingFault {
        BackingFault::OutOfService { backing: Arc::clone(&self.name), operation, reason }
    }
}

/// Runs a call into a backing; what was refused before has nothing to do with it.
fn contain_call<T>(call: impl FnOnce() -> Result<T, BackingError>) -> Result<T, BackingError> {
    ServiceContext::forget_refusal();
    contain(call)
}

fn broken(breach: &str) -> String {
    format!("it broke the contract: {breach}")
}

impl Drop for CheckedBacking {
    /// Gives the addresses back first, as a release does: the moment that the backing has unmapped what is in quarantine,
    /// the system may hand it to another thread's region. A forked child forgets it: its end is the parent's to make.
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            std::mem::forget(std::mem::replace(&mut self.inner, Ended::made()));
            return;
        }
        let kept: Vec<_> = self.lock_quarantine().drain(..).collect();
        for entry in &kept {
            self.books.quarantined().forget(&self.name, entry.remaining_bytes);
            self.give_back_addresses(entry);
        }
        let inner = std::mem::replace(&mut self.inner, Ended::made());
        if let Err(error) = inner.destroy() {
            quietly(|| tracing::error!(backing = &*self.name, "its end failed: {error}"));
        }
        self.services.close();
        drop(kept);
    }
}

impl fmt::Debug for CheckedBacking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CheckedBacking")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("accounting", &self.accounting)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

/// What stands in for a backing while it is destroyed.
struct Ended;

impl Ended {
    fn made() -> MadeBacking {
        MadeBacking::Linked { backing: Box::new(Self), access: CpuAccess::None }
    }
}

impl Backing for Ended {
    fn describe(&self) -> Description {
        Description::new(leasehold_plugin_api::DeviceKey::HOST, "ended")
    }

    fn allocate(&self, _request: &AllocateRequest) -> Result<Allocation, BackingError> {
        Err(BackingError::unsupported("allocate"))
    }

    fn release(&self, _target: ReleaseTarget) -> ReleaseOutcome {
        ReleaseOutcome::Failed(BackingError::unsupported("release"))
    }
}
