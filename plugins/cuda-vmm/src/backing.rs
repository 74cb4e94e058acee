//! The backing: answers the contract from its regions.

use crate::direct::Direct;
use crate::options::CudaVmmOptions;
use leasehold_cuda_regions::DeviceMemory;
use leasehold_plugin_api::{
    Address, AllocateRequest, Allocation, Backing, BackingError, BackingFactory, Change, CommitRange, Description,
    DeviceKey, HostAccess, HostServices, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, Transfer,
    VirtualBacking,
};

/// Memory of one CUDA device, mapped as it is committed.
#[derive(Debug)]
pub struct CudaVmm {
    memory: DeviceMemory,
}

impl BackingFactory for CudaVmm {
    const NAME: &'static str = "cuda-vmm";
    const SUMMARY: &'static str = "memory of a CUDA device that grows in place, by virtual memory management";
    type Options = CudaVmmOptions;

    fn create(options: CudaVmmOptions, _host: HostServices) -> Result<Self, BackingError> {
        let setting = options.device_options().resolve()?;
        let source = Direct::new(setting.device.clone(), setting.properties, setting.unit);
        Ok(Self { memory: DeviceMemory::new(setting, Box::new(source)) })
    }
}

impl Backing for CudaVmm {
    fn describe(&self) -> Description {
        let device = DeviceKey::device(self.memory.device().ordinal());
        Description::new(device, self.memory.device_name(), HostAccess::NONE)
            .with_total_bytes(self.memory.total_bytes())
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.memory.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.memory.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        Some(self)
    }
}

impl VirtualBacking for CudaVmm {
    fn granularity(&self) -> u64 {
        self.memory.unit()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.memory.reserve(request)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.memory.commit(ranges)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.memory.decommit(ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.memory.cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.memory.committed_bytes(region)
    }
}

impl Transfer for CudaVmm {
    fn read(&self, from: Address, into: &mut [u8]) -> Result<(), BackingError> {
        self.memory.read(from, into)
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), BackingError> {
        self.memory.write(to, bytes)
    }

    fn fill(&self, to: Address, bytes: u64, value: u8) -> Result<(), BackingError> {
        self.memory.fill(to, bytes, value)
    }
}
