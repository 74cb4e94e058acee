//! The host's side of `HostServices`: what one backing may ask of the host.
//!
//! A plugin knows its context by a number that is never used twice, since a thread of the plugin may outlive its backing:
//! a call with the number of a context that has ended finds nothing, and fails. So a context lives no longer than its
//! backing, and nothing of it stays. No lock is held while a charge is made.
#![expect(unsafe_code, reason = "the functions behind a C-shaped table take raw pointers")]

use super::{contexts, quietly, refunds};
use crate::error::{RefusedFigures, TierExhausted};
use crate::governor::{DomainBooks, GovernorCore, Lease, Party, PartyId};
use crate::machine::ProcessMark;
use leasehold_plugin_api::abi::{
    DomainRecord, ErrorRecord, HostServicesTable, RoleRecord, STATUS_FAILED, STATUS_OK, STATUS_PANICKED, Text,
};
use leasehold_plugin_api::{AuthorityId, BackingError, Domain, ErrorKind, HostServices, LogLevel, MemoryRole, Tier};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

thread_local! {
    /// The charge that was last refused on this thread, and to whom: across the boundary its figures are words.
    static REFUSED: Cell<Option<(Party, RefusedFigures)>> = const { Cell::new(None) };
}

/// The services of every backing of this process.
static TABLE: HostServicesTable = HostServicesTable { log, authority, charge, refund };

/// What the host keeps for one backing.
pub(crate) struct ServiceContext {
    /// What a plugin calls it.
    number: u64,
    /// The process that it was made in.
    process: ProcessMark,
    backing: Arc<str>,
    /// The backing as a party to what it asks for.
    party: Party,
    governor: Arc<GovernorCore>,
    /// The number of its disk, if it is one.
    disk: u32,
    /// Its one domain, once it asked for its books or was described.
    domain: OnceLock<Domain>,
    /// What the backing has charged, by domain; `None` once it ended.
    accounts: Mutex<Option<BTreeMap<Domain, Lease>>>,
    /// Why the backing is out of service.
    retired: OnceLock<String>,
}

impl std::fmt::Debug for ServiceContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServiceContext").field("backing", &self.backing).finish_non_exhaustive()
    }
}

impl ServiceContext {
    /// Opens the context of one backing. If it is a disk, it has that number.
    pub(crate) fn open(backing: Arc<str>, governor: Arc<GovernorCore>, disk: u32) -> Arc<Self> {
        let context = Arc::new(Self {
            number: contexts::mint(),
            process: ProcessMark::current(),
            backing,
            party: Party::Backing(PartyId::mint()),
            governor,
            disk,
            domain: OnceLock::new(),
            accounts: Mutex::new(Some(BTreeMap::new())),
            retired: OnceLock::new(),
        });
        contexts::add(context.number, &context);
        context
    }

