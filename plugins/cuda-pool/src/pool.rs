//! Where handles come from and go to: parked ones first, then new ones that are charged before they are made.
//!
//! The lock on what is parked is never held while the host or the driver is called. A handle that the driver does not take
//! back is parked whatever the bound is: it stays owned and charged, and is tried again by a trim.

use crate::books::Books;
use crate::parked::Parked;
use leasehold_cuda_driver::{Device, Fault, PhysicalHandle, Properties};
use leasehold_cuda_regions::{Need, Parting, Piece, Returned, Source, Supply};
use leasehold_plugin_api::{BackingError, HolderId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pool of one device, one kind of memory and one set of books.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    device: Device,
    properties: Properties,
    unit: u64,
    park_units: u64,
    books: Books,
    parked: Mutex<Parked<PhysicalHandle>>,
}

impl Pool {
    pub(crate) fn new(device: Device, properties: Properties, unit: u64, park_units: u64, books: Books) -> Self {
        let parked = Mutex::new(Parked::new());
        Self(Arc::new(Shared { device, properties, unit, park_units, books, parked }))
    }

    /// Gives parked memory up, the oldest first.
    pub(crate) fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        let mut given_up: u64 = 0;
        while given_up < bytes {
            let Some((holder, handle)) = self.lock().take_oldest() else { break };
            if let Err((handle, fault)) = handle.close() {
                self.lock().park(holder, handle);
                if given_up == 0 {
                    return Err(fault.into_error("parked memory can't be given back", "it stays parked; try again"));
                }
                break;
            }
            self.0.books.refund(self.0.unit);
            given_up = given_up.saturating_add(self.0.unit);
        }
        Ok(given_up)
    }

    /// What is parked serves every need as far as it goes.
    fn take_parked(&self, needs: &[Need]) -> Vec<Vec<Piece>> {
        let mut parked = self.lock();
        let mut piece = |holder| {
            let (former, handle) = parked.take(holder)?;
            Some(Piece { handle, former: Some(former) })
        };
        needs.iter().map(|need| (0..need.units).map_while(|_| piece(need.holder)).collect()).collect()
    }

    /// Makes what is missing, charged before and at once: what does not fit as a whole takes no part of the budget, and
    /// nobody gives anything up for it.
    fn make(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        let Shared { device, properties, unit, books, .. } = &*self.0;
        let missing = needs
            .iter()
            .zip(&supply.parts)
            .fold(0_u64, |sum, (need, pieces)| sum.saturating_add(need.units.saturating_sub(units_of(pieces))));
        let Some(role) = needs.first().filter(|_| missing > 0).map(|need| need.role) else { return Ok(()) };
        let bytes = missing.saturating_mul(*unit);
        books.charge(bytes, role)?;
        supply.owned_bytes = bytes;
        let refuse = |fault: Fault| {
            let advice = "free memory of the device, or lower the budget of its domain";
            fault.into_error(format!("no memory for {bytes} bytes"), advice).with_requested(bytes)
        };
        let mut made: u64 = 0;
        let outcome = device.bind().and_then(|_bound| {
            for (need, pieces) in needs.iter().zip(&mut supply.parts) {
                for _ in units_of(pieces)..need.units {
                    pieces.push(Piece { handle: device.create(*properties, *unit)?, former: None });
                    made = made.saturating_add(1);
                }
            }
            Ok(())
        });
        outcome.map_err(|fault| {
            books.refund(missing.saturating_sub(made).saturating_mul(*unit));
            refuse(fault)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Parked<PhysicalHandle>> {
        self.0.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn units_of(pieces: &[Piece]) -> u64 {
    u64::try_from(pieces.len()).unwrap_or(u64::MAX)
}

impl Source for Pool {
    fn parting(&self) -> Parting {
        Parting::AfterUnmapping
    }

    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        supply.parts = self.take_parked(needs);
        self.make(needs, supply)
    }

    /// New handles are given back and refunded. What the driver does not take stays, parked and charged, as do those that
    /// are in regions still.
    fn restore(&self, supply: &mut Supply) -> Result<(), Fault> {
        let mut given_back: u64 = 0;
        for Piece { handle, former } in supply.parts.drain(..).flatten() {
            match (former, handle) {
                (Some(former), handle) => self.lock().park(former, handle),
                (None, handle) => match handle.close() {
                    Ok(()) => given_back = given_back.saturating_add(self.0.unit),
                    Err((handle, _)) => self.lock().park(HolderId::NOBODY, handle),
                },
            }
        }
        self.0.books.refund(given_back);
        Ok(())
    }

    fn take_back(&self, returned: Vec<Returned>) -> u64 {
        let mut given_back: u64 = 0;
        for Returned { handle, holder } in returned {
            if self.lock().units() < self.0.park_units {
                self.lock().park(holder, handle);
                continue;
            }
            match handle.close() {
                Ok(()) => given_back = given_back.saturating_add(self.0.unit),
                Err((handle, _)) => self.lock().park(holder, handle),
            }
        }
        self.0.books.refund(given_back);
        given_back
    }

    fn newly_owned(&self, units: u64) -> u64 {
        units.saturating_sub(self.lock().units()).saturating_mul(self.0.unit)
    }
}
