//! The backing: answers the contract from its regions.

use crate::direct::Direct;
use leasehold_cuda_regions::{DeviceOptions, DeviceRegions, HandleFactory};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, BackingFactory, Description, DeviceKey, HostServices,
    ReleaseOutcome, ReleaseTarget, Transfer, VirtualBacking,
};

/// Memory of one CUDA device, mapped as it is committed.
#[derive(Debug)]
pub struct CudaVmm {
    regions: DeviceRegions,
}

impl BackingFactory for CudaVmm {
    const NAME: &'static str = "cuda-vmm";
    const SUMMARY: &'static str = "memory of a CUDA device that grows in place, by virtual memory management";
    type Options = DeviceOptions;

    fn create(options: DeviceOptions, host: HostServices) -> Result<Self, BackingError> {
        let setting = options.resolve()?;
        let source = Direct::new(HandleFactory::new(&setting));
        Ok(Self { regions: DeviceRegions::new(setting, Box::new(source), host) })
    }
}

impl Backing for CudaVmm {
    fn describe(&self) -> Description {
        let device = DeviceKey::device(self.regions.device().ordinal());
        // What is free is not asked: that takes a context, and a description stays what it was.
        Description::new(device, self.regions.device_name()).with_total_bytes(self.regions.total_bytes())
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.regions.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.regions.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(&self.regions)
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        Some(&self.regions)
    }
}
