//! Capabilities that are discovered one by one, over a backing that writes down its calls.

use leasehold::{BufferSpec, Description, DeviceKey, Domain, ErrorKind, Host, Requirements};
use leasehold_plugin_api::{
    Address, AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Prefix, PrefixId, PrefixMapping,
    PrefixRequest, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, VirtualBacking,
};
use leasehold_tests::rig::{GIB, KIB, MIB};
use std::sync::{Arc, Mutex};

const GRANULE: u64 = 64 * KIB;

#[test]
fn virtual_backing_is_discovered_and_used_before_the_canonical_release() {
    let calls = Calls::default();
    let host = host_of(&calls, Offers { growing: true, sharing: false });
    let backing = host.find(&Requirements::growable()).unwrap();
    calls.take();
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(GRANULE).unwrap();
    drop(buffer);
    assert_eq!(calls.take(), ["reserve", "commit", "release region"], "and nothing was allocated");
}

#[test]
fn a_backing_without_virtual_backing_grows_no_buffer_and_is_not_called() {
    let calls = Calls::default();
    let host = host_of(&calls, Offers { growing: false, sharing: true });
    let backing = host.find(&Requirements::any()).unwrap();
    let error = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(calls.take(), [""; 0]);
}

#[test]
fn shared_mapping_is_discovered_independently_of_virtual_backing() {
    for (growing, sharing) in [(false, false), (false, true), (true, false), (true, true)] {
        let host = host_of(&Calls::default(), Offers { growing, sharing });
        let backing = host.find(&Requirements::any()).unwrap();
        assert_eq!(backing.capabilities().has_virtual_backing(), growing);
        assert_eq!(backing.capabilities().has_shared_mapping(), sharing);
        assert_eq!(host.find(&Requirements::any().shared_mapping()).is_ok(), sharing);
        assert_eq!(host.find(&Requirements::growable()).is_ok(), growing);
    }
}

/// The calls that a [`Recorder`] got, in their order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<&'static str>>>);

impl Calls {
    fn add(&self, call: &'static str) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Clone, Copy)]
struct Offers {
    growing: bool,
    sharing: bool,
}

fn host_of(calls: &Calls, offers: Offers) -> Host {
    let recorder = Recorder { calls: calls.clone(), offers };
    Host::builder()
        .limit(Domain::Device(0), GIB)
        .with_backing("recorder", move |_| Ok(Box::new(recorder)))
        .load()
        .unwrap()
}

/// Device memory that isn't there: it answers as asked, and writes down what it was asked.
struct Recorder {
    calls: Calls,
    offers: Offers,
}

impl Backing for Recorder {
    fn describe(&self) -> Description {
        Description::new(DeviceKey::device(0), "nothing").with_total_bytes(GIB)
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.calls.add("allocate");
        Ok(Allocation { id: request.id, base: Address::new(GIB), bytes: request.bytes })
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.calls.add(match target {
            ReleaseTarget::Region(_) => "release region",
            ReleaseTarget::Allocation(_) => "release allocation",
        });
        ReleaseOutcome::Complete
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.offers.growing.then_some(self)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        self.offers.sharing.then_some(self)
    }
}

impl Recorder {
    fn changed(&self, call: &'static str, ranges: &[CommitRange]) -> Change {
        self.calls.add(call);
        let bytes = ranges.iter().map(|range| range.bytes).sum();
        Change { mapped_bytes: bytes, owned_bytes: bytes }
    }
}

impl VirtualBacking for Recorder {
    fn granularity(&self) -> u64 {
        GRANULE
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.calls.add("reserve");
        Ok(Region { id: request.id, base: Address::new(GIB), bytes: request.bytes })
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        Ok(self.changed("commit", ranges))
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        Ok(self.changed("decommit", ranges))
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        Ok(self.changed("cost", ranges))
    }

    fn committed_bytes(&self, _region: RegionId) -> Result<u64, BackingError> {
        Err(BackingError::unsupported("committed_bytes"))
    }
}

impl SharedMapping for Recorder {
    fn create_prefix(&self, _request: &PrefixRequest) -> Result<Prefix, BackingError> {
        Err(BackingError::unsupported("create_prefix"))
    }

    fn seal(&self, prefix: PrefixId) -> Result<(), BackingError> {
        Err(BackingError::unknown_id(prefix))
    }

    fn incremental_owned_bytes(&self, prefix: PrefixId) -> Result<u64, BackingError> {
        Err(BackingError::unknown_id(prefix))
    }

    fn map_prefix(&self, _mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        Err(BackingError::unsupported("map_prefix"))
    }

    fn unmap(&self, _mappings: &[PrefixMapping]) -> Result<Change, BackingError> {
        Err(BackingError::unsupported("unmap"))
    }

    fn release_prefix(&self, prefix: PrefixId) -> ReleaseOutcome {
        ReleaseOutcome::Failed(BackingError::unknown_id(prefix))
    }
}
