//! Memory that runs short though the budget does not: who is asked to give, and when the call is made once more.

use leasehold::{
    AllocationSpec, BackingHandle, Buffer, BufferSpec, Domain, ErrorKind, Governor, GrowthPolicy, HolderId, Host,
    Lease, MemoryRole, PrefixSpec, Reclaim, ReclaimOrder, Registration, Shortage, Shortfall,
};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, FaultyBacking, Strikes, Under, host_mmap, linked_in};
use leasehold_tests::parking::ParkingBacking;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 << 10;
const NO_MEMORY: Fault = Fault::Refuse(api::ErrorKind::OutOfMemory);
const ALL_BOOKS: [fn(api::HostServices) -> Books; 2] = [|_| Books::OfTheBuffers, Books::OfItsHost];

/// A host with a budget that has room for everything, and a backing that finds no memory where it is told to.
fn faulty(books: fn(api::HostServices) -> Books) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host_with(MIB, books).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

fn buffer(host: &Host, backing: &BackingHandle) -> Buffer {
    host.buffer(backing, &BufferSpec::new(2 * MIB)).unwrap()
}

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn lease(host: &Host, bytes: u64) -> Lease {
    host.governor().lease(Domain::Host, bytes, MemoryRole::Weights).unwrap()
}

struct Answer<F>(F);

impl<F: Fn(&Shortfall) -> u64 + Send + Sync> Reclaim for Answer<F> {
    fn reclaim(&self, shortfall: &Shortfall) -> u64 {
        (self.0)(shortfall)
    }
}

/// Who was asked, and for what, in order.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(&'static str, Shortfall)>>>);

impl Asked {
    fn register(
        &self,
        governor: &Governor,
        name: &'static str,
        order: ReclaimOrder,
        answer: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Registration {
        let asked = self.clone();
        let note = move |shortfall: &Shortfall| {
            asked.0.lock().unwrap().push((name, *shortfall));
            answer(shortfall.bytes)
        };
        governor.on_pressure(Domain::Host, order, Arc::new(Answer(note))).unwrap()
    }

    /// Registers somebody who gives back at most `most` bytes of a lease at a time.
    fn giver(&self, host: &Host, name: &'static str, held: Lease, most: u64) -> Registration {
        let held = Mutex::new(held);
        self.register(&host.governor(), name, ReclaimOrder::new(), move |bytes| {
            held.lock().unwrap().shrink(bytes.min(most));
            0
        })
    }

    /// Registers somebody who gives nothing, and says that it gave plenty.
    fn miser(&self, host: &Host, name: &'static str, order: ReclaimOrder) -> Registration {
        self.register(&host.governor(), name, order, |_| u64::MAX)
    }

    fn take(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().unwrap().drain(..).map(|(name, shortfall)| (name, shortfall.bytes)).collect()
    }
}

#[test]
fn a_growth_that_finds_no_memory_has_others_give_what_it_wanted_and_is_tried_once_more() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _first = asked.giver(&host, "first", lease(&host, 10 * PAGE), PAGE);
        let _second = asked.giver(&host, "second", lease(&host, 10 * PAGE), u64::MAX);
        let _third = asked.miser(&host, "third", ReclaimOrder::new());
        let mut grows = buffer(&host, &backing);
        grows.grow_to(PAGE).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        grows.grow_to(4 * PAGE).expect("there is memory after others gave");
        assert_eq!(asked.take(), [("first", 3 * PAGE), ("second", 2 * PAGE)], "whoever was not needed was not asked");
        assert_eq!((faults.count(Call::Commit), grows.committed()), (3, 4 * PAGE));
        assert_eq!((used(&host), faults.held().owned_bytes), ((20 - 3 + 4) * PAGE, 4 * PAGE));
    }
}

