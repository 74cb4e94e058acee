//! Whether a device can be given memory to read alone: asked by doing it, since no attribute tells.

use crate::device::Device;
use crate::error::{Fault, code};
use crate::physical::PhysicalHandle;
use crate::properties::{Access, Grant, Properties};
use crate::reservation::Reservation;

/// Whether mappings can be read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlySupport {
    /// Access can be set to reading, and reads back so.
    Enforced,
    /// The driver refuses, or grants more than was asked for: sealed memory could still be written.
    Missing,
}

impl Device {
    /// Maps one granule of memory of these properties, lets the devices of these ordinals write it and then only read it,
    /// looks what the driver made of that, and undoes it all. It needs that granule free, and writes nothing.
    ///
    /// # Errors
    ///
    /// What the driver answers, other than that it can't set such access. Whatever comes, the granule is given back as
    /// far as the driver takes it.
    pub fn probe_read_only(&self, properties: Properties, ordinals: &[u32]) -> Result<ReadOnlySupport, Fault> {
        let granule = self.granularity(properties)?.minimum;
        let _bound = self.bind()?;
        let memory = self.create(properties, granule)?;
        let space = self.reserve(granule, granule)?;
        space.map(0, &memory)?;
        let support = read_only_access(&space, ordinals);
        // Nobody comes back to it: once more, then, where it fails.
        let undone = space.unmap(0, granule).or_else(|_| space.unmap(0, granule)).and_then(|()| close(space, memory));
        support.and_then(|support| undone.map(|()| support))
    }
}

fn read_only_access(space: &Reservation, ordinals: &[u32]) -> Result<ReadOnlySupport, Fault> {
    let grants = |access| ordinals.iter().map(|ordinal| Grant { ordinal: *ordinal, access }).collect::<Vec<_>>();
    space.set_access(0, space.bytes(), &grants(Access::ReadWrite))?;
    match space.set_access(0, space.bytes(), &grants(Access::ReadOnly)) {
        Ok(()) => {}
        Err(fault) if [code::INVALID_VALUE, code::NOT_SUPPORTED].contains(&fault.code) => {
            return Ok(ReadOnlySupport::Missing);
        }
        Err(fault) => return Err(fault),
    }
    for ordinal in ordinals {
        if space.access(0, *ordinal)? != Some(Access::ReadOnly) {
            return Ok(ReadOnlySupport::Missing);
        }
    }
    Ok(ReadOnlySupport::Enforced)
}

fn close(space: Reservation, memory: PhysicalHandle) -> Result<(), Fault> {
    let freed = space.close().map_err(|(_, fault)| fault);
    let released = memory.close().map_err(|(_, fault)| fault);
    freed.and(released)
}
