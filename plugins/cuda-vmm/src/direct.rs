//! Handles that are made when they are needed and given back when they are not.

use leasehold_cuda_driver::Fault;
use leasehold_cuda_regions::{HandleFactory, HandleRelease, Need, Piece, Released, Returned, Source, Supply};
use leasehold_plugin_api::BackingError;

/// A source that keeps nothing.
#[derive(Debug)]
pub(crate) struct Direct(HandleFactory);

impl Direct {
    pub(crate) fn new(factory: HandleFactory) -> Self {
        Self(factory)
    }
}

impl Source for Direct {
    fn handle_release(&self) -> HandleRelease {
        HandleRelease::BeforeUnmapping
    }

    fn obtain(&self, needs: &[Need], supply: &mut Supply) -> Result<(), BackingError> {
        supply.parts = needs.iter().map(|_| Vec::new()).collect();
        supply.owned_bytes = self.0.missing_bytes(needs, &supply.parts);
        self.0.complete(needs, &mut supply.parts)
    }

    fn restore(&self, supply: &mut Supply) -> Result<(), Fault> {
        let parts = supply.parts.iter_mut().enumerate();
        let pieces = parts.flat_map(|(index, part)| part.drain(..).map(move |piece| (piece.handle, index)));
        let Released { kept, fault, .. } = self.0.release(pieces.collect::<Vec<_>>());
        for (handle, index) in kept {
            if let Some(part) = supply.parts.get_mut(index) {
                part.push(Piece { handle, former: None });
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Regions release handles before they unmap, so this gets none; any it got is released.
    fn take_back(&self, returned: Vec<Returned>) -> u64 {
        self.0.release(returned.into_iter().map(|granule| (granule.handle, ()))).bytes
    }

    fn newly_owned(&self, granules: u64) -> u64 {
        granules.saturating_mul(self.0.granule())
    }
}
