//! The backing: answers the contract from its regions and its pool.

use crate::books::Books;
use crate::options::CudaPoolOptions;
use crate::pool::Pool;
use leasehold_cuda_driver::ReadOnlySupport;
use leasehold_cuda_regions::DeviceMemory;
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, AuthorityId, Backing, BackingError, BackingFactory, Change,
    CommitRange, Description, DeviceKey, HostAccess, HostServices, Prefix, PrefixId, PrefixMapping, PrefixRequest,
    Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, Transfer, VirtualBacking,
};

/// Memory of one CUDA device from a pool of handles.
#[derive(Debug)]
pub struct CudaPool {
    memory: DeviceMemory,
    pool: Pool,
    authority: AuthorityId,
    /// Asked once: without it a sealed prefix could still be written.
    read_only: ReadOnlySupport,
}

impl BackingFactory for CudaPool {
    const NAME: &'static str = "cuda-pool";
    const SUMMARY: &'static str = "memory of a CUDA device from a pool of handles, one prefix in many regions";
    type Options = CudaPoolOptions;

    fn create(options: CudaPoolOptions, host: HostServices) -> Result<Self, BackingError> {
        let setting = options.device_options().resolve()?;
        let domain = DeviceKey::device(setting.device.ordinal()).domain();
        let authority = host.authority(domain)?;
        let read_only = setting.device.probe_read_only(setting.properties).map_err(|fault| {
            fault.into_error("the device does not tell whether it maps read-only", "free a granule of its memory")
        })?;
        let unit = setting.unit;
        let books = Books { host, domain };
        let pool = Pool::new(setting.device.clone(), setting.properties, unit, options.park_units(unit), books);
        let memory = DeviceMemory::new(setting, Box::new(pool.clone()));
        Ok(Self { memory, pool, authority, read_only })
    }
}

impl Backing for CudaPool {
    fn describe(&self) -> Description {
        let device = DeviceKey::device(self.memory.device().ordinal());
        Description::new(device, self.memory.device_name(), HostAccess::NONE)
            .with_total_bytes(self.memory.total_bytes())
    }

    fn accounting(&self) -> Accounting {
        Accounting::Backing { authority: self.authority }
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.memory.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.memory.release(target)
    }

    fn trim(&self, bytes: u64) -> Result<u64, BackingError> {
        self.pool.trim(bytes)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        (self.read_only == ReadOnlySupport::Enforced).then_some(self)
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        Some(self)
    }
}

impl VirtualBacking for CudaPool {
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

impl Transfer for CudaPool {
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

impl SharedMapping for CudaPool {
    fn create_prefix(&self, request: &PrefixRequest) -> Result<Prefix, BackingError> {
        self.memory.create_prefix(request)
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        self.memory.seal(prefix)
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        self.memory.incremental_owned_bytes(prefix)
    }

    fn map_prefix(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.memory.map_prefix(mappings, |id| self.memory.sealed_memory(id))
    }

    fn unmap(&self, mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        self.memory.unmap(mappings)
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        self.memory.release_prefix(prefix)
    }
}
