//! Every call of a scenario that shares fails, at every index, once and for ever.
//!
//! After a failure everything is as it was: books, what the backing holds, what is owned and what is mapped, what the
//! kernel has mapped and what is resident. What failed once works the next time; and whatever failed, nothing is left in
//! the end. The pool parks nothing here, so that what is owned is what is held.

use leasehold::{
    BackingHandle, BufferSet, BufferSpec, Domain, Error, ErrorKind, Host, Prefix, PrefixSpec, SharedPrefix,
};
use leasehold_plugin_api::{self as api, Address, OptionValue, Options};
use leasehold_tests::fault::{Call, Fault, Faults, Held, Strikes};
use leasehold_tests::is_all;
use leasehold_tests::observe::{Mappings, resident_bytes};

const GRANULE: u64 = 64 << 10;
const PLANES: usize = 4;
const PLANES_BYTES: u64 = 4;
const SHARED: u64 = 3 * GRANULE;
const CAPACITY: u64 = 16 * GRANULE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Seal,
    MakeSet,
    AskCost,
    MapWhole,
    MapPart,
    Grow,
    Shrink,
    Clear,
    CloseHandle,
    CloseSet,
}

const SCENARIO: [Step; 15] = [
    Step::Create,
    Step::Seal,
    Step::MakeSet,
    Step::AskCost,
    Step::MapWhole,
    Step::MapPart,
    Step::Grow,
    Step::Shrink,
    Step::Grow,
    Step::Clear,
    Step::Grow,
    Step::Clear,
    Step::MapWhole,
    Step::CloseHandle,
    Step::CloseSet,
];

/// What a failure must leave as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    used_bytes: u64,
    held: Held,
    len: u64,
    shared: u64,
    owned_bytes: u64,
    mapped_bytes: u64,
    mappings: usize,
    resident_bytes: u64,
}

struct World {
    faults: Faults,
    host: Host,
    backing: BackingHandle,
    writable: Option<Prefix>,
    sealed: Option<SharedPrefix>,
    set: Option<BufferSet>,
}

impl World {
    fn new() -> Self {
        let faults = Faults::new();
        let options = Options::new().with("park", OptionValue::Text("0".to_owned()));
        let host = faults.pool_host(1 << 30, options).unwrap();
        let backing = host.backing("faulty").unwrap();
        assert_eq!(backing.capabilities().granularity(), Some(GRANULE));
        Self { faults, host, backing, writable: None, sealed: None, set: None }
    }

    fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).unwrap().used_bytes
    }

    fn run(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Create => {
                let mut prefix = self.host.prefix(&self.backing, &PrefixSpec::new(SHARED).planes(PLANES))?;
                (0..PLANES).for_each(|plane| prefix.plane_mut(plane).unwrap().fill(mark(plane)));
                self.writable = Some(prefix);
            }
            Step::Seal => match self.writable.take().expect("was created").seal() {
                Ok(sealed) => self.sealed = Some(sealed),
                Err(unsealed) => {
                    self.writable = Some(unsealed.prefix);
                    return Err(unsealed.error);
                }
            },
            Step::MakeSet => {
                self.set = Some(self.host.buffer_set(&self.backing, PLANES, &BufferSpec::new(CAPACITY))?);
            }
            Step::AskCost => {
                let cost = self.set().mapping_cost(&[self.sealed().whole()])?;
                assert_eq!((cost.owned_bytes, cost.mapped_bytes), (0, PLANES_BYTES * SHARED));
            }
            Step::MapWhole => {
                let prefix = self.sealed().clone();
                self.set_mut().map_prefix(&prefix)?;
            }
            Step::MapPart => {
                let part = self.sealed().part(GRANULE, GRANULE).unwrap();
                self.set_mut().map_prefixes(&[part.clone(), part])?;
            }
            Step::Grow => {
                let len = self.set().shared() + 3 * GRANULE;
                self.set_mut().grow_to(len)?;
                for plane in 0..PLANES {
                    self.set_mut().private_mut(plane).unwrap().fill(0x80 | mark(plane));
                }
            }
            Step::Shrink => {
                let len = self.set().shared() + GRANULE;
                self.set_mut().shrink_to(len)?;
            }
            Step::Clear => self.set_mut().clear()?,
            Step::CloseHandle => self.sealed.take().map_or(Ok(()), SharedPrefix::close)?,
            Step::CloseSet => self.set.take().map_or(Ok(()), BufferSet::close)?,
        }
        Ok(())
    }

    fn sealed(&self) -> &SharedPrefix {
        self.sealed.as_ref().expect("was sealed")
    }

    fn set(&self) -> &BufferSet {
        self.set.as_ref().expect("was made")
    }

    fn set_mut(&mut self) -> &mut BufferSet {
        self.set.as_mut().expect("was made")
    }

    fn places(&self) -> Vec<(Address, u64)> {
        let regions = self.set.iter().flat_map(|set| (0..PLANES).map(|plane| (set.base(plane).unwrap(), CAPACITY)));
        let windows =
            self.writable.iter().map(|prefix| prefix.base(0)).chain(self.sealed.iter().map(|prefix| prefix.base(0)));
        regions.chain(windows.flatten().map(|window| (window, PLANES_BYTES * SHARED))).collect()
    }

    fn observe(&self) -> Observed {
        let places = self.places();
        let maps = Mappings::read_settled(&places);
        Observed {
            used_bytes: self.used(),
            held: self.faults.held(),
            len: self.set.as_ref().map_or(0, BufferSet::len),
            shared: self.set.as_ref().map_or(0, BufferSet::shared),
            owned_bytes: self.set.as_ref().map_or(0, BufferSet::owned_bytes),
            mapped_bytes: self.set.as_ref().map_or(0, BufferSet::mapped_bytes),
            mappings: places.iter().map(|(base, bytes)| maps.within(*base, *bytes).count()).sum(),
            resident_bytes: places.iter().map(|(base, bytes)| resident_bytes(*base, *bytes)).sum(),
        }
    }

    fn check(&self) {
        assert_eq!(self.used(), self.faults.held().owned_bytes, "the books say what is owned");
        let Some(set) = &self.set else { return };
        assert!(set.shared() <= set.committed() && set.len() <= set.committed());
        for plane in 0..PLANES {
            let bytes = set.plane(plane).unwrap();
            let (front, back) = bytes.split_at(bytes.len().min(usize::try_from(set.shared()).unwrap()));
            assert!(is_all(front, mark(plane)), "plane {plane}: the prefix shows something else");
            let own = back.chunks(4096).all(|page| is_all(page, 0) || is_all(page, 0x80 | mark(plane)));
            assert!(own, "plane {plane}: the private part shows something else");
        }
    }

    /// Runs a step; where it fails, checks what that left, and that it works once the fault is gone.
    fn survive(&mut self, step: Step) {
        let before = self.observe();
        let Err(error) = self.run(step) else { return self.check() };
        self.check();
        if matches!(step, Step::CloseHandle | Step::CloseSet) {
            assert_eq!(error.kind(), ErrorKind::NotReleased, "{step:?}: {error}");
            self.faults.heal();
            let report = self.host.reap();
            assert!(report.released > 0 && report.remaining == 0, "{step:?}: {report:?}");
            return;
        }
        assert!([ErrorKind::OutOfMemory, ErrorKind::TierExhausted].contains(&error.kind()), "{step:?}: {error}");
        if step != Step::Clear {
            // A clear that fails half-way has given the private part back.
            assert_eq!(self.observe(), before, "{step:?}: {error}");
        }
        assert_eq!(self.observe().shared, before.shared, "{step:?}: {error}");
        self.faults.heal();
        self.run(step).unwrap_or_else(|error| panic!("{step:?} fails again: {error}"));
        self.check();
    }

    /// Drops everything, and looks for what is left.
    fn end(mut self) {
        drop((self.sealed.take(), self.writable.take(), self.set.take()));
        assert_eq!(self.used(), self.faults.held().owned_bytes, "what could not be given back stays charged");
        self.faults.heal();
        assert_eq!(self.host.reap().remaining, 0);
        assert_eq!((self.used(), self.faults.held()), (0, Held::default()));
    }
}

fn mark(plane: usize) -> u8 {
    u8::try_from(plane).unwrap() + 1
}