#[test]
fn it_is_told_that_memory_is_short_and_for_what_and_a_budget_that_is_short_is_told_too() {
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let _miser = asked.miser(&host, "miser", ReclaimOrder::new());
    let mut grows = host.buffer(&backing, &BufferSpec::new(MIB).role(MemoryRole::Activation)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(PAGE).unwrap_err();
    let _all = lease(&host, MIB);
    grows.grow_to(PAGE).unwrap_err();
    let told: Vec<_> =
        asked.0.lock().unwrap().iter().map(|(_, told)| (told.domain, told.role, told.shortage)).collect();
    let short = |shortage| (Domain::Host, MemoryRole::Activation, shortage);
    assert_eq!(told, [short(Shortage::Memory), short(Shortage::Budget)]);
}

#[test]
fn where_nothing_comes_back_the_call_is_not_repeated_whatever_was_said() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _others = lease(&host, 9 * PAGE);
        let mut grows = buffer(&host, &backing);
        grows.grow_to(PAGE).unwrap();
        let before = host.snapshot();
        for askers in 0..3 {
            let _misers: Vec<_> = (0..askers).map(|_| asked.miser(&host, "miser", ReclaimOrder::new())).collect();
            let calls = faults.count(Call::Commit);
            faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
            let refused = grows.grow_to(2 * PAGE).unwrap_err();
            assert_eq!((refused.kind(), refused.is_exhausted()), (ErrorKind::OutOfMemory, true), "{refused}");
            assert_eq!((faults.count(Call::Commit) - calls, asked.take().len()), (1, askers));
            assert_eq!((grows.committed(), used(&host)), (PAGE, 10 * PAGE));
        }
        assert_eq!(host.snapshot(), before, "a refusal changes nothing");
    }
}

#[test]
fn a_second_failure_is_the_last_and_nothing_stays_charged() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _held = asked.giver(&host, "held", lease(&host, 10 * PAGE), PAGE);
        faults.plan(Call::Commit, 0, Strikes::Always, NO_MEMORY);
        let mut grows = buffer(&host, &backing);
        assert_eq!(grows.grow_to(3 * PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!((faults.count(Call::Commit), asked.take()), (2, vec![("held", 3 * PAGE)]));
        assert_eq!((grows.committed(), used(&host)), (0, 9 * PAGE), "what was given stays given");
    }
}

#[test]
fn allocations_and_prefixes_are_tried_once_more_too() {
    for under in [Under::MMAP, Under::CHARGING_MMAP, Under::POOL] {
        let faults = Faults::new();
        let host = under.host(&faults, MIB);
        let backing = host.backing("faulty").unwrap();
        let asked = Asked::default();
        let _held = asked.giver(&host, "held", lease(&host, 32 * PAGE), u64::MAX);
        faults.plan(Call::Allocate, 0, Strikes::Once, NO_MEMORY);
        let _made = host.allocate(&backing, &AllocationSpec::new(2 * PAGE)).expect("the holder gave");
        assert_eq!((faults.count(Call::Allocate), asked.take()), (2, vec![("held", 2 * PAGE)]));
        assert_eq!(used(&host), 32 * PAGE, "{under:?}");
        if under.shares() {
            faults.plan(Call::CreatePrefix, 0, Strikes::Once, NO_MEMORY);
            let _prefix = host.prefix(&backing, &PrefixSpec::new(3 * PAGE).planes(2)).expect("the holder gave");
            assert_eq!((faults.count(Call::CreatePrefix), asked.take()), (2, vec![("held", 6 * PAGE)]));
            assert_eq!(used(&host), 32 * PAGE);
        }
    }
}

