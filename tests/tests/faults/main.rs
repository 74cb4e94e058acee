//! Every call of a scenario fails, at every index, once and for ever, before and half-way through.
//!
//! A clean run tells how many calls there are; the sweeps fail each in turn. After a failure everything is as it was:
//! books, what the backing holds, what the kernel has mapped and what is resident. What failed once works the next
//! time, with the right bytes; and whatever failed, nothing is left in the end.

mod failing_releases;
mod quarantine;
mod retirement;
mod sweeps;

use leasehold::{Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Domain, Error, ErrorKind, Host};
use leasehold_host_mmap::HostMmap;
use leasehold_plugin_api as api;
use leasehold_plugin_api::BackingFactory as _;
use leasehold_tests::fault::{Fault, Faults, FaultyBacking, Held, Under, host_mmap};
use leasehold_tests::observe::{Mappings, resident_bytes};
use std::sync::{Mutex, MutexGuard, PoisonError};

const GRANULE: u64 = 4 << 10;
const PLANES: usize = 4;

/// So large that nothing else in this process can take all of it once it was given back.
const CAPACITY: u64 = 1 << 40;

/// The longest that a plane gets, in granules.
const LONGEST: u64 = 20;
const LIMIT: u64 = 1 << 30;

/// Lets one test run at a time: the next one must not take address space that was given back before this one has looked.
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

    /// What was written last is still there, at least at the beginning of each plane.
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

const REFUSALS: [Fault; 4] = [
    Fault::Refuse(api::ErrorKind::OutOfMemory),
    Fault::Refuse(api::ErrorKind::AddressSpaceExhausted),
    Fault::Refuse(api::ErrorKind::BudgetRefused),
    Fault::Refuse(api::ErrorKind::Internal),
];

/// A host with a backing that can fail and one that can't.
fn two_backings(under: Under, faults: &Faults) -> Host {
    Host::builder()
        .limit(Domain::Host, LIMIT)
        .with_accessible_backing("faulty", FaultyBacking::ACCESS, under.create(faults))
        .with_accessible_backing("sound", HostMmap::HOST_ACCESS, host_mmap)
        .load()
        .unwrap()
}