/// Every call that the scenario makes when nothing fails.
fn clean_calls() -> Vec<(Call, u64)> {
    let mut world = World::new();
    for step in SCENARIO {
        world.run(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        world.check();
    }
    let counts = world.faults.counts();
    world.end();
    let count = |call: &Call| counts.get(call).copied().unwrap_or(0);
    let calls = Call::FALLIBLE.iter().chain(&Call::SHARING);
    calls.flat_map(|call| (0..count(call)).map(|nth| (*call, nth))).collect()
}

#[test]
fn one_call_maps_all_planes_and_the_scenario_makes_every_call_of_shared_mapping() {
    let calls = clean_calls();
    let count = |kind| calls.iter().filter(|(call, _)| *call == kind).count();
    assert_eq!(Call::SHARING.map(count), [1, 1, 1, 3, 1, 1]);
}

#[test]
fn every_call_that_fails_leaves_everything_as_it_was_and_works_the_next_time() {
    for (call, nth) in clean_calls() {
        for kind in [api::ErrorKind::OutOfMemory, api::ErrorKind::BudgetRefused] {
            for strikes in [Strikes::Once, Strikes::Always] {
                let mut world = World::new();
                world.faults.plan(call, nth, strikes, Fault::Refuse(kind));
                SCENARIO.into_iter().for_each(|step| world.survive(step));
                assert!(world.faults.struck() > 0, "{call:?} {nth} was never made");
                world.end();
            }
        }
    }
}

#[test]
fn nothing_is_left_when_a_call_breaks_off_and_giving_back_fails_too() {
    for (call, nth) in clean_calls() {
        for second in [Call::Release, Call::ReleasePrefix, Call::Unmap] {
            let mut world = World::new();
            world.faults.plan(call, nth, Strikes::Once, Fault::Panic);
            world.faults.plan(second, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
            for step in SCENARIO {
                let has_prefix = world.sealed.is_some() || matches!(step, Step::Create | Step::MakeSet);
                let has_set = world.set.is_some() || matches!(step, Step::Create | Step::MakeSet);
                let can = match step {
                    Step::Seal => world.writable.is_some(),
                    Step::CloseHandle => true,
                    _ => has_prefix && has_set,
                };
                if can {
                    let _ = world.run(step);
                }
                assert!(world.used() >= world.faults.held().owned_bytes, "all that is owned is charged");
            }
            world.end();
        }
    }
}

/// Seen elsewhere: the values' half of a pair failed, and the keys' half stayed mapped.
#[test]
fn a_mapping_that_fails_leaves_the_private_way_open() {
    let mut world = World::new();
    for step in [Step::Create, Step::Seal, Step::MakeSet] {
        world.run(step).unwrap();
    }
    world.faults.plan(Call::MapPrefix, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::AddressSpaceExhausted));
    let error = world.run(Step::MapWhole).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted, "{error}");
    assert_eq!((world.set().shared(), world.set().mapped_bytes()), (0, 0));
    world.run(Step::Grow).unwrap();
    world.check();
    world.end();
}

#[test]
fn a_backing_that_ends_with_a_prefix_in_quarantine_frees_its_addresses() {
    for _ in 0..4 {
        let mut world = World::new();
        for step in [Step::Create, Step::Seal, Step::MakeSet, Step::MapWhole] {
            // If an address of the region before were still in the books, this backing would be taken out of service.
            world.run(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        }
        world.faults.plan(Call::Release, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        drop((world.set.take(), world.sealed.take()));
        assert!(world.used() >= PLANES_BYTES * SHARED, "what is mapped in quarantine stays charged");
    }
}

#[test]
fn a_prefix_that_only_a_quarantined_region_kept_is_counted_when_it_can_not_go_either() {
    let mut world = World::new();
    for step in [Step::Create, Step::Seal, Step::MakeSet, Step::MapWhole] {
        world.run(step).unwrap();
    }
    world.faults.plan(Call::Release, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
    drop((world.set.take(), world.sealed.take()));
    assert_eq!(world.host.reap().remaining, PLANES);
    world.faults.heal();
    world.faults.plan(Call::ReleasePrefix, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
    let report = world.host.reap();
    assert_eq!((report.released, report.remaining, report.remaining_bytes), (PLANES, 1, PLANES_BYTES * SHARED));
    world.end();
}