    /// Whether this is the process that made it, and no child that was forked off since.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process.is_here()
    }

    /// The services as an author of a backing holds them.
    pub(crate) fn services(&self) -> HostServices {
        // SAFETY: the table is static, and the operations below keep its rules.
        unsafe { HostServices::from_table(&raw const TABLE, self.number) }
    }

    /// The number of its disk, if it is one.
    pub(crate) fn disk(&self) -> u32 {
        self.disk
    }

    /// The domain as the host numbers it: a backing has one disk, the host's, for any number it names.
    fn domain_of(&self, record: DomainRecord) -> Result<Domain, BackingError> {
        let unknown = || BackingError::invalid("a domain's tier is not known to this host");
        let device = record.device().ok_or_else(unknown)?;
        Ok(if device.tier == Tier::Disk { Domain::Disk(self.disk) } else { device.domain() })
    }

    /// Fixes the domain of the device that the backing describes; refused where it asked for the books of another one
    /// before.
    pub(crate) fn settle_domain(&self, described: Domain) -> Result<(), String> {
        let asked = *self.domain.get_or_init(|| described);
        if asked == described {
            return Ok(());
        }
        Err(format!(
            "it asked for the books of {asked} and describes {described}: a backing has one domain, that of the device \
             it describes"
        ))
    }

    /// The backing as a party to what it asks for.
    pub(crate) fn party(&self) -> Party {
        self.party
    }

    /// Runs a call to the backing. Answers with it the bytes that the backing refunded during the call on this thread,
    /// whatever it says of itself and whatever others do to the ledger meanwhile.
    pub(crate) fn measure_refunds<T>(&self, call: impl FnOnce() -> T) -> (T, u64) {
        refunds::measure(self.party, call)
    }

    /// Takes the backing out of service; the first reason stays.
    pub(crate) fn retire(&self, reason: impl Into<String>) {
        let reason = reason.into();
        if self.retired.set(reason.clone()).is_ok() {
            quietly(|| tracing::error!(backing = &*self.backing, "out of service: {reason}"));
        }
    }

    /// Why the backing is out of service.
    pub(crate) fn retired(&self) -> Option<&str> {
        self.retired.get().map(String::as_str)
    }

    /// What the backing has charged to a domain and not refunded.
    pub(crate) fn charged_bytes(&self, domain: Domain) -> u64 {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.as_ref().and_then(|accounts| accounts.get(&domain)).map_or(0, Lease::bytes)
    }

    /// Ends the services and returns whatever the backing still had charged.
    pub(crate) fn close(&self) {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner).take();
        for (domain, left) in accounts.iter().flatten().map(|(domain, lease)| (domain, lease.bytes())) {
            if left > 0 {
                quietly(|| {
                    tracing::warn!(
                        backing = &*self.backing,
                        "ended with {left} bytes charged to {domain}; they are refunded"
                    )
                });
            }
        }
    }

    /// The books of the backing's one domain, opened where no one has asked for them yet: the domain that is described, or
    /// before that the first that is asked for. The end can't come in between: after it none are opened.
    fn books(&self, domain: Domain) -> Result<Arc<DomainBooks>, BackingError> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.is_none() {
            return Err(ended());
        }
        let own = *self.domain.get_or_init(|| domain);
        if own != domain {
            return Err(BackingError::invalid(format!(
                "no books of {domain} for this backing: this backing has those of {own}; charge the domain of the device \
                 that it describes"
            )));
        }
        self.governor.open(domain).map_err(|error| BackingError::new(ErrorKind::Internal, error.to_string()))
    }

    fn authority(&self, domain: Domain) -> Result<AuthorityId, BackingError> {
        Ok(self.books(domain)?.authority())
    }

    fn charge(&self, domain: Domain, bytes: u64, role: MemoryRole) -> Result<(), BackingError> {
        let lease = Lease::charge(self.books(domain)?, bytes, role, Some(self.party)).map_err(|refusal| {
            REFUSED.set(Some((self.party, RefusedFigures::of(&refusal))));
            BackingError::new(ErrorKind::BudgetRefused, refusal.to_string())
                .with_requested(bytes)
                .with_available(refusal.available_bytes())
        })?;
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let accounts = accounts.as_mut().ok_or_else(ended)?;
        match accounts.get_mut(&domain) {
            Some(account) => account.absorb(lease),
            None => drop(accounts.insert(domain, lease)),
        }
        Ok(())
    }

    /// Forgets what was refused on this thread before: a call of a backing begins.
    pub(crate) fn forget_refusal() {
        REFUSED.set(None);
    }

    /// The figures of the charge that was last refused to this backing on this thread, once.
    pub(crate) fn take_refusal(&self) -> Option<TierExhausted> {
        let (party, figures) = REFUSED.take()?;
        let quarantined = || self.governor.books(figures.domain).map(|books| books.quarantined().by_backing());
        (party == self.party).then(|| figures.with_quarantined(quarantined().unwrap_or_default()))
    }

    /// Whether two backings belong to one host.
    pub(crate) fn shares_host_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.governor, &other.governor)
    }

    fn refund(&self, domain: Domain, bytes: u64) -> Result<(), BackingError> {
        let charged = match self.take_from_account(domain, bytes)? {
            Taken::All => {
                refunds::note(self.party, bytes);
                return Ok(());
            }
            Taken::NothingOf { charged } => charged,
        };
        let reason = format!("refunded {bytes} bytes on {domain} where it had charged {charged}");
        self.retire(reason.clone());
        Err(BackingError::invalid(format!("{reason}; refund what was charged")))
    }

    /// Takes what was charged back: nothing, where it is less.
    fn take_from_account(&self, domain: Domain, bytes: u64) -> Result<Taken, BackingError> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let accounts = accounts.as_mut().ok_or_else(ended)?;
        let charged = accounts.get(&domain).map_or(0, Lease::bytes);
        if bytes > charged {
            return Ok(Taken::NothingOf { charged });
        }
        if let Some(account) = accounts.get_mut(&domain) {
            account.shrink(bytes);
        }
        Ok(Taken::All)
    }
}

/// What came of taking bytes from an account.
enum Taken {
    All,
    NothingOf { charged: u64 },
}

