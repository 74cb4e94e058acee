//! Handles that are made when they are needed and given back when they are not.

use leasehold_cuda_driver::Fault;
use leasehold_cuda_regions::{Maker, Need, Parting, Piece, Returned, Source, Supply};
use leasehold_plugin_api::BackingError;

/// A source that keeps nothing.
#[derive(Debug)]
pub(crate) struct Direct(Maker);

impl Direct {
    pub(crate) fn new(maker: Maker) -> Self {
        Self(maker)
    }
}

impl Source for Direct {
    fn parting(&self) -> Parting {
        Parting::BeforeUnmapping
    }

    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        supply.parts = needs.iter().map(|_| Vec::new()).collect();
        supply.owned_bytes = self.0.missing_bytes(needs, &supply.parts);
        self.0.complete(needs, &mut supply.parts)
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
        u64::try_from(units).unwrap_or(u64::MAX).saturating_mul(self.0.unit())
    }

    fn newly_owned(&self, units: u64) -> u64 {
        units.saturating_mul(self.0.unit())
    }
}
