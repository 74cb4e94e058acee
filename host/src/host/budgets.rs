//! Turns what may be spent in each domain, and what backings say of their devices, into the limits of the books.
//!
//! A domain's limit follows the largest size that any backing describes. It owns nothing but figures, and is used while
//! one host is assembled.

use crate::error::Error;
use crate::governor::DomainBooks;
use crate::machine::HostMemory;
use crate::registry::BudgetSpec;
use leasehold_plugin_api::{Description, Domain};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What may be spent in each domain, and how large the devices are.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Domains that are not named are `auto`.
    specs: BTreeMap<Domain, BudgetSpec>,
    /// The largest of each device, as described so far.
    sizes: BTreeMap<Domain, DeviceSize>,
}

/// What a backing says of its device's memory.
#[derive(Clone, Debug)]
struct DeviceSize {
    total_bytes: u64,
    backing: Arc<str>,
}

impl Budgets {
    /// What the registry file says; limits that the program sets come before it.
    pub(super) fn new(mut specs: BTreeMap<Domain, BudgetSpec>, limits: &[(Domain, u64)]) -> Self {
        specs.extend(limits.iter().map(|(domain, bytes)| (*domain, BudgetSpec::Bytes(*bytes))));
        Self { specs, sizes: BTreeMap::new() }
    }

    /// The domains that are named.
    pub(super) fn named(&self) -> impl Iterator<Item = (Domain, BudgetSpec)> {
        self.specs.iter().map(|(domain, spec)| (*domain, *spec))
    }

    /// The budget of the machine's memory in bytes. Bytes need no look at how much there is.
    pub(super) fn host_limit(&self) -> Result<u64, Error> {
        let spec = self.spec(Domain::Host);
        if let BudgetSpec::Bytes(bytes) = spec {
            return Ok(bytes);
        }
        let memory = HostMemory::read().map_err(|error| Error::no_memory_size(&error))?;
        Ok(spec.resolve(memory.total_bytes, memory.free_bytes))
    }

    /// Sets the limit of a device's books, now that a backing has described the device. Where it doesn't report what is
    /// free, all of it counts as that. Returns what differs from what another backing described.
    pub(super) fn settle(
        &mut self,
        books: &DomainBooks,
        backing: &Arc<str>,
        description: &Description,
    ) -> Option<String> {
        let (domain, total_bytes) = (books.domain(), description.total_bytes);
        if domain == Domain::Host {
            return None;
        }
        let free_bytes = description.free_bytes.unwrap_or(total_bytes);
        let seen = DeviceSize { total_bytes, backing: Arc::clone(backing) };
        let known = self.sizes.get(&domain);
        let differs = known.filter(|known| known.total_bytes != total_bytes).map(|known| {
            let (of_known, other) = (known.total_bytes, &known.backing);
            format!("it describes {domain} with {total_bytes} bytes, {other:?} with {of_known}: the larger size counts")
        });
        if known.is_none_or(|known| known.total_bytes < total_bytes) {
            match self.spec(domain) {
                BudgetSpec::Auto | BudgetSpec::Percent(_) if total_bytes == 0 => books.set_unsized(),
                spec => books.set_described_limit(spec.resolve(total_bytes, free_bytes)),
            }
            self.sizes.insert(domain, seen);
        }
        differs
    }

    fn spec(&self, domain: Domain) -> BudgetSpec {
        self.specs.get(&domain).copied().unwrap_or_default()
    }
}
