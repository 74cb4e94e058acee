//! What the host offers to a backing: a log, the identities of its books, charge and refund.
#![expect(unsafe_code, reason = "calls the host through a C-shaped table")]

use crate::abi::{ErrorRecord, HostServicesTable, Text};
use crate::{AuthorityId, BackingError, Domain, MemoryRole};
use std::fmt;

/// How much a line of log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Something is lost or broken.
    Error,
    /// Something will bite.
    Warning,
    /// Worth knowing.
    Information,
    /// For whoever looks for a fault.
    Debugging,
    /// Every step.
    Tracing,
}

impl LogLevel {
    const NUMBERS: [(LogLevel, u32); 5] = [
        (LogLevel::Error, 1),
        (LogLevel::Warning, 2),
        (LogLevel::Information, 3),
        (LogLevel::Debugging, 4),
        (LogLevel::Tracing, 5),
    ];

    /// Its number across the boundary.
    #[must_use]
    pub fn number(self) -> u32 {
        Self::NUMBERS.iter().find(|(level, _)| *level == self).map_or(1, |(_, number)| *number)
    }

    /// The level of that number; one that is not known counts as an error.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self::NUMBERS.iter().find(|(_, known)| *known == number).map_or(LogLevel::Error, |(level, _)| *level)
    }
}

/// What the host offers to one backing, from its creation to its end.
///
/// Copies are cheap and may go to any thread, and outlive the backing: after its end each call fails and changes nothing,
/// and a line of log has no backing's name.
/// Hold no lock of your own while you call: the host may call back into the same backing on the same thread.
#[derive(Clone, Copy)]
pub struct HostServices {
    /// Invariant 1: points to a table that is valid, and unchanged, for the life of the process.
    table: &'static HostServicesTable,
    /// Which backing's services they are.
    context: u64,
}

// SAFETY: by invariant 1 the table is never changed, and the host promises that its operations may be called from any
// thread at the same time.
unsafe impl Send for HostServices {}
// SAFETY: as above.
unsafe impl Sync for HostServices {}

impl HostServices {
    /// The services of the backing that the host knows by this number, behind the host's table.
    ///
    /// # Safety
    ///
    /// `table` is valid and unchanged for the life of the process, and its operations keep the rules of
    /// [`HostServicesTable`].
    #[must_use]
    pub unsafe fn from_table(table: *const HostServicesTable, context: u64) -> Self {
        // SAFETY: the caller promises invariant 1.
        Self { table: unsafe { &*table }, context }
    }

    /// The table.
    #[must_use]
    pub fn as_table(&self) -> *const HostServicesTable {
        self.table
    }

    /// The number that goes with the table.
    #[must_use]
    pub fn context(&self) -> u64 {
        self.context
    }

    /// Adds a line to the host's log, under the backing's name.
    pub fn log(&self, level: LogLevel, message: &str) {
        // SAFETY: invariant 1; the text is borrowed for the call.
        unsafe { (self.table.log)(self.context, level.number(), Text::borrow(message)) }
    }

    /// The identity of the domain's books, for [`Accounting::Backing`](crate::Accounting::Backing). They are opened where
    /// they are not yet, and grant nothing until the device is described and so its limit known.
    ///
    /// A backing has one domain, that of the device that it describes; of a disk the host reads its own number, see
    /// [`DeviceKey::DISK`](crate::DeviceKey::DISK).
    ///
    /// # Errors
    ///
    /// [`WrongState`](crate::ErrorKind::WrongState) after the backing's end,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for a second domain.
    pub fn authority(&self, domain: Domain) -> Result<AuthorityId, BackingError> {
        let mut bytes = [0; 16];
        let mut error = ErrorRecord::empty();
        // SAFETY: invariant 1; both out-parameters are ours for the call.
        let status = unsafe { (self.table.authority)(self.context, domain.into(), &raw mut bytes, &raw mut error) };
        error.answer(status).map(|()| AuthorityId::from_bytes(bytes))
    }

    /// Charges physical bytes to the domain before they are taken. Where they don't fit, others give memory back, before
    /// this returns and on this thread: their buffers on this very backing may shrink, and it may be trimmed. So hold no
    /// lock of the backing's.
    ///
    /// # Errors
    ///
    /// [`BudgetRefused`](crate::ErrorKind::BudgetRefused) when the limit would be passed, and as
    /// [`authority`](Self::authority); nothing is charged then.
    pub fn charge(&self, domain: Domain, bytes: u64, role: MemoryRole) -> Result<(), BackingError> {
        let mut error = ErrorRecord::empty();
        // SAFETY: invariant 1; the error record is ours for the call.
        let status = unsafe { (self.table.charge)(self.context, domain.into(), bytes, role.into(), &raw mut error) };
        error.answer(status)
    }

    /// Gives back bytes that this backing charged.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when the backing has not charged as much; nothing is refunded,
    /// and the host takes the backing out of service.
    pub fn refund(&self, domain: Domain, bytes: u64) -> Result<(), BackingError> {
        let mut error = ErrorRecord::empty();
        // SAFETY: invariant 1; the error record is ours for the call.
        let status = unsafe { (self.table.refund)(self.context, domain.into(), bytes, &raw mut error) };
        error.answer(status)
    }
}

impl fmt::Debug for HostServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HostServices").finish_non_exhaustive()
    }
}
