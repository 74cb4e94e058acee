//! Memory that the CPU cannot touch.

use leasehold::{AllocationSpec, BufferSpec, Domain, ErrorKind, Host};
use leasehold_host_mmap::HostMmap;
use leasehold_plugin_api::{
    self as api, AllocateRequest, Backing, BackingError, Description, ReleaseOutcome, ReleaseTarget, VirtualBacking,
};
use leasehold_tests::fault::host_mmap;
use leasehold_tests::rig::{LIMIT, MIB};

#[test]
fn memory_that_the_cpu_can_not_touch_is_no_slice() {
    let create = |services| -> Result<Box<dyn Backing>, BackingError> { Ok(Box::new(Far(host_mmap(services)?))) };
    let host = Host::builder().limit(Domain::Host, LIMIT).with_backing("far", create).load().unwrap();
    let backing = host.backing("far").unwrap();
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(MIB).unwrap();
    let mut allocation = host.allocate(&backing, &AllocationSpec::new(MIB)).unwrap();
    let refusals = [
        buffer.as_slice().unwrap_err(),
        buffer.as_mut_slice().unwrap_err(),
        allocation.as_slice().unwrap_err(),
        allocation.as_mut_slice().unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

/// host-mmap of whose memory nothing is claimed.
struct Far(HostMmap);

impl Backing for Far {
    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<api::Allocation, BackingError> {
        self.0.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.0.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.0.as_virtual_backing()
    }
}
