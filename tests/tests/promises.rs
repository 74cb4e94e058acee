//! What an engine is promised, over the built-in backing, the same one loaded from its library, and one that charges by
//! itself; over host-pool and the CUDA backings too.

use leasehold::{
    Accounting, AuthorityId, Buffer, BufferSpec, Description, DeviceKey, Domain, ErrorKind, Host, HostAccess,
    Requirements,
};
use leasehold_plugin_api::{
    Address, AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Prefix, PrefixId, PrefixMapping,
    PrefixRequest, Region, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, SharedMapping, VirtualBacking,
};
use leasehold_tests::contents::{Contents, ContentsMut};
use leasehold_tests::fault::{Books, Call, Faults};
use leasehold_tests::is_all;
use leasehold_tests::rig::{GIB, KIB, LIMIT, MIB, TestRig, all_rigs};
use std::sync::{Arc, Mutex};

/// Bytes of a buffer that can be read and written.
fn open_bytes(rig: &TestRig, buffer: &Buffer) -> u64 {
    rig.open_bytes(buffer.base(), buffer.capacity())
}

/// Bytes of a buffer that have memory behind them.
fn resident_bytes(rig: &TestRig, buffer: &Buffer) -> u64 {
    rig.resident_bytes(buffer.base(), buffer.capacity())
}

#[test]
fn the_address_does_not_change_as_the_buffer_grows() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * MIB)).unwrap();
        let base = buffer.base();
        for len in [1, 4096, 4097, MIB, 7 * MIB + 3, 64 * MIB] {
            buffer.grow_to(len).unwrap();
            assert_eq!((buffer.base(), buffer.len()), (base, len), "{}", rig.name);
            if rig.is_of_the_host() {
                assert_eq!(Address::from_pointer(buffer.as_mut_slice().unwrap().as_mut_ptr()), base, "{}", rig.name);
            }
        }
    }
}

#[test]
fn reserving_address_space_leases_nothing() {
    for rig in all_rigs() {
        let buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * GIB)).unwrap();
        assert_eq!((rig.used(), buffer.committed(), buffer.capacity()), (0, 0, 64 * GIB), "{}", rig.name);
        assert!(rig.is_taken_whole(buffer.base(), buffer.capacity()), "{}", rig.name);
        assert_eq!(open_bytes(&rig, &buffer), 0, "{}", rig.name);
    }
}

#[test]
fn growth_leases_exactly_what_it_commits() {
    for rig in all_rigs() {
        let granule = rig.granule;
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        for (len, granules) in [(1, 1), (2, 1), (granule, 1), (granule + 1, 2), (2 * granule, 2), (9 * granule - 1, 9)]
        {
            buffer.grow_to(len).unwrap();
            assert_eq!((rig.used(), buffer.committed()), (granules * granule, granules * granule), "{}", rig.name);
            assert_eq!(open_bytes(&rig, &buffer), granules * granule, "{}", rig.name);
        }
    }
}

#[test]
fn contents_survive_growth() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(16 * MIB)).unwrap();
        let mut written = 0;
        for (mark, len) in [(1_u8, 10), (2, 5000), (3, MIB), (4, 16 * MIB)] {
            buffer.grow_to(len).unwrap();
            assert!(is_all(&buffer.seen(0)[written..], 0), "{}: new bytes read as zero", rig.name);
            buffer.paint(0, u64::try_from(written).unwrap(), mark);
            written = usize::try_from(len).unwrap();
        }
        let bytes = buffer.seen(0);
        assert!(is_all(&bytes[..10], 1), "{}", rig.name);
        assert!(is_all(&bytes[10..5000], 2), "{}", rig.name);
        assert!(is_all(&bytes[5000..1 << 20], 3), "{}", rig.name);
        assert!(is_all(&bytes[1 << 20..], 4), "{}", rig.name);
    }
}

#[test]
fn shrinking_returns_committed_pages() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        buffer.grow_to(4 * MIB).unwrap();
        buffer.paint(0, 0, 7);
        assert_eq!(resident_bytes(&rig, &buffer), 4 * MIB, "{}", rig.name);
        buffer.shrink_to(MIB).unwrap();
        assert_eq!(resident_bytes(&rig, &buffer), MIB, "{}", rig.name);
        assert_eq!(open_bytes(&rig, &buffer), MIB, "{}", rig.name);
        assert_eq!((rig.used(), buffer.committed(), buffer.len()), (MIB, MIB, MIB), "{}", rig.name);
    }
}

