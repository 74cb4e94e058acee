//! Makes a backing of a loaded library, and asks it what it is and what it offers.
//!
//! An [`ImportedBacking`] owns the plugin's pointer and destroys it on drop, once. The tables of its capabilities are kept
//! as they were found at first; each discovery asks for them again, and they must be the same, so that an answer that
//! changes is noticed. Every answer may be a failure, those of discovery too. The calls themselves are in `foreign`.
#![expect(unsafe_code, reason = "calls function pointers of a loaded library")]

use super::foreign::{Foreign, ask, release};
use leasehold_plugin_api::abi::{
    AccountingRecord, BackingEntry, BackingInstance, BackingTable, CreateRequest, DescriptionRecord, ErrorRecord,
    OptionRecord, RegionRecord, RequestRecord, SharedMappingTable, TargetRecord, Text, TransferTable,
    VirtualBackingTable,
};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, BackingError, CpuAccess, Description, ErrorKind, HostServices, Options,
    ReleaseOutcome, ReleaseTarget,
};
use std::ptr;
use std::sync::OnceLock;

/// One backing that a loaded library offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignEntry {
    /// Invariant 1: an entry of a library that is never unloaded, whose layout was checked when it was opened.
    entry: &'static BackingEntry,
}

// SAFETY: by invariant 1 the entry is never changed, and its function may be called from any thread.
unsafe impl Send for ForeignEntry {}
// SAFETY: as above.
unsafe impl Sync for ForeignEntry {}

impl ForeignEntry {
    /// # Safety
    ///
    /// The entry keeps the rules of [`BackingEntry`] and is valid for the life of the process.
    pub(crate) unsafe fn new(entry: &'static BackingEntry) -> Self {
        Self { entry }
    }

    pub(crate) fn name(&self) -> String {
        self.read(self.entry.name)
    }

    pub(crate) fn summary(&self) -> String {
        self.read(self.entry.summary)
    }

    pub(crate) fn package(&self) -> String {
        format!("{} {}", self.read(self.entry.package), self.read(self.entry.package_version))
    }

    fn read(&self, text: Text) -> String {
        if text.len == 0 {
            return String::new();
        }
        // SAFETY: invariant 1: the entry's texts are as long-lived as the entry.
        let bytes = unsafe { std::slice::from_raw_parts(text.data, text.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Makes a backing.
    pub(crate) fn create(&self, options: &Options, services: HostServices) -> Result<ImportedBacking, BackingError> {
        let records = OptionRecord::list(options);
        let request = CreateRequest {
            services: services.as_table(),
            services_context: services.context(),
            options: records.as_ptr(),
            option_count: records.len(),
        };
        let unwritten = BackingInstance { this: ptr::null_mut(), table: ptr::null() };
        let instance = ask(unwritten, |out, error| {
            // SAFETY: invariant 1; request and out-parameters are ours for the call, the table of services is static.
            unsafe { (self.entry.create)(self.entry.context, &raw const request, out, error) }
        })?;
        // SAFETY: the table of a backing that was made, where it is not null, is valid for the life of the process.
        match unsafe { instance.table.as_ref() } {
            Some(table) if !instance.this.is_null() => {
                Ok(ImportedBacking::new(Foreign { this: instance.this, table }, self.entry.access.access()))
            }
            _ => Err(BackingError::new(ErrorKind::Internal, "the plugin made a backing without pointer or table")),
        }
    }
}

/// A capability as it was found at first, or that there is none.
type Known<T> = OnceLock<Option<Foreign<T>>>;

/// A backing of a loaded library.
#[derive(Debug)]
pub(crate) struct ImportedBacking {
    /// Invariant 1: came from the entry's `create`, and is destroyed on drop and nowhere else.
    own: Foreign<BackingTable>,
    /// What the library's entry claims.
    access: CpuAccess,
    virtual_backing: Known<VirtualBackingTable>,
    shared_mapping: Known<SharedMappingTable>,
    transfer: Known<TransferTable>,
}

impl ImportedBacking {
    fn new(own: Foreign<BackingTable>, access: CpuAccess) -> Self {
        let (virtual_backing, shared_mapping, transfer) = (Known::new(), Known::new(), Known::new());
        Self { own, access, virtual_backing, shared_mapping, transfer }
    }

    pub(super) fn access(&self) -> CpuAccess {
        self.access
    }

    pub(super) fn describe(&self) -> Result<Description, BackingError> {
        let Foreign { this, table } = self.own;
        // SAFETY: invariant 1; the out-parameters are ours for the call.
        let out = ask(DescriptionRecord::empty(), |out, error| unsafe { (table.describe)(this, out, error) })?;
        out.description().ok_or_else(|| not_known("the tier of its device"))
    }

    pub(super) fn accounting(&self) -> Result<Accounting, BackingError> {
        let Foreign { this, table } = self.own;
        let unwritten = AccountingRecord::from(Accounting::Buffer);
        // SAFETY: invariant 1; the out-parameters are ours for the call.
        let out = ask(unwritten, |out, error| unsafe { (table.accounting)(this, out, error) })?;
        out.accounting().ok_or_else(|| not_known("its kind of accounting"))
    }

    pub(super) fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let Foreign { this, table } = self.own;
        let request = RequestRecord::from(request);
        ask(RegionRecord::default(), |out, error| {
            // SAFETY: invariant 1; the parameters are ours for the call.
            unsafe { (table.allocate)(this, &raw const request, out, error) }
        })
        .map(RegionRecord::allocation)
    }

    pub(super) fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        let Foreign { this, table } = self.own;
        let target = TargetRecord::from(target);
        // SAFETY: invariant 1; the parameters are ours for the call.
        release(|out, error| unsafe { (table.release)(this, &raw const target, out, error) })
    }

    pub(super) fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let Foreign { this, table } = self.own;
        // SAFETY: invariant 1; the out-parameters are ours for the call.
        ask(0, |out, error| unsafe { (table.trim)(this, bytes, out, error) })
    }

