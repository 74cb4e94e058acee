//! Every call of a scenario fails, at every index, once and for ever, before and half-way through.
//!
//! A clean run tells how many calls there are; the sweeps fail each in turn. After a failure everything is as it was:
//! books, what the backing holds, what the kernel has mapped and what is resident. What failed once works the next
//! time, with the right bytes; and whatever failed, nothing is left in the end.

use leasehold::{Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Domain, Error, ErrorKind, Host};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Call, Fault, Faults, Held, Strikes, Under, host_mmap};
use leasehold_tests::observe::{Mappings, resident_bytes};
use std::sync::{Mutex, MutexGuard, PoisonError};

const GRANULE: u64 = 4 << 10;
const PLANES: usize = 4;
/// More than anything else in this process could take again as a whole.
const CAPACITY: u64 = 1 << 40;
/// The longest that a plane gets, in granules.
const LONGEST: u64 = 20;
const LIMIT: u64 = 1 << 30;

/// Address space that was given back must not be taken by the next test before this one has looked.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Make,
    GrowTo(u64),
    AskCost(u64),
    ShrinkTo(u64),
    Allocate,
    CloseAllocation,
    CloseSet,
}

const SCENARIO: [Step; 12] = [
    Step::Make,
    Step::GrowTo(1),
    Step::GrowTo(9),
    Step::GrowTo(LONGEST),
    Step::AskCost(2 * LONGEST),
    Step::ShrinkTo(6),
    Step::GrowTo(12),
    Step::Allocate,
    Step::ShrinkTo(0),
    Step::GrowTo(3),
    Step::CloseAllocation,
    Step::CloseSet,
];

/// What a failure must leave as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    used_bytes: u64,
    held: Held,
    len: u64,
    committed_bytes: u64,
    mappings: usize,
    open_bytes: u64,
    resident_bytes: u64,
}

struct World {
    faults: Faults,
    host: Host,
    backing: BackingHandle,
    set: Option<BufferSet>,
    allocation: Option<Allocation>,
    /// The byte that each plane was last filled with.
    mark: u8,
}

impl World {
    fn new(under: Under) -> Self {
        let faults = Faults::new();
        let host = under.host(&faults, LIMIT);
        let backing = host.backing("faulty").unwrap();
        Self { faults, host, backing, set: None, allocation: None, mark: 0 }
    }

    fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).unwrap().used_bytes
    }

    fn run(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Make => {
                self.set = Some(self.host.buffer_set(&self.backing, PLANES, &BufferSpec::new(CAPACITY))?);
                Ok(())
            }
            Step::GrowTo(granules) => self.grow(granules * GRANULE),
            Step::AskCost(granules) => self.set().growth_cost(granules * GRANULE).map(|_| ()),
            Step::ShrinkTo(granules) => self.set().shrink_to(granules * GRANULE),
            Step::Allocate => {
                self.allocation = Some(self.host.allocate(&self.backing, &AllocationSpec::new(5 * GRANULE))?);
                Ok(())
            }
            Step::CloseAllocation => self.allocation.take().map_or(Ok(()), Allocation::close),
            Step::CloseSet => self.set.take().map_or(Ok(()), BufferSet::close),
        }
    }

    fn set(&mut self) -> &mut BufferSet {
        self.set.as_mut().expect("was made")
    }

    /// Grows, and writes all of it: what is new must read as zero, or as this set's own bytes.
    fn grow(&mut self, len: u64) -> Result<(), Error> {
        self.set().grow_to(len)?;
        self.check_bytes();
        self.mark += 1;
        let mark = self.mark;
        for plane in 0..PLANES {
            self.set().plane_mut(plane).unwrap().fill(mark_of(plane, mark));
        }
        Ok(())
    }

    /// Each granule reads as one thing that was written to this plane, or as zero.
    fn check_bytes(&self) {
        let Some(set) = &self.set else { return };
        for plane in 0..PLANES {
            for granule in set.plane(plane).unwrap().chunks(4096) {
                let own = granule[0] == 0 || (1..=self.mark).any(|mark| granule[0] == mark_of(plane, mark));
                assert!(own, "plane {plane} shows {}, which is not its own", granule[0]);
                assert_eq!(
                    granule[1..],
                    granule[..granule.len() - 1],
                    "plane {plane}: a granule was written as a whole"
                );
            }
        }
    }

    /// What was written last is still there, as far as the planes reach.
    fn check_last_bytes(&self) {
        let Some(set) = self.set.as_ref().filter(|set| !set.is_empty() && self.mark > 0) else { return };
        for plane in 0..PLANES {
            assert_eq!(set.plane(plane).unwrap()[0], mark_of(plane, self.mark), "plane {plane} lost its bytes");
        }
    }

    fn observe(&self) -> Observed {
        let bases = self.set.iter().flat_map(|set| (0..PLANES).map(|plane| set.base(plane).unwrap()));
        let bases = bases.chain(self.allocation.iter().map(Allocation::base));
        let places: Vec<_> = bases.map(|base| (base, CAPACITY)).collect();
        let (maps, most) = (Mappings::read_settled(&places), LONGEST * GRANULE);
        Observed {
            used_bytes: self.used(),
            held: self.faults.held(),
            len: self.set.as_ref().map_or(0, BufferSet::len),
            committed_bytes: self.set.as_ref().map_or(0, BufferSet::owned_bytes),
            mappings: places.iter().map(|(base, bytes)| maps.within(*base, *bytes).count()).sum(),
            open_bytes: places.iter().map(|(base, _)| maps.open_bytes(*base, most)).sum(),
            resident_bytes: places.iter().map(|(base, _)| resident_bytes(*base, most)).sum(),
        }
    }

    fn check_invariants(&self) {
        assert_eq!(self.used(), self.faults.held().owned_bytes, "the books say what is owned");
        if let Some(set) = &self.set {
            assert!(set.len() <= set.committed() && set.committed() <= set.capacity());
            let (maps, most) = (Mappings::read(), LONGEST * GRANULE);
            let open: u64 = (0..PLANES).map(|plane| maps.open_bytes(set.base(plane).unwrap(), most)).sum();
            assert_eq!(open, set.owned_bytes(), "what is committed is what can be touched");
        }
        self.check_bytes();
        self.check_last_bytes();
    }

    /// Runs a step; where it fails, checks what that left, and that it works once the fault is gone.
    fn survive(&mut self, step: Step, fault: Fault) {
        let before = self.observe();
        let Err(error) = self.run(step) else { return self.check_invariants() };
        self.check_invariants();
        match (step, fault) {
            (Step::CloseAllocation | Step::CloseSet, _) => {
                assert_eq!(error.kind(), ErrorKind::NotReleased, "{step:?}: {error}");
                self.faults.heal();
                let report = self.host.reap();
                assert!(report.released > 0 && report.remaining == 0, "{step:?}: {report:?}");
                return;
            }
            (Step::ShrinkTo(_), Fault::HalfWay(_)) => {
                assert!(self.observe().used_bytes < before.used_bytes, "{step:?}: half of it went");
            }
            _ => assert_eq!(self.observe(), before, "{step:?}: {error}"),
        }
        assert_eq!(error.kind(), kind_of(fault), "{step:?}: {error}");
        self.faults.heal();
        self.run(step).unwrap_or_else(|error| panic!("{step:?} fails again: {error}"));
        self.check_invariants();
    }

    /// Drops everything, and looks for what is left.
    fn end(mut self) {
        drop((self.set.take(), self.allocation.take()));
        assert_eq!(self.used(), self.faults.held().owned_bytes, "what could not be given back stays charged");
        self.faults.heal();
        assert_eq!(self.host.reap().remaining, 0);
        assert_eq!((self.used(), self.faults.held()), (0, Held::default()));
        let maps = Mappings::read();
        for extent in self.faults.handed_out() {
            let is_plane = matches!(extent.target, api::ReleaseTarget::Region(_));
            assert!(!is_plane || !maps.hold_all_of(extent.base, extent.bytes), "{extent:?} is mapped still");
        }
    }
}

fn mark_of(plane: usize, mark: u8) -> u8 {
    u8::try_from(plane).unwrap() * 50 + mark
}

