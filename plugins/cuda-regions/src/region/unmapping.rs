//! Unmaps a run of granules: in one call, and where the driver refuses that, mapping by mapping.
//!
//! `cuMemUnmap` takes a range of many mappings, and nothing says that a call which fails did nothing. After one that stopped
//! half-way the same call fails for ever, since it wants every page mapped: so each mapping is then asked for by itself,
//! the last first, and what is gone is told from what is left.

use leasehold_cuda_driver::{Fault, Reservation};
use leasehold_plugin_api::ErrorKind;
use std::ops::Range;

/// A run that could not be unmapped as a whole.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// What the driver answered first.
    pub(crate) fault: Fault,
    /// The granules that are unmapped for all that, in order.
    pub(crate) gone: Vec<Range<u64>>,
    /// The granules that are mapped still, or may be, in order.
    pub(crate) left: Vec<Range<u64>>,
    /// The first of those that nobody can tell of, and what the driver answered when it was asked.
    pub(crate) unsure: Option<(u64, Fault)>,
}

impl Stuck {
    /// All of the run is mapped still.
    pub(super) fn whole(fault: Fault, run: &Range<u64>) -> Self {
        Self { fault, gone: Vec::new(), left: vec![run.clone()], unsure: None }
    }
}

/// Unmaps a run in which every granule is a mapping for itself. The first that the driver keeps ends it, from the run's end
/// on, so that what stays is its front; but what is gone already in front of that is found.
pub(super) fn unmap(space: &Reservation, granule: u64, run: &Range<u64>) -> Result<(), Stuck> {
    let granules = run.end.saturating_sub(run.start);
    let unmap =
        |start: u64, granules: u64| space.unmap(start.saturating_mul(granule), granules.saturating_mul(granule));
    let Err(fault) = unmap(run.start, granules) else { return Ok(()) };
    if fault.kind() == ErrorKind::DeviceLost {
        // It answers the same to everything.
        return Err(Stuck::whole(fault, run));
    }
    let (mut gone, mut left, mut unsure) = (Vec::new(), Vec::new(), None);
    // A run of one was asked for by itself just now.
    let mut refused = (granules == 1).then_some(fault);
    for index in run.clone().rev() {
        if refused.is_none() {
            refused = unmap(index, 1).err();
            if refused.is_none() {
                gone.push(index);
                continue;
            }
        }
        match is_gone(space, index.saturating_mul(granule), || unmap(index, 1)) {
            Ok(true) => gone.push(index),
            told => {
                left.push(index);
                unsure = told.err().map(|fault| (index, fault)).or(unsure);
            }
        }
        // What is gone already is no reason to stop.
        refused = refused.filter(|_| !left.is_empty());
    }
    // That not all of the run was mapped says nothing of why some of it still is.
    let fault =
        if fault.is_invalid_value() { unsure.map(|(_, fault)| fault).or(refused).unwrap_or(fault) } else { fault };
    if left.is_empty() { Ok(()) } else { Err(Stuck { fault, gone: runs(gone), left: runs(left), unsure }) }
}

/// Whether nothing is mapped at an offset any more, by the two calls that show it: the driver reports that nothing is mapped
/// there, and refuses the address where that is to be unmapped. Only that call's own refusal counts: where the context could
/// not be made current it was not even made.
fn is_gone(space: &Reservation, offset: u64, unmap: impl FnOnce() -> Result<(), Fault>) -> Result<bool, Fault> {
    if space.is_mapped(offset)? {
        return Ok(false);
    }
    match unmap() {
        Err(fault) if fault.call != "cuMemUnmap" || !fault.is_invalid_value() => Err(fault),
        _ => Ok(true),
    }
}

/// The runs of granules that are named from the last to the first.
fn runs(granules: Vec<u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for granule in granules.into_iter().rev() {
        match runs.last_mut() {
            Some(last) if last.end == granule => last.end = granule.saturating_add(1),
            _ => runs.push(granule..granule.saturating_add(1)),
        }
    }
    runs
}