#[test]
fn a_party_to_the_request_is_not_asked() {
    for under in [Under::MMAP, Under::POOL] {
        let faults = Faults::new();
        let host = under.host(&faults, MIB);
        let backing = host.backing("faulty").unwrap();
        let asked = Asked::default();
        let (mine, theirs) = (HolderId::new(7), HolderId::new(8));
        let _mine = asked.miser(&host, "mine", ReclaimOrder::new().holder(mine).priority(9));
        let _theirs = asked.miser(&host, "theirs", ReclaimOrder::new().holder(theirs));
        for call in [Call::Commit, Call::Allocate, Call::CreatePrefix] {
            faults.plan(call, 0, Strikes::Always, NO_MEMORY);
        }
        let mut grows = host.buffer(&backing, &BufferSpec::new(MIB).holder(mine)).unwrap();
        grows.grow_to(PAGE).unwrap_err();
        assert_eq!(asked.take(), [("theirs", PAGE)]);
        host.allocate(&backing, &AllocationSpec::new(PAGE).holder(theirs)).unwrap_err();
        assert_eq!(asked.take(), [("mine", PAGE)]);
        if under.shares() {
            host.prefix(&backing, &PrefixSpec::new(PAGE).holder(mine)).unwrap_err();
            assert_eq!(asked.take(), [("theirs", PAGE)]);
        }
        buffer(&host, &backing).grow_to(PAGE).unwrap_err();
        assert_eq!(asked.take(), [("mine", PAGE), ("theirs", PAGE)]);
    }
}

#[test]
fn what_is_committed_ahead_is_worth_nobodys_memory_and_the_exact_size_is() {
    for books in ALL_BOOKS {
        let (faults, host, backing) = faulty(books);
        let asked = Asked::default();
        let _held = asked.giver(&host, "held", lease(&host, 10 * PAGE), u64::MAX);
        let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE));
        let mut ahead = host.buffer(&backing, &spec).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        ahead.grow_to(3 * PAGE).unwrap();
        assert_eq!((asked.take(), faults.count(Call::Commit), ahead.committed()), (vec![], 2, 3 * PAGE));

        let mut exact = host.buffer(&backing, &spec).unwrap();
        (0..2).for_each(|nth| faults.plan(Call::Commit, nth, Strikes::Once, NO_MEMORY));
        exact.grow_to(3 * PAGE).unwrap();
        assert_eq!((asked.take(), faults.count(Call::Commit)), (vec![("held", 3 * PAGE)], 5));
        assert_eq!(exact.committed(), 3 * PAGE);
    }
}

#[test]
fn any_other_failure_asks_nobody() {
    use api::ErrorKind::{AddressSpaceExhausted, BrokenOff, BudgetRefused, Internal, InvalidRequest};
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let _held = asked.giver(&host, "held", lease(&host, 10 * PAGE), u64::MAX);
    for kind in [BudgetRefused, AddressSpaceExhausted, Internal, InvalidRequest, BrokenOff] {
        let calls = faults.count(Call::Commit);
        faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(kind));
        buffer(&host, &backing).grow_to(PAGE).unwrap_err();
        assert_eq!((faults.count(Call::Commit) - calls, asked.take()), (1, vec![]), "{kind:?}");
    }
}