fn kind_of(fault: Fault) -> ErrorKind {
    let (Fault::Refuse(kind) | Fault::HalfWay(kind)) = fault else { return ErrorKind::OutOfService };
    match kind {
        api::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
        api::ErrorKind::AddressSpaceExhausted => ErrorKind::AddressSpaceExhausted,
        api::ErrorKind::BudgetRefused => ErrorKind::TierExhausted,
        _ => ErrorKind::Backing,
    }
}

/// Every call that the scenario makes when nothing fails.
fn clean_calls(under: Under) -> Vec<(Call, u64)> {
    let mut world = World::new(under);
    for step in SCENARIO {
        world.run(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
    let counts = world.faults.counts();
    world.end();
    let count = |call: &Call| counts.get(call).copied().unwrap_or(0);
    Call::FALLIBLE.iter().flat_map(|call| (0..count(call)).map(|nth| (*call, nth))).collect()
}

const REFUSALS: [Fault; 4] = [
    Fault::Refuse(api::ErrorKind::OutOfMemory),
    Fault::Refuse(api::ErrorKind::AddressSpaceExhausted),
    Fault::Refuse(api::ErrorKind::BudgetRefused),
    Fault::Refuse(api::ErrorKind::Internal),
];

fn sweep(under: Under, fault: Fault, calls: &[(Call, u64)]) {
    for (call, nth) in calls {
        for strikes in [Strikes::Once, Strikes::Always] {
            let mut world = World::new(under);
            world.faults.plan(*call, *nth, strikes, fault);
            for step in SCENARIO {
                world.survive(step, fault);
            }
            assert!(world.faults.struck() > 0, "{call:?} {nth} was never made");
            world.end();
        }
    }
}

#[test]
fn the_scenario_makes_every_kind_of_call_that_needs_no_failure() {
    let _alone = alone();
    for under in Under::EXACT {
        let calls = clean_calls(under);
        let count = |kind| calls.iter().filter(|(call, _)| *call == kind).count();
        let kinds = [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::Allocate, Call::Release];
        assert_eq!(kinds.map(count), [PLANES, 5, 2, 1, 1, PLANES + 1], "{under:?}");
    }
}

#[test]
fn every_call_that_fails_leaves_everything_as_it_was_and_works_the_next_time() {
    let _alone = alone();
    for under in Under::EXACT {
        let calls = clean_calls(under);
        for fault in REFUSALS {
            sweep(under, fault, &calls);
        }
    }
}

#[test]
fn every_call_that_fails_leaves_the_books_right_where_the_backing_charges() {
    let _alone = alone();
    let under = Under::CHARGING_MMAP;
    sweep(under, REFUSALS[0], &clean_calls(under));
}

#[test]
fn a_decommit_or_release_that_fails_half_way_leaves_what_it_says() {
    let _alone = alone();
    for under in [Under::MMAP, Under::CHARGING_MMAP, Under::POOL] {
        let calls = clean_calls(under).into_iter();
        let halves: Vec<_> = calls.filter(|(call, _)| matches!(call, Call::Decommit | Call::Release)).collect();
        sweep(under, Fault::HalfWay(api::ErrorKind::Internal), &halves);
    }
}

fn break_and_fail_to_undo(under: Under, first: Fault, second: Call) {
    for (call, nth) in clean_calls(under) {
        let mut world = World::new(under);
        world.faults.plan(call, nth, Strikes::Always, first);
        world.faults.plan(second, 0, Strikes::Always, first);
        for step in SCENARIO {
            if world.set.is_some() || matches!(step, Step::Make | Step::Allocate | Step::CloseAllocation) {
                let _ = world.run(step);
            }
            world.check_bytes();
            assert!(world.used() >= world.faults.held().owned_bytes, "all that is owned is charged");
        }
        let faults = world.faults.clone();
        faults.heal();
        world.end();
    }
}

#[test]
fn nothing_is_left_when_undoing_fails_too() {
    let _alone = alone();
    for under in Under::EXACT {
        for first in [REFUSALS[0], Fault::HalfWay(api::ErrorKind::OutOfMemory)] {
            for second in [Call::Release, Call::Decommit, Call::CommittedBytes] {
                break_and_fail_to_undo(under, first, second);
            }
        }
    }
}

#[test]
fn a_set_whose_making_fails_gives_back_the_planes_that_it_has() {
    let _alone = alone();
    for under in Under::EXACT {
        for nth in 0..4 {
            let mut world = World::new(under);
            world.faults.plan(Call::Reserve, nth, Strikes::Once, REFUSALS[1]);
            assert_eq!(world.run(Step::Make).unwrap_err().kind(), ErrorKind::AddressSpaceExhausted, "{under:?}");
            assert_eq!((world.faults.count(Call::Release), world.faults.held()), (nth, Held::default()), "{under:?}");
            world.end();
        }
    }
}

#[test]
fn a_failed_release_is_quarantined_stays_charged_and_is_reaped_once_the_fault_is_gone() {
    let _alone = alone();
    for under in Under::EXACT {
        let mut world = World::new(under);
        world.run(Step::Make).unwrap();
        world.run(Step::GrowTo(5)).unwrap();
        world.run(Step::Allocate).unwrap();
        world.faults.plan(Call::Release, 0, Strikes::Always, REFUSALS[3]);
        drop((world.set.take(), world.allocation.take()));
        assert_eq!(world.used(), 25 * GRANULE, "{under:?}");
        for _ in 0..2 {
            let report = world.host.reap();
            let seen = (report.released, report.remaining, report.remaining_bytes);
            assert_eq!((seen, world.used()), ((0, 5, 25 * GRANULE), 25 * GRANULE), "{under:?}");
        }
        world.faults.heal();
        let report = world.host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (5, 0, 0), "{under:?}");
        assert_eq!(world.used(), 0, "{under:?}");
        world.end();
    }
}

#[test]
fn what_is_in_quarantine_is_refunded_when_its_backing_ends() {
    let _alone = alone();
    for under in Under::EXACT {
        let mut world = World::new(under);
        world.run(Step::Make).unwrap();
        world.run(Step::GrowTo(5)).unwrap();
        world.faults.plan(Call::Release, 0, Strikes::Always, REFUSALS[3]);
        drop(world.set.take());
        let World { host, backing, .. } = world;
        let governor = host.governor();
        let used = || governor.snapshot().domain(Domain::Host).unwrap().used_bytes;
        drop(host);
        assert_eq!(used(), 20 * GRANULE, "{under:?}: the handle keeps the backing");
        drop(backing);
        assert_eq!(used(), 0, "{under:?}");
    }
}

/// A host with a backing that can fail and one that can't.
fn two_backings(under: Under, faults: &Faults) -> Host {
    Host::builder()
        .limit(Domain::Host, LIMIT)
        .with_backing("faulty", under.create(faults))
        .with_backing("sound", host_mmap)
        .load()
        .unwrap()
}

#[test]
fn a_backing_that_panics_or_loses_its_device_is_retired_and_still_gets_its_memory_back() {
    let _alone = alone();
    for fault in [Fault::Panic, Fault::Refuse(api::ErrorKind::DeviceLost)] {
        for call in [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::Allocate] {
            Under::EXACT.into_iter().for_each(|under| retire(under, call, fault));
        }
    }
}

fn retire(under: Under, call: Call, fault: Fault) {
    let faults = Faults::new();
    let host = two_backings(under, &faults);
    let (faulty, sound) = (host.backing("faulty").unwrap(), host.backing("sound").unwrap());
    let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    let mut other = host.buffer(&sound, &BufferSpec::new(CAPACITY)).unwrap();
    other.grow_to(GRANULE).unwrap();
    let mut set = host.buffer_set(&faulty, PLANES, &BufferSpec::new(CAPACITY)).unwrap();
    set.grow_to(8 * GRANULE).unwrap();
    set.plane_mut(3).unwrap().fill(9);
    faults.plan(call, 0, Strikes::Once, fault);
    let error = match call {
        Call::Reserve => host.buffer(&faulty, &BufferSpec::new(CAPACITY)).unwrap_err(),
        Call::Commit => set.grow_to(9 * GRANULE).unwrap_err(),
        Call::Decommit => set.shrink_to(GRANULE).unwrap_err(),
        Call::Cost => set.growth_cost(9 * GRANULE).unwrap_err(),
        _ => host.allocate(&faulty, &AllocationSpec::new(1)).unwrap_err(),
    };
    assert_eq!(error.kind(), ErrorKind::OutOfService, "{call:?}: {error}");
    let report = &host.backings()[0];
    assert_eq!(report.state.name(), "retired", "{call:?}");
    assert!(report.state.reason().unwrap().contains("as planned"), "{call:?}: {:?}", report.state);
    assert_eq!(host.backing("faulty").unwrap_err().kind(), ErrorKind::NoBackingFits, "{call:?}");
    let refused = host.buffer(&faulty, &BufferSpec::new(CAPACITY)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfService, "{call:?}: gets no new work");
    assert_eq!((set.len(), used()), (8 * GRANULE, 33 * GRANULE), "{call:?}");
    assert!(set.plane(3).unwrap().iter().all(|byte| *byte == 9), "{call:?}: what it holds can be read");
    set.shrink_to(2 * GRANULE).unwrap();
    set.grow_to(GRANULE).unwrap();
    assert_eq!(set.grow_to(9 * GRANULE).unwrap_err().kind(), ErrorKind::OutOfService, "{call:?}");
    assert_eq!(used(), 9 * GRANULE, "{call:?}: it still takes back");
    set.close().unwrap();
    assert_eq!((used(), faults.held()), (GRANULE, Held::default()), "{call:?}");
    other.grow_to(3 * GRANULE).unwrap();
    other.as_mut_slice().unwrap().fill(1);
    host.buffer(&sound, &BufferSpec::new(CAPACITY)).unwrap().grow_to(1).unwrap();
}

#[test]
fn a_commit_that_breaks_off_stays_charged_until_somebody_can_tell_what_it_left() {
    let _alone = alone();
    for under in Under::EXACT {
        let faults = Faults::new();
        let host = two_backings(under, &faults);
        let faulty = host.backing("faulty").unwrap();
        let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
        let mut set = host.buffer_set(&faulty, 2, &BufferSpec::new(CAPACITY)).unwrap();
        set.grow_to(GRANULE).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, Fault::Panic);
        faults.plan(Call::CommittedBytes, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        assert_eq!(set.grow_to(4 * GRANULE).unwrap_err().kind(), ErrorKind::OutOfService);
        assert_eq!((set.len(), set.committed(), set.owned_bytes()), (GRANULE, GRANULE, 8 * GRANULE));
        // A backing that charges by itself knows that it took nothing; a lease covers the worst.
        let charged = if under.leases() { 8 } else { 2 };
        assert_eq!(used(), charged * GRANULE, "{under:?}: what it may have committed is charged");
        assert!(set.shrink_to(0).is_err(), "nobody can tell what there is to give back");
        faults.heal();
        set.shrink_to(GRANULE).unwrap();
        assert_eq!((set.len(), used()), (GRANULE, 2 * GRANULE), "the backing said that it had committed nothing");
        set.close().unwrap();
        assert_eq!((used(), faults.held()), (0, Held::default()));
    }
}

#[test]
fn a_release_that_panics_is_quarantined_and_tried_again() {
    let _alone = alone();
    for under in Under::EXACT {
        let faults = Faults::new();
        let host = two_backings(under, &faults);
        let faulty = host.backing("faulty").unwrap();
        let mut set = host.buffer_set(&faulty, 2, &BufferSpec::new(CAPACITY)).unwrap();
        set.grow_to(GRANULE).unwrap();
        faults.plan(Call::Release, 0, Strikes::Once, Fault::Panic);
        let error = set.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
        assert_eq!(
            (host.backings()[0].state.name(), faults.held().regions),
            ("retired", 1),
            "the other plane is released"
        );
        let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
        assert_eq!(used(), GRANULE);
        assert_eq!((host.reap().released, used(), faults.held()), (1, 0, Held::default()));
    }
}
