//! The backing: answers the contract from its regions and its pool.

use crate::books::Books;
use crate::options::CudaPoolOptions;
use crate::pool::Pool;
use leasehold_cuda_regions::{DeviceRegions, HandleFactory};
use leasehold_plugin_api::{
    Accounting, AllocateRequest, Allocation, AuthorityId, Backing, BackingError, BackingFactory, Description,
    DeviceKey, HostServices, ReleaseOutcome, ReleaseTarget, SharedMapping, Transfer, VirtualBacking,
};

/// Memory of one CUDA device from a pool of handles.
#[derive(Debug)]
pub struct CudaPool {
    regions: DeviceRegions,
    pool: Pool,
    authority: AuthorityId,
}

impl BackingFactory for CudaPool {
    const NAME: &'static str = "cuda-pool";
    const SUMMARY: &'static str = "memory of a CUDA device from a pool of handles, one prefix in many regions";
    type Options = CudaPoolOptions;

    fn create(options: CudaPoolOptions, host: HostServices) -> Result<Self, BackingError> {
        let setting = options.device_options().resolve()?;
        let domain = DeviceKey::device(setting.device.ordinal()).domain();
        let authority = host.authority(domain)?;
        let park_granules = options.park_granules(setting.granule);
        let pool = Pool::new(HandleFactory::new(&setting), park_granules, Books { host, domain });
        let regions = DeviceRegions::new(setting, Box::new(pool.clone()), host);
        Ok(Self { regions, pool, authority })
    }
}

impl Backing for CudaPool {
    fn describe(&self) -> Description {
        let device = DeviceKey::device(self.regions.device().ordinal());
        // What is free is not asked: that takes a context, and a description stays what it was.
        Description::new(device, self.regions.device_name()).with_total_bytes(self.regions.total_bytes())
    }

    fn accounting(&self) -> Accounting {
        Accounting::Backing { authority: self.authority }
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.regions.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.regions.release(target)
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        self.pool.trim(bytes)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(&self.regions)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        Some(&self.regions)
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        Some(&self.regions)
    }
}