fn ended() -> BackingError {
    BackingError::new(ErrorKind::WrongState, "the backing has ended; its services are closed")
}

impl Drop for ServiceContext {
    /// A forked child forgets what the backing had charged: that is the parent's to return.
    fn drop(&mut self) {
        if self.process.is_here() {
            contexts::remove(self.number);
        } else {
            std::mem::forget(self.accounts.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// Adds a line to the log; without a name where the backing has ended.
fn log_line(backing: Option<&str>, level: LogLevel, message: &str) {
    match level {
        LogLevel::Error => tracing::error!(backing, "{message}"),
        LogLevel::Warning => tracing::warn!(backing, "{message}"),
        LogLevel::Information => tracing::info!(backing, "{message}"),
        LogLevel::Debugging => tracing::debug!(backing, "{message}"),
        LogLevel::Tracing => tracing::trace!(backing, "{message}"),
    }
}

/// Runs one service: its error goes into the record, its panic no further.
///
/// # Safety
///
/// `error` points to a record that only this call accesses.
unsafe fn serve(
    context: u64,
    error: *mut ErrorRecord,
    service: impl FnOnce(&ServiceContext) -> Result<(), BackingError>,
) -> u32 {
    let serve = || service(&*contexts::find(context).ok_or_else(ended)?);
    let (status, failure) = match catch_unwind(AssertUnwindSafe(serve)) {
        Ok(Ok(())) => return STATUS_OK,
        Ok(Err(failure)) => (STATUS_FAILED, failure),
        Err(payload) => (STATUS_PANICKED, BackingError::from_panic("the host", payload)),
    };
    // SAFETY: the caller promises the record.
    let error = unsafe { &mut *error };
    error.write(&failure);
    status
}

/// # Safety
///
/// As in [`HostServicesTable`].
unsafe extern "C" fn log(context: u64, level: u32, message: Text) {
    let bytes = if message.len == 0 {
        &[]
    } else {
        // SAFETY: the plugin lends the text for the call.
        unsafe { std::slice::from_raw_parts(message.data, message.len) }
    };
    quietly(|| {
        let context = contexts::find(context);
        let backing = context.as_ref().map(|context| &*context.backing);
        log_line(backing, LogLevel::from_number(level), &String::from_utf8_lossy(bytes));
    });
}

/// # Safety
///
/// As in [`HostServicesTable`].
unsafe extern "C" fn authority(context: u64, domain: DomainRecord, out: *mut [u8; 16], error: *mut ErrorRecord) -> u32 {
    let service = |context: &ServiceContext| {
        let authority = context.authority(context.domain_of(domain)?)?;
        // SAFETY: the plugin lends the out-parameter for the call.
        unsafe { out.write(authority.to_bytes()) };
        Ok(())
    };
    // SAFETY: the plugin keeps the rules of the table.
    unsafe { serve(context, error, service) }
}

/// # Safety
///
/// As in [`HostServicesTable`].
unsafe extern "C" fn charge(
    context: u64,
    domain: DomainRecord,
    bytes: u64,
    role: RoleRecord,
    error: *mut ErrorRecord,
) -> u32 {
    // SAFETY: the plugin keeps the rules of the table.
    unsafe { serve(context, error, |context| context.charge(context.domain_of(domain)?, bytes, role.role())) }
}

/// # Safety
///
/// As in [`HostServicesTable`].
unsafe extern "C" fn refund(context: u64, domain: DomainRecord, bytes: u64, error: *mut ErrorRecord) -> u32 {
    // SAFETY: the plugin keeps the rules of the table.
    unsafe { serve(context, error, |context| context.refund(context.domain_of(domain)?, bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_service_is_told_with_its_words() {
        let context = ServiceContext::open("any".into(), Arc::default(), 0);
        let mut error = ErrorRecord::empty();
        // SAFETY: the record is ours.
        let status = unsafe { serve(context.number, &raw mut error, |_| panic!("some words")) };
        let failure = error.answer(status).expect_err("it panicked");
        assert_eq!((failure.kind(), failure.message()), (ErrorKind::Panicked, "the host panicked: some words"));
    }

    #[test]
    fn a_context_that_was_dropped_is_found_no_longer() {
        let context = ServiceContext::open("any".into(), Arc::default(), 0);
        let (number, services) = (context.number, context.services());
        assert!(contexts::find(number).is_some());
        drop(context);
        assert!(contexts::find(number).is_none());
        let error = services.charge(Domain::Host, 1, MemoryRole::KvCache).expect_err("it has ended");
        assert_eq!(error.kind(), ErrorKind::WrongState);
    }
}
