//! What safe code can't obtain: slices of memory that no type claims, by another's description or by a second handle.
//!
//! Nothing here could be written with `unsafe`, so that any undefined behaviour would be the library's.
#![forbid(unsafe_code)]

use leasehold::contract::{
    self, AllocateRequest, Backing, BackingError, BackingFactory as _, CommitRange, CpuAccess, HostServices, RegionId,
    ReleaseOutcome, ReleaseTarget, SharedMapping, VirtualBacking,
};
use leasehold::{Address, AllocationSpec, BufferSpec, Description, Domain, Error, ErrorKind};
use leasehold::{Host, HostBuilder, PrefixSpec, Requirements};
use leasehold_host_mmap::{HostMmap, HostMmapOptions};
use leasehold_host_pool::{HostPool, HostPoolOptions};
use leasehold_tests::plugins::{Registry, doors};
use std::sync::{Arc, OnceLock};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

fn builder() -> HostBuilder {
    Host::builder().limit(Domain::Host, 64 * MIB)
}

fn host_with<B: Backing + 'static>(create: impl FnOnce(HostServices) -> Result<B, BackingError> + 'static) -> Host {
    let boxed = |services| -> Result<Box<dyn Backing>, BackingError> { Ok(Box::new(create(services)?)) };
    builder().with_backing("subject", boxed).load().unwrap()
}

/// The words of a refusal: whose memory it is, why there is no slice, and what to do.
fn assert_no_slice(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let words = "backing \"subject\": no slice: its type does not claim that the CPU can touch its memory; pass the address \
                 to the device, choose a host-accessible backing, or claim it (contract::HostAccess) where the backing is yours";
    assert_eq!(error.to_string(), words);
}

/// The same of a copy.
fn assert_not_copied(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let words = "backing \"subject\": not copied: it implements no Transfer, and its type does not claim that the CPU can \
                 touch its memory; find a backing that copies (Requirements::copies), or claim it (contract::HostAccess) \
                 where the backing is yours";
    assert_eq!(error.to_string(), words);
}

/// Copies host-mmap's description and returns an address it does not own.
struct Impostor {
    model: HostMmap,
    address: u64,
}

impl Backing for Impostor {
    fn describe(&self) -> Description {
        self.model.describe()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<contract::Allocation, BackingError> {
        Ok(contract::Allocation { id: request.id, base: Address::new(self.address), bytes: request.bytes })
    }

    fn release(&self, _target: ReleaseTarget) -> ReleaseOutcome {
        ReleaseOutcome::Complete
    }
}

#[test]
fn a_backing_that_forwards_a_description_gets_no_slices() {
    let victim = Box::new(0x1111_1111_1111_1111_u64);
    let address = Address::from_pointer((&raw const *victim).cast_mut()).get();
    let host = host_with(move |_| Ok(Impostor { model: HostMmap::new(&HostMmapOptions::default())?, address }));
    let backing = host.backing("subject").unwrap();
    let mut allocation = host.allocate(&backing, &AllocationSpec::new(8)).unwrap();
    assert_eq!(allocation.base().get(), address);
    assert_no_slice(&allocation.as_slice().unwrap_err());
    assert_no_slice(&allocation.as_mut_slice().unwrap_err());
    assert_not_copied(&allocation.read(0, &mut [0; 8]).unwrap_err());
    assert_not_copied(&allocation.write(0, &[0x22; 8]).unwrap_err());
    assert_not_copied(&allocation.fill(0, 8, 0x22).unwrap_err());
    assert_eq!(*victim, 0x1111_1111_1111_1111);
}

/// A wrapper over a backing that others hold as well.
struct Shared<B>(Arc<B>);

impl<B: Backing> Backing for Shared<B> {
    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn accounting(&self) -> contract::Accounting {
        self.0.accounting()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<contract::Allocation, BackingError> {
        self.0.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.0.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.0.as_virtual_backing()
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        self.0.as_shared_mapping()
    }
}

#[test]
fn a_wrapper_with_a_second_handle_gets_no_slices() {
    let second = Arc::new(HostMmap::new(&HostMmapOptions::default()).unwrap());
    let first = Arc::clone(&second);
    let host = host_with(move |_| Ok(Shared(first)));
    let backing = host.backing("subject").unwrap();
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(PAGE).unwrap();
    assert_no_slice(&buffer.as_slice().unwrap_err());
    assert_no_slice(&buffer.as_mut_slice().unwrap_err());
    assert_not_copied(&buffer.write(0, &[1]).unwrap_err());
    // The second handle does decommit what the host committed: a slice would point at nothing from here on.
    let took = (1..1000).any(|id| second.decommit(&[CommitRange::new(RegionId::new(id), 0, PAGE)]).is_ok());
    assert!(took, "the region is the buffer's");
    assert_no_slice(&buffer.as_mut_slice().unwrap_err());
}

#[test]
fn a_second_handle_gets_no_slices_of_prefixes() {
    let handle: Arc<OnceLock<Arc<HostPool>>> = Arc::default();
    let kept = Arc::clone(&handle);
    let host = host_with(move |services| {
        let pool = Arc::new(HostPool::create(HostPoolOptions::default(), services)?);
        Ok(Shared(Arc::clone(kept.get_or_init(|| pool))))
    });
    let backing = host.backing("subject").unwrap();
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(2 * MIB)).unwrap();
    assert_no_slice(&prefix.plane(0).unwrap_err());
    assert_no_slice(&prefix.plane_mut(0).unwrap_err());
    assert_not_copied(&prefix.write(0, 0, &[1]).unwrap_err());
    let shared = prefix.seal().unwrap();
    assert_no_slice(&shared.plane(0).unwrap_err());
    assert!(handle.get().is_some());
}

#[test]
fn a_backing_without_a_claim_is_not_found_for_slices() {
    let shared = Arc::new(HostMmap::new(&HostMmapOptions::default()).unwrap());
    let host = host_with(move |_| Ok(Shared(shared)));
    let error = host.find(&Requirements::growable().host_access()).unwrap_err();
    assert!(error.to_string().contains("subject offers no access by the CPU"), "{error}");
    assert_eq!(host.find(&Requirements::growable()).unwrap().capabilities().host_access(), CpuAccess::None);
}

#[test]
fn a_backing_that_is_moved_into_the_host_has_slices() {
    let mmap = |services| HostMmap::create(HostMmapOptions::default(), services);
    let pool = |services| HostPool::create(HostPoolOptions::default(), services);
    let host = builder()
        .with_accessible_backing("mmap", HostMmap::HOST_ACCESS, mmap)
        .with_accessible_backing("pool", HostPool::HOST_ACCESS, pool)
        .load()
        .unwrap();
    for name in ["mmap", "pool"] {
        let mut buffer = host.buffer(&host.backing(name).unwrap(), &BufferSpec::new(8 * MIB)).unwrap();
        buffer.grow_to(PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(7);
        assert_eq!(buffer.as_slice().unwrap()[4095], 7, "{name}");
    }
}

#[test]
fn a_claim_arrives_through_either_door() {
    for (name, library, access) in [
        ("host-mmap", "leasehold_host_mmap", CpuAccess::DirectAndCopiedByFork),
        ("host-pool", "leasehold_host_pool", CpuAccess::Direct),
    ] {
        for (door, library) in doors(library) {
            let registry = Registry::new().backing(name, &library, "required = true");
            let backing = registry.host().backing(name).unwrap();
            assert_eq!(backing.capabilities().host_access(), access, "{name}, {door:?}");
        }
    }
}
