//! Handles that are made when they are needed and given back when they are not.

use leasehold_cuda_driver::{Device, Fault, Properties};
use leasehold_cuda_regions::{Need, Parting, Piece, Returned, Source, Supply};
use leasehold_plugin_api::BackingError;

/// A source that keeps nothing.
#[derive(Debug)]
pub(crate) struct Direct {
    device: Device,
    properties: Properties,
    unit: u64,
}

impl Direct {
    pub(crate) fn new(device: Device, properties: Properties, unit: u64) -> Self {
        Self { device, properties, unit }
    }

    fn make(&self, need: &Need, made: &mut Vec<Piece>) -> Result<(), Fault> {
        for _ in 0..need.units {
            made.push(Piece { handle: self.device.create(self.properties, self.unit)?, former: None });
        }
        Ok(())
    }
}

impl Source for Direct {
    fn parting(&self) -> Parting {
        Parting::BeforeUnmapping
    }

    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        let units = needs.iter().fold(0_u64, |sum, need| sum.saturating_add(need.units));
        let bytes = units.saturating_mul(self.unit);
        let refuse = |fault: Fault| {
            let advice = "free memory of the device, or lower the budget of its domain";
            fault.into_error(format!("no memory for {bytes} bytes"), advice).with_requested(bytes)
        };
        let _bound = self.device.bind().map_err(refuse)?;
        supply.owned_bytes = bytes;
        supply.parts = needs.iter().map(|_| Vec::new()).collect();
        let mut parts = needs.iter().zip(&mut supply.parts);
        parts.try_for_each(|(need, made)| self.make(need, made)).map_err(refuse)
    }

    fn restore(&self, supply: &mut Supply) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for part in &mut supply.parts {
            for Piece { handle, former } in std::mem::take(part) {
                if let Err((handle, fault)) = handle.close() {
                    part.push(Piece { handle, former });
                    outcome = Err(fault);
                }
            }
        }
        outcome
    }

    /// Nothing comes here: regions part with handles before they unmap. What did would go, or be counted.
    fn take_back(&self, returned: Vec<Returned>) -> u64 {
        let units = returned.into_iter().filter_map(|unit| unit.handle.close().ok()).count();
        u64::try_from(units).unwrap_or(u64::MAX).saturating_mul(self.unit)
    }

    fn newly_owned(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit)
    }
}