#[test]
fn a_request_above_the_limit_asks_nobody() {
    let (faults, host, backing) = faulty(Books::OfItsHost);
    let asked = Asked::default();
    let _held = asked.giver(&host, "held", lease(&host, 10 * PAGE), u64::MAX);
    faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    assert_eq!(buffer(&host, &backing).grow_to(MIB + PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!((faults.count(Call::Commit), asked.take()), (1, vec![]), "in vain nobody gives");
}

#[test]
fn whoever_finds_no_memory_in_its_answer_has_the_others_asked_and_not_itself() {
    let (faults, host, backing) = faulty(|_| Books::OfTheBuffers);
    let asked = Asked::default();
    let (needy, mut grows) = (Mutex::new(buffer(&host, &backing)), buffer(&host, &backing));
    let first = ReclaimOrder::new().priority(1);
    let _needy = asked.register(&host.governor(), "needy", first, move |_| {
        let refused = needy.lock().unwrap().grow_to(PAGE).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfMemory, "{refused}");
        0
    });
    let _miser = asked.miser(&host, "miser", ReclaimOrder::new());
    faults.plan(Call::Commit, 0, Strikes::Always, NO_MEMORY);
    grows.grow_to(2 * PAGE).unwrap_err();
    assert_eq!(asked.take(), [("needy", 2 * PAGE), ("miser", PAGE), ("miser", 2 * PAGE)]);
    assert_eq!((faults.count(Call::Commit), used(&host)), (2, 0));
}

/// A host with a backing that parks what is decommitted, and one that finds no memory where it is told to.
fn parking() -> (Faults, Faults, Host) {
    let (parks, lacks) = (Faults::new(), Faults::new());
    let (steered, failing) = (parks.clone(), lacks.clone());
    let parking = move |services: api::HostServices| -> Result<Box<dyn api::Backing>, api::BackingError> {
        let parking = ParkingBacking::new(host_mmap(services)?, 0);
        Ok(Box::new(FaultyBacking::new(Box::new(parking), &steered, Books::OfItsHost(services))))
    };
    let host = Host::builder()
        .limit(Domain::Host, MIB)
        .with_backing("parking", parking)
        .with_backing("lacking", Under::MMAP.create(&failing))
        .load()
        .unwrap();
    (parks, lacks, host)
}

#[test]
fn parked_memory_goes_before_anybody_gives() {
    let (parks, lacks, host) = parking();
    let asked = Asked::default();
    let mut parked = buffer(&host, &host.backing("parking").unwrap());
    parked.grow_to(5 * PAGE).unwrap();
    parked.shrink_to(0).unwrap();
    let _miser = asked.miser(&host, "miser", ReclaimOrder::new().priority(i32::MAX));
    let mut grows = buffer(&host, &host.backing("lacking").unwrap());
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(3 * PAGE).expect("parked memory was given up");
    assert_eq!((parks.count(Call::Trim), asked.take(), used(&host)), (1, vec![], 5 * PAGE));
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    grows.grow_to(6 * PAGE).expect("the rest of it was given up, and that is worth trying");
    assert_eq!((asked.take(), used(&host)), (vec![("miser", PAGE)], 6 * PAGE));
}

#[test]
fn what_is_committed_ahead_leaves_parked_memory_where_it_is() {
    let (parks, lacks, host) = parking();
    let mut parked = buffer(&host, &host.backing("parking").unwrap());
    parked.grow_to(5 * PAGE).unwrap();
    parked.shrink_to(0).unwrap();
    let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE));
    let mut ahead = host.buffer(&host.backing("lacking").unwrap(), &spec).unwrap();
    lacks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    ahead.grow_to(3 * PAGE).unwrap();
    assert_eq!((ahead.committed(), lacks.count(Call::Commit), parks.count(Call::Trim)), (3 * PAGE, 2, 0));
    assert_eq!(used(&host), 8 * PAGE);
}