#[test]
fn a_shrink_within_a_granule_keeps_the_page() {
    for rig in all_rigs() {
        let granule = rig.granule;
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(2 * granule).unwrap();
        buffer.paint(0, 0, 9);
        buffer.shrink_to(granule + 1).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), rig.used()), (granule + 1, 2 * granule, 2 * granule));
        assert_eq!(resident_bytes(&rig, &buffer), 2 * granule, "{}", rig.name);
        assert!(is_all(&buffer.seen(0), 9), "{}", rig.name);
    }
}

#[test]
fn growing_past_the_reservation_is_refused_and_names_the_capacity() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(64 * KIB)).unwrap();
        buffer.grow_to(100).unwrap();
        let error = buffer.grow_to(64 * KIB + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CapacityExceeded, "{}: {error}", rig.name);
        assert!(error.to_string().contains("asks 65537 bytes, the capacity is 65536"), "{}: {error}", rig.name);
        assert_eq!((buffer.len(), rig.used()), (100, rig.granule), "{}", rig.name);
        buffer.grow_to(64 * KIB).unwrap();
    }
}

#[test]
fn a_refused_lease_leaves_the_buffer_untouched() {
    for rig in all_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(2 * LIMIT)).unwrap();
        buffer.grow_to(5000).unwrap();
        buffer.paint(0, 0, 3);
        let seen = |buffer: &Buffer| (buffer.len(), buffer.committed(), rig.used(), open_bytes(&rig, buffer));
        let before = seen(&buffer);
        let error = buffer.grow_to(LIMIT + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{}: {error}", rig.name);
        assert!(error.is_exhausted(), "{}", rig.name);
        assert_eq!(seen(&buffer), before, "{}", rig.name);
        assert!(is_all(&buffer.seen(0), 3), "{}", rig.name);
        buffer.grow_to(MIB).unwrap();
        assert_eq!(rig.used(), MIB, "{}: what fits is granted after a refusal", rig.name);
    }
}

#[test]
fn dropping_the_buffer_returns_its_budget() {
    for rig in all_rigs() {
        // Larger than all that other tests reserve meanwhile, so that they can't take all of it again.
        let spec = BufferSpec::new(512 * GIB);
        let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
        buffer.grow_to(MIB).unwrap();
        buffer.paint(0, 0, 1);
        let (base, capacity) = (buffer.base(), buffer.capacity());
        assert_eq!(rig.used(), MIB, "{}", rig.name);
        drop(buffer);
        assert_eq!(rig.used(), 0, "{}", rig.name);
        assert!(!rig.is_taken_whole(base, capacity), "{}: the addresses are given back", rig.name);
    }
}

#[test]
fn backing_accounting_with_the_same_authority_is_not_charged_twice() {
    let faults = Faults::new();
    let host = faults.host_with(MIB, Books::OfItsHost).unwrap();
    let backing = host.backing("faulty").unwrap();
    let books = host.governor().authority(Domain::Host).unwrap();
    assert_eq!(backing.accounting(), Accounting::Backing { authority: books });
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    buffer.grow_to(MIB).expect("the budget holds it once, not twice");
    assert_eq!(used(), MIB);
    buffer.shrink_to(MIB / 2).unwrap();
    assert_eq!(used(), MIB / 2);
    drop(buffer);
    assert_eq!(used(), 0);
}

#[test]
fn a_different_authority_is_refused_before_reservation() {
    let faults = Faults::new();
    let elsewhere = AuthorityId::from_bytes([7; 16]);
    let host = faults.host_with(LIMIT, move |_| Books::Elsewhere(elsewhere)).unwrap();
    let backing = host.backing("faulty").unwrap();
    let before = (faults.counts(), host.snapshot());
    let error = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthorityMismatch, "{error}");
    let ours = host.governor().authority(Domain::Host).unwrap();
    let words = error.to_string();
    assert!(words.contains(&ours.to_string()) && words.contains(&elsewhere.to_string()), "names both: {words}");
    assert_eq!((faults.counts(), host.snapshot()), before, "the backing was not called, the books are as they were");
    assert_eq!(faults.count(Call::Reserve), 0);
}

#[test]
fn a_backing_of_another_host_is_refused_before_reservation() {
    let (faults, other) = (Faults::new(), Faults::new());
    let host = faults.host(LIMIT).unwrap();
    let foreign = other.host(LIMIT).unwrap().backing("faulty").unwrap();
    let before = other.counts();
    let error = host.buffer(&foreign, &BufferSpec::new(MIB)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthorityMismatch, "{error}");
    assert_eq!(other.counts(), before);
}

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

const GRANULE: u64 = 64 * KIB;

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
        Description::new(DeviceKey::device(0), "nothing", HostAccess::NONE).with_total_bytes(GIB)
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
