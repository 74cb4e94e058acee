//! Where handles come from and go to: parked ones first, then new ones that are charged before they are made.
//!
//! The lock on what is parked is never held while the host or the driver is called. A handle that the driver does not take
//! back is parked whatever the bound is: it stays owned and charged, and is tried again by a trim.

use crate::books::Books;
use crate::parked::Parked;
use leasehold_cuda_driver::{Fault, PhysicalHandle};
use leasehold_cuda_regions::{HandleFactory, HandleRelease, Need, Piece, Released, Returned, Source, Supply};
use leasehold_plugin_api::{BackingError, ErrorKind, HolderId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pool of one device, one kind of memory and one set of books.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    factory: HandleFactory,
    park_granules: u64,
    books: Books,
    parked: Mutex<Parked<PhysicalHandle>>,
}

impl Pool {
    pub(crate) fn new(factory: HandleFactory, park_granules: u64, books: Books) -> Self {
        Self(Arc::new(Shared { factory, park_granules, books, parked: Mutex::new(Parked::new()) }))
    }

    fn granule(&self) -> u64 {
        self.0.factory.granule()
    }

    /// Gives parked memory up, the oldest first.
    pub(crate) fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let granules = bytes.div_ceil(self.granule().max(1));
        let oldest: Vec<_> = {
            let mut parked = self.lock();
            (0..granules).map_while(|_| parked.take_oldest()).map(|(holder, handle)| (handle, holder)).collect()
        };
        match self.give_back(oldest) {
            (0, Some(fault)) => {
                Err(fault.into_error("parked memory can't be given back", "it stays parked; try again"))
            }
            (bytes, _) => Ok(bytes),
        }
    }

    /// Gives handles back and refunds them; what the driver doesn't take is parked, whatever the bound is. Answers the
    /// bytes, and what the driver said last.
    fn give_back(&self, handles: Vec<(PhysicalHandle, HolderId)>) -> (u64, Option<Fault>) {
        let Released { bytes, kept, fault } = self.0.factory.release(handles);
        let mut parked = self.lock();
        kept.into_iter().for_each(|(handle, holder)| parked.park(holder, handle));
        drop(parked);
        self.0.books.refund(bytes);
        (bytes, fault)
    }

    /// Serves the needs from what is parked, as far as that goes, beside what their parts have already. Answers whether
    /// anything was found.
    fn take_parked(&self, needs: &[Need], parts: &mut [Vec<Piece>]) -> bool {
        let (mut parked, mut is_any) = (self.lock(), false);
        for (need, part) in needs.iter().zip(parts) {
            while u64::try_from(part.len()).is_ok_and(|granules| granules < need.granules) {
                let Some((former, handle)) = parked.take(need.holder) else { return is_any };
                part.push(Piece { handle, former: Some(former) });
                is_any = true;
            }
        }
        is_any
    }

    /// Charges what the parts lack, all at once: what does not fit as a whole takes nothing of the budget, and nobody is asked
    /// for room in vain. Whoever is asked may park memory here, which stays charged: it serves, and the rest is charged.
    /// Answers the bytes.
    fn charge(&self, needs: &[Need], parts: &mut [Vec<Piece>]) -> Result<u64, BackingError> {
        loop {
            let bytes = self.0.factory.missing_bytes(needs, parts);
            let Some(role) = needs.first().filter(|_| bytes > 0).map(|need| need.role) else { return Ok(0) };
            let Err(refused) = self.0.books.charge(bytes, role) else { return Ok(bytes) };
            let is_of_the_budget = refused.kind() == ErrorKind::BudgetRefused;
            if !is_of_the_budget || !self.take_parked(needs, parts) {
                return Err(refused);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Parked<PhysicalHandle>> {
        self.0.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Pool {
    fn handle_release(&self) -> HandleRelease {
        HandleRelease::AfterUnmapping
    }

    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        let Shared { factory, books, .. } = &*self.0;
        supply.parts = needs.iter().map(|_| Vec::new()).collect();
        self.take_parked(needs, &mut supply.parts);
        supply.owned_bytes = self.charge(needs, &mut supply.parts)?;
        factory.complete(needs, &mut supply.parts).inspect_err(|_| {
            books.refund(factory.missing_bytes(needs, &supply.parts));
        })
    }

    /// What was parked is parked again, as far as the bound lets it, for others may have parked meanwhile. New handles are
    /// given back and refunded. What the driver does not take stays, parked and charged, as do those that are in regions
    /// still.
    fn restore(&self, supply: &mut Supply) -> Result<(), Fault> {
        let (mut parked, mut new) = (Vec::new(), Vec::new());
        for Piece { handle, former } in supply.parts.drain(..).flatten() {
            match former {
                Some(holder) => parked.push(Returned { handle, holder }),
                None => new.push((handle, HolderId::NOBODY)),
            }
        }
        self.take_back(parked);
        self.give_back(new);
        Ok(())
    }

    fn take_back(&self, returned: Vec<Returned>) -> u64 {
        let mut surplus = Vec::new();
        let mut parked = self.lock();
        for Returned { handle, holder } in returned {
            if parked.granules() < self.0.park_granules {
                parked.park(holder, handle);
            } else {
                surplus.push((handle, holder));
            }
        }
        drop(parked);
        self.give_back(surplus).0
    }

    fn newly_owned(&self, granules: u64) -> u64 {
        granules.saturating_sub(self.lock().granules()).saturating_mul(self.granule())
    }
}

impl Drop for Shared {
    /// Gives parked handles back, and tells the host what the driver still holds then. The charges end with the backing:
    /// the host closes its account.
    fn drop(&mut self) {
        let Self { factory, books, parked, .. } = self;
        let parked = parked.get_mut().unwrap_or_else(PoisonError::into_inner);
        let handles = std::iter::from_fn(|| parked.take_oldest()).map(|(_, handle)| (handle, ()));
        if let Released { kept, fault: Some(fault), .. } = factory.release(handles) {
            let bytes = factory.granule().saturating_mul(u64::try_from(kept.len()).unwrap_or(u64::MAX));
            books.report(&format!("parked memory of {bytes} bytes outlives its backing: {fault}"));
        }
    }
}
