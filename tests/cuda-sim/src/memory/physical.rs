//! Physical memory and its handles: CUDA Driver API, `cuMemCreate`, `cuMemRelease`, `cuMemRetainAllocationHandle`,
//! `cuMemGetAllocationGranularity`.

use super::Memory;
use crate::abi::{ALLOCATION_PINNED, AllocationProp, LOCATION_DEVICE};
use crate::codes::{Answer, Code};
use crate::settings::Settings;
use std::fs::File;

/// Which handle types there are: none, or a file descriptor.
const HANDLE_TYPES: u32 = 1;

/// One piece of physical memory.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) device: i32,
    pub(crate) bytes: u64,
    /// Where its bytes are in the store.
    pub(crate) begin: u64,
    pub(crate) granularity: u64,
    /// References that have to be released.
    pub(crate) references: u64,
    pub(crate) mappings: u64,
    /// What it takes of the process's files, where a setting says so.
    _descriptor: Option<File>,
}

/// Whether a property struct describes memory that there is, and its granularity: `cuMemGetAllocationGranularity`.
pub(crate) fn granularity(settings: &Settings, prop: &AllocationProp, option: u32) -> Answer<u64> {
    check(settings, prop)?;
    let minimum = if prop.gpu_direct_rdma == 0 { settings.granularity } else { settings.rdma_granularity };
    match option {
        0 => Ok(minimum),
        1 => Ok(settings.recommended.max(minimum)),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn check(settings: &Settings, prop: &AllocationProp) -> Answer<()> {
    if !settings.virtual_memory {
        return Err(Code::NOT_SUPPORTED);
    }
    let known = prop.kind == ALLOCATION_PINNED && prop.location.kind == LOCATION_DEVICE;
    let plain = prop.handle_types & !HANDLE_TYPES == 0 && prop.win32_meta_data == 0 && prop.reserved == [0; 4];
    if !known || !plain {
        return Err(Code::INVALID_VALUE);
    }
    if !(0..settings.devices).contains(&prop.location.id) {
        return Err(Code::INVALID_DEVICE);
    }
    Ok(())
}

impl Memory {
    /// `cuMemCreate`: the size is a multiple of the minimum granularity of the very property struct, flags are 0.
    pub(crate) fn create(&mut self, settings: &Settings, bytes: u64, prop: &AllocationProp, flags: u64) -> Answer<u64> {
        let granularity = granularity(settings, prop, 0)?;
        if bytes == 0 || !bytes.is_multiple_of(granularity) || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = prop.location.id;
        if bytes > self.free(settings, device) {
            return Err(Code::OUT_OF_MEMORY);
        }
        let descriptor = settings.has_descriptors.then(|| File::open("/dev/null").map_err(|_| Code::OUT_OF_MEMORY));
        let _descriptor = descriptor.transpose()?;
        let begin = self.store.take(bytes)?;
        let handle = self.number_of_handle(settings);
        self.charge(device, bytes);
        let physical = Physical { device, bytes, begin, granularity, references: 1, mappings: 0, _descriptor };
        self.physical.insert(handle, physical);
        Ok(handle)
    }

    /// Handles look like nothing else, so that an address given as a handle is told.
    fn number_of_handle(&mut self, settings: &Settings) -> u64 {
        let ended = self.handles_ended.pop().filter(|_| settings.has_handles_again);
        ended.unwrap_or_else(|| {
            self.handles_made += 1;
            (0xCAFE << 32) + self.handles_made
        })
    }

    /// The physical memory of a handle that has a reference. A dead handle is undefined: `cuMemMap`, `cuMemRelease`.
    pub(super) fn live_handle(&mut self, function: &str, handle: u64) -> Answer<&mut Physical> {
        if self.physical.get(&handle).is_none_or(|physical| physical.references == 0) {
            self.violation(format!("{function}: {handle:#x} is no live handle"));
            return Err(Code::INVALID_VALUE);
        }
        self.physical.get_mut(&handle).ok_or(Code::UNKNOWN)
    }

    /// `cuMemRelease`: ends one reference. The memory lives until its last mapping is gone as well.
    pub(crate) fn release(&mut self, handle: u64) -> Answer<()> {
        self.live_handle("cuMemRelease", handle)?.references -= 1;
        self.end_if_unused(handle);
        Ok(())
    }

    /// `cuMemRetainAllocationHandle`: one more reference to what is mapped at an address, anywhere within its mapping;
    /// the same handle, which needs a release of its own.
    pub(crate) fn retain_handle(&mut self, address: u64) -> Answer<u64> {
        let handle = self.mapping_at(address).ok_or(Code::INVALID_VALUE)?.handle;
        self.physical.get_mut(&handle).ok_or(Code::UNKNOWN)?.references += 1;
        Ok(handle)
    }

    /// Gives the memory back that neither a reference nor a mapping keeps.
    pub(super) fn end_if_unused(&mut self, handle: u64) {
        let unused = self.physical.get(&handle).is_some_and(|held| held.references == 0 && held.mappings == 0);
        if let Some(physical) = unused.then(|| self.physical.remove(&handle)).flatten() {
            self.handles_ended = vec![handle];
            self.refund(physical.device, physical.bytes);
            self.store.give_back(physical.begin, physical.bytes);
        }
    }
}
