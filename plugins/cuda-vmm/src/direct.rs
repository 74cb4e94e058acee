//! Handles that are made when they are needed and given back when they are not.

use leasehold_cuda_driver::{Device, Fault, PhysicalHandle, Properties};
use leasehold_cuda_regions::{Need, Parting, Piece, Returned, Source, Supply};
use leasehold_plugin_api::{BackingError, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A source that keeps nothing.
#[derive(Debug)]
pub(crate) struct Direct {
    device: Device,
    properties: Properties,
    unit: u64,
    /// Handles that the driver did not take back: in nobody's use, and tried again.
    debts: Mutex<Vec<PhysicalHandle>>,
}

impl Direct {
    pub(crate) fn new(device: Device, properties: Properties, unit: u64) -> Self {
        Self { device, properties, unit, debts: Mutex::default() }
    }

    fn make(&self, need: &Need, made: &mut Vec<PhysicalHandle>) -> Result<(), Fault> {
        for _ in 0..need.units {
            made.push(self.device.create(self.properties, self.unit)?);
        }
        Ok(())
    }

    /// Gives handles back; those that the driver does not take are debts.
    fn give_back(&self, handles: impl Iterator<Item = PhysicalHandle>) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for handle in handles {
            if let Err((handle, fault)) = handle.close() {
                self.lock().push(handle);
                outcome = Err(fault);
            }
        }
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PhysicalHandle>> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Direct {
    fn parting(&self) -> Parting {
        Parting::BeforeUnmapping
    }

    fn obtain(&self, needs: &[Need]) -> Result<Supply, BackingError> {
        let units = needs.iter().fold(0_u64, |sum, need| sum.saturating_add(need.units));
        let bytes = units.saturating_mul(self.unit);
        let refuse = |fault: Fault| {
            let advice = "free memory of the device, or lower the budget of its domain";
            fault.into_error(format!("no memory for {bytes} bytes"), advice).with_requested(bytes)
        };
        let _bound = self.device.bind().map_err(refuse)?;
        self.clear_debts().map_err(refuse)?;
        let mut parts = Vec::with_capacity(needs.len());
        for need in needs {
            let mut made = Vec::new();
            let outcome = self.make(need, &mut made);
            parts.push(made);
            let Err(fault) = outcome else { continue };
            let error = refuse(fault);
            return Err(match self.give_back(parts.into_iter().flatten()) {
                Ok(()) => error,
                Err(debt) => debt.into_error_of(ErrorKind::BrokenOff, error.message(), "what was made is tried again"),
            });
        }
        let fresh = |handle| Piece { handle, former: None };
        let parts = parts.into_iter().map(|part| part.into_iter().map(fresh).collect()).collect();
        Ok(Supply { parts, owned_bytes: bytes })
    }

    fn restore(&self, supply: Supply) -> Result<(), Fault> {
        self.give_back(supply.parts.into_iter().flatten().map(|piece| piece.handle))
    }

    fn clear_debts(&self) -> Result<(), Fault> {
        let debts = std::mem::take(&mut *self.lock());
        self.give_back(debts.into_iter())
    }

    fn take_back(&self, returned: Vec<Returned>) -> (u64, Option<Fault>) {
        let units = u64::try_from(returned.len()).unwrap_or(u64::MAX);
        let outcome = self.give_back(returned.into_iter().map(|unit| unit.handle));
        (units.saturating_mul(self.unit), outcome.err())
    }

    fn newly_owned(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit)
    }
}
