//! Whether a device can be given memory to read alone: asked by doing it, since no attribute tells.

use crate::code;
use crate::device::Device;
use crate::error::Fault;
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
    /// Maps as little memory of these properties as there can be, lets the devices of these ordinals write it and then only
    /// read it, looks what the driver made of that, and undoes it all. It needs that memory free, and writes nothing.
    ///
    /// # Errors
    ///
    /// What the driver answers, other than that it can't set such access. Whatever comes, the memory is given back as
    /// far as the driver takes it.
    pub fn probe_read_only(&self, properties: Properties, ordinals: &[u32]) -> Result<ReadOnlySupport, Fault> {
        let bytes = self.granularity(properties)?.minimum;
        let _bound = self.bind()?;
        let memory = self.create(properties, bytes)?;
        let space = self.reserve(bytes, bytes)?;
        space.map(0, &memory)?;
        let support = read_only_access(&space, ordinals);
        // Nothing retries this later, so try a second time here.
        let undone = space.unmap(0, bytes).or_else(|_| space.unmap(0, bytes)).and_then(|()| close(space, memory));
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