/// What it has parked served the call already.
#[test]
fn a_backing_that_pays_is_not_trimmed_for_its_own_call() {
    let (parks, _, host) = parking();
    let mut grows = buffer(&host, &host.backing("parking").unwrap());
    grows.grow_to(5 * PAGE).unwrap();
    grows.shrink_to(PAGE).unwrap();
    parks.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
    assert_eq!(grows.grow_to(6 * PAGE).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!((parks.count(Call::Commit), parks.count(Call::Trim), used(&host)), (2, 0, 5 * PAGE));
}

#[test]
fn what_a_reclaimer_leaves_parked_is_given_up_at_once() {
    for lacking in ["parking", "lacking"] {
        let (parks, lacks, host) = parking();
        let asked = Asked::default();
        let mut victim = buffer(&host, &host.backing("parking").unwrap());
        victim.grow_to(5 * PAGE).unwrap();
        let victim = Mutex::new(victim);
        let _victim = asked.register(&host.governor(), "victim", ReclaimOrder::new().priority(1), move |bytes| {
            let mut victim = victim.lock().unwrap();
            let len = victim.len() - bytes;
            victim.shrink_to(len).unwrap();
            0
        });
        let _miser = asked.miser(&host, "miser", ReclaimOrder::new());
        let mut grows = buffer(&host, &host.backing(lacking).unwrap());
        let faults = if lacking == "parking" { &parks } else { &lacks };
        faults.plan(Call::Commit, 0, Strikes::Once, NO_MEMORY);
        grows.grow_to(3 * PAGE).expect("what was parked was given up");
        assert_eq!((asked.take(), used(&host)), (vec![("victim", 3 * PAGE)], 5 * PAGE), "{lacking}");
        let trims = if lacking == "parking" { 1 } else { 2 };
        assert_eq!(parks.count(Call::Trim), trims, "{lacking}: whoever pays has looked into what it has parked before");
    }
}

/// Says once of each call that it has no memory, though it did what was asked.
struct Lies {
    inner: Box<dyn api::Backing>,
    allocated: AtomicBool,
    created: AtomicBool,
}

impl Lies {
    fn create(services: api::HostServices) -> Result<Box<dyn api::Backing>, api::BackingError> {
        let inner = linked_in("host-pool", &api::Options::new(), services)?;
        Ok(Box::new(Self { inner, allocated: AtomicBool::new(false), created: AtomicBool::new(false) }))
    }

    fn sharing(&self) -> &dyn api::SharedMapping {
        self.inner.as_shared_mapping().unwrap()
    }
}

fn lie_once<T>(has_lied: &AtomicBool, made: T) -> Result<T, api::BackingError> {
    let lie = api::BackingError::new(api::ErrorKind::OutOfMemory, "there is some");
    if has_lied.swap(true, Ordering::AcqRel) { Ok(made) } else { Err(lie) }
}

impl api::Backing for Lies {
    fn describe(&self) -> api::Description {
        self.inner.describe()
    }

    fn accounting(&self) -> api::Accounting {
        self.inner.accounting()
    }

    fn allocate(&self, request: &api::AllocateRequest) -> Result<api::Allocation, api::BackingError> {
        lie_once(&self.allocated, self.inner.allocate(request)?)
    }

    fn release(&self, target: api::ReleaseTarget) -> api::ReleaseOutcome {
        self.inner.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn api::VirtualBacking> {
        self.inner.as_virtual_backing()
    }

    fn as_shared_mapping(&self) -> Option<&dyn api::SharedMapping> {
        Some(self)
    }
}

impl api::SharedMapping for Lies {
    fn create_prefix(&self, request: &api::PrefixRequest) -> Result<api::Prefix, api::BackingError> {
        lie_once(&self.created, self.sharing().create_prefix(request)?)
    }

    fn seal(&self, prefix: api::PrefixId) -> Result<(), api::BackingError> {
        self.sharing().seal(prefix)
    }

    fn incremental_owned_bytes(&self, prefix: api::PrefixId) -> Result<u64, api::BackingError> {
        self.sharing().incremental_owned_bytes(prefix)
    }

    fn map_prefix(&self, mappings: &[api::PrefixMapping]) -> Result<api::Change, api::BackingError> {
        self.sharing().map_prefix(mappings)
    }

    fn unmap(&self, mappings: &[api::PrefixMapping]) -> Result<api::Change, api::BackingError> {
        self.sharing().unmap(mappings)
    }

    fn release_prefix(&self, prefix: api::PrefixId) -> api::ReleaseOutcome {
        self.sharing().release_prefix(prefix)
    }
}

#[test]
fn a_call_that_is_made_once_more_asks_for_something_new() {
    let host = Host::builder().limit(Domain::Host, 4 * MIB).with_backing("lies", Lies::create).load().unwrap();
    let backing = host.backing("lies").unwrap();
    let asked = Asked::default();
    let _held = asked.giver(&host, "held", lease(&host, MIB), u64::MAX);
    let allocation = host.allocate(&backing, &AllocationSpec::new(64 << 10)).expect("the second one is its own");
    let prefix = host.prefix(&backing, &PrefixSpec::new(64 << 10)).expect("the second one is its own");
    assert_eq!(asked.take(), [("held", 64 << 10), ("held", 64 << 10)]);
    drop((allocation, prefix));
    host.backing("lies").expect("it is in service");
}