    pub(super) fn virtual_backing(&self) -> Result<Option<&Foreign<VirtualBackingTable>>, BackingError> {
        let Foreign { this, table } = self.own;
        // SAFETY: invariant 1; the out-parameters are the caller's for the call.
        self.capability(&self.virtual_backing, |out, error| unsafe { (table.virtual_backing)(this, out, error) })
    }

    /// The virtual backing as it was found at first.
    pub(super) fn known_virtual_backing(&self) -> Option<&Foreign<VirtualBackingTable>> {
        self.virtual_backing.get()?.as_ref()
    }

    /// Shared mapping as it was found at first.
    pub(super) fn known_shared_mapping(&self) -> Option<&Foreign<SharedMappingTable>> {
        self.shared_mapping.get()?.as_ref()
    }

    pub(super) fn shared_mapping(&self) -> Result<Option<&Foreign<SharedMappingTable>>, BackingError> {
        let Foreign { this, table } = self.own;
        // SAFETY: invariant 1; the out-parameters are the caller's for the call.
        self.capability(&self.shared_mapping, |out, error| unsafe { (table.shared_mapping)(this, out, error) })
    }

    /// The transfers as they were found at first.
    pub(super) fn known_transfer(&self) -> Option<&Foreign<TransferTable>> {
        self.transfer.get()?.as_ref()
    }

    pub(super) fn transfer(&self) -> Result<Option<&Foreign<TransferTable>>, BackingError> {
        let Foreign { this, table } = self.own;
        // SAFETY: invariant 1; the out-parameters are the caller's for the call.
        self.capability(&self.transfer, |out, error| unsafe { (table.transfer)(this, out, error) })
    }

    /// The capability, where the backing offers it now as it did at first.
    fn capability<'a, T>(
        &self,
        known: &'a Known<T>,
        question: impl FnOnce(*mut *const T, *mut ErrorRecord) -> u32,
    ) -> Result<Option<&'a Foreign<T>>, BackingError> {
        let now = ask(ptr::null(), question)?;
        // SAFETY: a capability's table, where there is one, is valid for the life of the process.
        let now = unsafe { now.as_ref() };
        let known = known.get_or_init(|| now.map(|table| Foreign { this: self.own.this, table })).as_ref();
        Ok(known.filter(|known| now.is_some_and(|now| ptr::eq(now, known.table))))
    }
}

impl Drop for ImportedBacking {
    fn drop(&mut self) {
        // SAFETY: invariant 1; nobody else holds the backing any more.
        unsafe { (self.own.table.destroy)(self.own.this) }
    }
}

fn not_known(what: &str) -> BackingError {
    BackingError::new(ErrorKind::Internal, format!("{what} is not known to this host"))
}
