//! Which physical memory is seen where, and by which device: CUDA Driver API, `cuMemMap`, `cuMemUnmap`,
//! `cuMemSetAccess`, `cuMemGetAccess`, `cuPointerGetAttribute`.

use super::Memory;
use crate::abi::{ACCESS_NONE, ACCESS_READ, ACCESS_READ_WRITE, AccessDesc, LOCATION_DEVICE, MemLocation};
use crate::codes::{Answer, Code};
use crate::settings::Settings;
use std::collections::BTreeMap;

/// One range of addresses that shows physical memory, from its beginning.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) bytes: u64,
    pub(crate) handle: u64,
    /// The devices that may reach it, and how. Nobody at first, its owner neither.
    pub(crate) access: BTreeMap<i32, u32>,
}

impl Memory {
    /// `cuMemMap`: the offset is 0; address and size are multiples of the granularity; no more than the handle has;
    /// only over addresses of one reservation where nothing is mapped; flags are 0. Nobody has access yet.
    pub(crate) fn map(&mut self, base: u64, bytes: u64, offset: u64, handle: u64, flags: u64) -> Answer<()> {
        let physical = self.live_handle("cuMemMap", handle)?;
        let granularity = physical.granularity;
        let whole = bytes > 0 && bytes.is_multiple_of(granularity) && base.is_multiple_of(granularity);
        if !whole || bytes > physical.bytes || offset != 0 || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if !self.is_reserved(base, bytes) || self.is_touched(base, bytes) {
            return Err(Code::INVALID_VALUE);
        }
        self.mappings.insert(base, Mapping { bytes, handle, access: BTreeMap::new() });
        self.live_handle("cuMemMap", handle)?.mappings += 1;
        Ok(())
    }

    /// `cuMemUnmap`: one mapping or several that touch, each as a whole, every page of the range mapped.
    pub(crate) fn unmap(&mut self, base: u64, bytes: u64) -> Answer<()> {
        for begin in self.acted_on(self.whole_mappings(base, bytes)?) {
            if let Some(mapping) = self.mappings.remove(&begin) {
                if let Some(physical) = self.physical.get_mut(&mapping.handle) {
                    physical.mappings -= 1;
                }
                self.end_if_unused(mapping.handle);
            }
        }
        Ok(())
    }

    /// `cuMemSetAccess`: over whole mappings, every page mapped; for the devices that are named, each apart. A device
    /// that can't reach the memory of the owner is refused.
    pub(crate) fn set_access(
        &mut self,
        settings: &Settings,
        base: u64,
        bytes: u64,
        descriptions: &[AccessDesc],
    ) -> Answer<()> {
        let begins = self.whole_mappings(base, bytes)?;
        if descriptions.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        for description in descriptions {
            self.check_access(settings, &begins, description)?;
        }
        for begin in self.acted_on(begins) {
            if let Some(mapping) = self.mappings.get_mut(&begin) {
                mapping.access.extend(descriptions.iter().map(|each| (each.location.id, each.flags)));
            }
        }
        Ok(())
    }

    fn check_access(&self, settings: &Settings, begins: &[u64], description: &AccessDesc) -> Answer<()> {
        let AccessDesc { location, flags } = *description;
        if location.kind != LOCATION_DEVICE || ![ACCESS_NONE, ACCESS_READ, ACCESS_READ_WRITE].contains(&flags) {
            return Err(Code::INVALID_VALUE);
        }
        if !(0..settings.devices).contains(&location.id) {
            return Err(Code::INVALID_DEVICE);
        }
        if flags == ACCESS_READ && !settings.read_only {
            return Err(Code::NOT_SUPPORTED);
        }
        let owners = begins.iter().filter_map(|begin| self.owner(self.mappings.get(begin)?));
        let reachable = owners.into_iter().all(|owner| settings.can_reach(location.id, owner));
        if reachable { Ok(()) } else { Err(Code::INVALID_DEVICE) }
    }

    /// `cuPointerGetAttribute`, `CU_POINTER_ATTRIBUTE_MAPPED`: whether an address is in a range that is mapped. Whether one
    /// that is only reserved is refused isn't clear: a setting says.
    pub(crate) fn is_mapped(&self, settings: &Settings, address: u64) -> Answer<bool> {
        let is_mapped = self.mapping_at(address).is_some();
        let is_refused = !is_mapped && (settings.refuses_unmapped || !self.is_reserved(address, 1));
        if is_refused { Err(Code::INVALID_VALUE) } else { Ok(is_mapped) }
    }

    /// `cuMemGetAccess`: what a device may do at an address. Where nothing is mapped no documentation says what it reports.
    pub(crate) fn access(&self, settings: &Settings, location: MemLocation, address: u64) -> Answer<u64> {
        if location.kind != LOCATION_DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        if !(0..settings.devices).contains(&location.id) {
            return Err(Code::INVALID_DEVICE);
        }
        let Some(mapping) = self.mapping_at(address) else {
            return if settings.has_access_everywhere { Ok(ACCESS_NONE.into()) } else { Err(Code::INVALID_VALUE) };
        };
        Ok(u64::from(mapping.access.get(&location.id).copied().unwrap_or(ACCESS_NONE)))
    }

    fn owner(&self, mapping: &Mapping) -> Option<i32> {
        self.physical.get(&mapping.handle).map(|physical| physical.device)
    }

    /// The mapping that an address lies in.
    pub(super) fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let (begin, mapping) = self.mappings.range(..=address).next_back()?;
        (address - begin < mapping.bytes).then_some(mapping)
    }

    /// Whether anything is mapped in a range.
    fn is_touched(&self, base: u64, bytes: u64) -> bool {
        self.mapping_at(base).is_some() || self.mappings.range(base..base + bytes).next().is_some()
    }

    /// Those of the mappings of a call that it gets to: all, unless it is to fail half-way.
    fn acted_on(&self, mut begins: Vec<u64>) -> Vec<u64> {
        if self.halves {
            begins.truncate(begins.len() / 2);
        }
        begins
    }

    /// Where the mappings begin that make up a range exactly, within one reservation.
    fn whole_mappings(&self, base: u64, bytes: u64) -> Answer<Vec<u64>> {
        if bytes == 0 || !self.is_reserved(base, bytes) {
            return Err(Code::INVALID_VALUE);
        }
        let mut begins = Vec::new();
        let mut at = base;
        while at < base + bytes {
            let mapping = self.mappings.get(&at).ok_or(Code::INVALID_VALUE)?;
            begins.push(at);
            at += mapping.bytes;
        }
        if at == base + bytes { Ok(begins) } else { Err(Code::INVALID_VALUE) }
    }
}
