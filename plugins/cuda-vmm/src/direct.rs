//! Handles that are made when they are needed and given back when they are not.

use leasehold_cuda_driver::Fault;
use leasehold_cuda_regions::{Maker, Need, Parting, Piece, Returned, Source, Supply, Unmade};
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
        let parts = supply.parts.iter_mut().enumerate();
        let pieces = parts.flat_map(|(index, part)| part.drain(..).map(move |piece| (piece.handle, index)));
        let Unmade { kept, fault, .. } = self.0.unmake(pieces.collect::<Vec<_>>());
        for (handle, index) in kept {
            if let Some(part) = supply.parts.get_mut(index) {
                part.push(Piece { handle, former: None });
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Nothing comes here: regions part with handles before they unmap. What did would go, or be counted.
    fn take_back(&self, returned: Vec<Returned>) -> u64 {
        self.0.unmake(returned.into_iter().map(|granule| (granule.handle, ()))).bytes
    }

    fn newly_owned(&self, granules: u64) -> u64 {
        granules.saturating_mul(self.0.granule())
    }
}
