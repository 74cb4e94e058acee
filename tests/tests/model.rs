//! Random operations on several sets and allocations, against a plain model of what they hold.
//!
//! The model knows bytes, lengths and what may be committed; it knows nothing of regions, leases or ranges. After every
//! operation, failed ones included, the library must agree with it.

use leasehold::{
    Address, Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Domain, Error, ErrorKind, GrowthPolicy,
    Host,
};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Held, Strikes};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PAGE: u64 = 4 << 10;
const CAPACITY: u64 = 24 * PAGE;
const LIMIT: u64 = 64 * PAGE;
/// Sets and allocations that live at once.
const SLOTS: usize = 3;

#[derive(Clone, Debug)]
enum Operation {
    New { slot: usize, planes: usize, policy: GrowthPolicy },
    Grow { slot: usize, len: u64 },
    Shrink { slot: usize, len: u64 },
    Write { slot: usize, plane: usize, at: u64, mark: u8 },
    Drop { slot: usize },
    Close { slot: usize },
    Allocate { slot: usize, bytes: u64 },
    Release { slot: usize },
    Fail { call: Call, nth: u64, strikes: Strikes, half: Half },
    Heal,
    Reap,
    SetLimit { bytes: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Half {
    Nothing,
    Half,
}

/// One set as a plain program would keep it.
struct SetModel {
    set: BufferSet,
    bases: Vec<Address>,
    policy: GrowthPolicy,
    /// What each plane reads as.
    planes: Vec<Vec<u8>>,
    /// Every mark that this set ever wrote, and zero: what a byte that came back after a shrink may read as.
    marks: BTreeSet<u8>,
}

impl SetModel {
    fn new(set: BufferSet, policy: GrowthPolicy) -> Self {
        let bases = (0..set.planes()).map(|plane| set.base(plane).unwrap()).collect();
        let planes = vec![Vec::new(); set.planes()];
        Self { set, bases, policy, planes, marks: BTreeSet::from([0]) }
    }

    fn len(&self) -> usize {
        self.planes[0].len()
    }

    fn check(&self, clean: bool) {
        let set = &self.set;
        assert_eq!(usize::try_from(set.len()).unwrap(), self.len());
        assert!(set.len() <= set.committed() && set.committed() <= set.capacity());
        assert!(set.committed().is_multiple_of(PAGE) && set.capacity() == CAPACITY);
        if clean && self.policy == GrowthPolicy::Exact {
            assert_eq!(set.committed_total(), set.len().next_multiple_of(PAGE) * self.planes.len() as u64);
        }
        for (plane, model) in self.planes.iter().enumerate() {
            assert_eq!(set.base(plane), Some(self.bases[plane]), "a plane moved");
            assert!(set.plane(plane).unwrap() == model, "plane {plane} reads as something else");
        }
    }

    fn grown(&mut self, len: usize) {
        for (plane, model) in self.planes.iter_mut().enumerate().filter(|(_, model)| model.len() < len) {
            let fresh = &self.set.plane(plane).unwrap()[model.len()..];
            let stranger = fresh.chunk_by(u8::eq).find(|run| !self.marks.contains(&run[0]));
            assert_eq!(stranger, None, "plane {plane} shows bytes that are not its own");
            model.extend_from_slice(fresh);
        }
    }

    fn shrunk(&mut self, len: usize) {
        for plane in &mut self.planes {
            plane.truncate(len);
        }
    }
}

struct World {
    faults: Faults,
    host: Host,
    backing: BackingHandle,
    sets: [Option<SetModel>; SLOTS],
    allocations: [Option<(Allocation, Vec<u8>)>; SLOTS],
    limit: u64,
    /// How many calls had failed as planned before this operation.
    struck: u64,
    /// No fault was planned yet: then every refusal has a reason that the model knows.
    clean: bool,
    /// The backing could always tell what a failed shrink left.
    tells: bool,
    /// The backing took back all that it was given back.
    takes_back: bool,
}

impl World {
    fn new(books: fn(api::HostServices) -> Books) -> Self {
        let faults = Faults::new();
        let host = faults.host_with(LIMIT, books).unwrap();
        let backing = host.backing("faulty").unwrap();
        let (sets, allocations) = (Default::default(), Default::default());
        Self {
            faults,
            host,
            backing,
            sets,
            allocations,
            limit: LIMIT,
            struck: 0,
            clean: true,
            tells: true,
            takes_back: true,
        }
    }

    fn used(&self) -> u64 {
        self.host.snapshot().domain(Domain::Host).unwrap().used_bytes
    }

    fn apply(&mut self, operation: &Operation) {
        self.struck = self.faults.struck();
        match *operation {
            Operation::New { slot, planes, policy } => self.make(slot, planes, policy),
            Operation::Grow { slot, len } => self.grow(slot, len),
            Operation::Shrink { slot, len } => self.shrink(slot, len),
            Operation::Write { slot, plane, at, mark } => self.write(slot, plane, at, mark),
            Operation::Drop { slot } => drop(self.sets[slot].take()),
            Operation::Close { slot } => {
                let outcome = self.sets[slot].take().map_or(Ok(()), |model| model.set.close());
                self.allow(outcome, &[ErrorKind::NotReleased]);
            }
            Operation::Allocate { slot, bytes } => self.allocate(slot, bytes),
            Operation::Release { slot } => {
                let outcome = self.allocations[slot].take().map_or(Ok(()), |(allocation, _)| allocation.close());
                self.allow(outcome, &[ErrorKind::NotReleased]);
            }
            Operation::Fail { call, nth, strikes, half } => self.fail(call, nth, strikes, half),
            Operation::Heal => self.faults.heal(),
            Operation::Reap => {
                let before = self.used();
                let report = self.host.reap();
                assert!(self.used() <= before && (report.remaining == 0 || !self.clean));
            }
            Operation::SetLimit { bytes } => {
                self.host.governor().set_limit(Domain::Host, bytes).unwrap();
                self.limit = bytes;
            }
        }
    }

    /// Takes an outcome; a failure is one that the operation may have, or comes from a call that failed as planned.
    fn allow(&self, outcome: Result<(), Error>, expected: &[ErrorKind]) -> bool {
        let Err(error) = outcome else { return true };
        let may_be = match error.kind() {
            ErrorKind::TierExhausted | ErrorKind::CapacityExceeded => expected.contains(&error.kind()),
            ErrorKind::NotReleased => expected.contains(&error.kind()) && self.faults.struck() > self.struck,
            ErrorKind::Backing => self.faults.struck() > self.struck,
            _ => false,
        };
        assert!(may_be, "{error}");
        false
    }

    fn make(&mut self, slot: usize, planes: usize, policy: GrowthPolicy) {
        let spec = BufferSpec::new(CAPACITY).growth(policy);
        match self.host.buffer_set(&self.backing, planes, &spec) {
            Ok(set) => self.sets[slot] = Some(SetModel::new(set, policy)),
            Err(error) => {
                self.allow(Err(error), &[]);
            }
        }
    }

    fn grow(&mut self, slot: usize, len: u64) {
        let used = self.used();
        let Some(mut model) = self.sets[slot].take() else { return };
        let before = model.set.committed_total();
        let outcome = model.set.grow_to(len);
        if let Err(error) = &outcome {
            let needed = (model.planes.len() as u64 * len.next_multiple_of(PAGE)).saturating_sub(before);
            let reason = match error.kind() {
                ErrorKind::CapacityExceeded => len > CAPACITY,
                ErrorKind::TierExhausted => used + needed > self.limit || !self.clean,
                _ => !self.clean,
            };
            assert!(reason, "grow to {len}: {error}");
        } else if model.set.committed_total() > before {
            assert!(self.used() <= self.limit, "grew past the limit");
        }
        if self.allow(outcome, &[ErrorKind::TierExhausted, ErrorKind::CapacityExceeded]) {
            model.grown(usize::try_from(len).unwrap());
        }
        self.sets[slot] = Some(model);
    }

    fn shrink(&mut self, slot: usize, len: u64) {
        let Some(mut model) = self.sets[slot].take() else { return };
        let outcome = model.set.shrink_to(len);
        if self.allow(outcome, &[]) {
            model.shrunk(usize::try_from(len).unwrap());
        } else {
            // What is left is the library's to say; it is never more than before, nor less than was asked for.
            let left = usize::try_from(model.set.len()).unwrap();
            assert!(left <= model.len() && left >= model.len().min(usize::try_from(len).unwrap()));
            model.shrunk(left);
        }
        self.sets[slot] = Some(model);
    }

    fn write(&mut self, slot: usize, plane: usize, at: u64, mark: u8) {
        let Some(model) = &mut self.sets[slot] else { return };
        let plane = plane % model.planes.len();
        let at = usize::try_from(at).unwrap();
        let end = model.len().min(at.saturating_add(5000));
        if at < end {
            // Each slot has marks of its own, so that bytes of another set are told apart.
            let mark = mark % 80 + 1 + u8::try_from(slot).unwrap() * 80;
            model.set.plane_mut(plane).unwrap()[at..end].fill(mark);
            model.planes[plane][at..end].fill(mark);
            model.marks.insert(mark);
        }
    }

    fn allocate(&mut self, slot: usize, bytes: u64) {
        self.allocations[slot] = None;
        let used = self.used();
        match self.host.allocate(&self.backing, &AllocationSpec::new(bytes)) {
            Ok(mut allocation) => {
                assert!(allocation.as_slice().unwrap().iter().all(|byte| *byte == 0));
                allocation.as_mut_slice().unwrap().fill(255);
                let model = vec![255; usize::try_from(bytes).unwrap()];
                self.allocations[slot] = Some((allocation, model));
            }
            Err(error) => {
                assert!(!self.clean || used + bytes.next_multiple_of(PAGE) > self.limit, "{bytes}: {error}");
                self.allow(Err(error), &[ErrorKind::TierExhausted]);
            }
        }
    }

    fn fail(&mut self, call: Call, nth: u64, strikes: Strikes, half: Half) {
        self.clean = false;
        self.tells &= call != Call::CommittedBytes;
        self.takes_back &= call != Call::Release;
        let kind = api::ErrorKind::Internal;
        let fault = match half {
            Half::Nothing => Fault::Refuse(kind),
            Half::Half => Fault::HalfWay(kind),
        };
        self.faults.plan(call, nth, strikes, fault);
    }

    fn check(&self) {
        let held = self.faults.held();
        let sets: u64 = self.sets.iter().flatten().map(|model| model.set.committed_total()).sum();
        let allocations: u64 = self.allocations.iter().flatten().map(|(made, _)| made.owned_bytes()).sum();
        if self.tells && self.takes_back {
            assert_eq!(self.used(), sets + allocations, "what is charged is what is committed");
        }
        if self.tells {
            assert_eq!(self.used(), held.owned_bytes, "all that is owned is charged, quarantined or not");
        } else {
            assert!(self.used() >= held.owned_bytes, "all that may be owned is charged");
        }
        for model in self.sets.iter().flatten() {
            model.check(self.clean);
        }
        for (allocation, model) in self.allocations.iter().flatten() {
            assert_eq!(allocation.as_slice().unwrap(), model);
        }
    }

    /// Gives everything back; nothing may be left.
    fn end(mut self) {
        self.faults.heal();
        self.sets = Default::default();
        self.allocations = Default::default();
        assert_eq!(self.host.reap().remaining, 0);
        assert_eq!((self.used(), self.faults.held()), (0, Held::default()));
    }
}

fn policies() -> impl Strategy<Value = GrowthPolicy> {
    prop_oneof![Just(GrowthPolicy::Exact), (1..12 * PAGE).prop_map(GrowthPolicy::Step), Just(GrowthPolicy::Geometric),]
}

/// Lengths around the edges of granules, and now and then past the capacity.
fn lengths() -> impl Strategy<Value = u64> {
    (0..=CAPACITY / PAGE + 1, 0..3_u64).prop_map(|(granules, off)| (granules * PAGE + off).saturating_sub(1))
}

fn faults() -> impl Strategy<Value = Operation> {
    let calls = prop_oneof![Just(Call::Decommit), prop::sample::select(Call::FALLIBLE.as_slice())];
    let strikes = prop_oneof![3 => Just(Strikes::Once), 1 => Just(Strikes::Always)];
    let half = prop_oneof![Just(Half::Nothing), Just(Half::Half)];
    (calls, 0..2_u64, strikes, half).prop_map(|(call, nth, strikes, half)| Operation::Fail { call, nth, strikes, half })
}

/// What an engine does.
fn sound() -> impl Strategy<Value = Operation> {
    let slot = 0..SLOTS;
    prop_oneof![
        4 => (slot.clone(), 1..4_usize, policies())
            .prop_map(|(slot, planes, policy)| Operation::New { slot, planes, policy }),
        12 => (slot.clone(), lengths()).prop_map(|(slot, len)| Operation::Grow { slot, len }),
        8 => (slot.clone(), lengths()).prop_map(|(slot, len)| Operation::Shrink { slot, len }),
        12 => (slot.clone(), 0..4_usize, 0..CAPACITY, any::<u8>())
            .prop_map(|(slot, plane, at, mark)| Operation::Write { slot, plane, at, mark }),
        1 => slot.clone().prop_map(|slot| Operation::Drop { slot }),
        1 => slot.clone().prop_map(|slot| Operation::Close { slot }),
        2 => (slot.clone(), 1..8 * PAGE).prop_map(|(slot, bytes)| Operation::Allocate { slot, bytes }),
        1 => slot.prop_map(|slot| Operation::Release { slot }),
        1 => (0..2 * LIMIT).prop_map(|bytes| Operation::SetLimit { bytes }),
        1 => Just(Operation::Reap),
    ]
}

/// What an engine does while its backing fails now and then.
fn broken() -> impl Strategy<Value = Operation> {
    prop_oneof![14 => sound(), 1 => faults(), 1 => Just(Operation::Heal)]
}

fn play(books: fn(api::HostServices) -> Books, operations: &[Operation]) {
    let mut world = World::new(books);
    for operation in operations {
        world.apply(operation);
        world.check();
    }
    world.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_agree_with_a_plain_model(operations in prop::collection::vec(sound(), 1..60)) {
        play(|_| Books::OfTheBuffers, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_where_the_backing_charges(
        operations in prop::collection::vec(sound(), 1..60),
    ) {
        play(Books::OfItsHost, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails(operations in prop::collection::vec(broken(), 1..60)) {
        play(|_| Books::OfTheBuffers, &operations);
    }

    #[test]
    fn sets_agree_with_a_plain_model_whatever_fails_where_the_backing_charges(
        operations in prop::collection::vec(broken(), 1..60),
    ) {
        play(Books::OfItsHost, &operations);
    }
}
