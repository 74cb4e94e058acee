//! The scenario that is failed at every call: its steps, and what of it can be seen.

use crate::setup::{SetFigures, host, live, used};
use leasehold::{
    Allocation, AllocationSpec, BackingHandle, BufferSet, BufferSpec, Error, HolderId, Host, Prefix, PrefixSpec,
    SharedPrefix,
};
use leasehold_tests::cuda::{Counts, Simulator};
use leasehold_tests::is_all;

/// The granule of these tests: nothing here depends on its size, and a small one is quickly filled.
pub(super) const UNIT: u64 = 4096;
pub(super) const PLANES: usize = 4;
const CAPACITY: u64 = 16 * UNIT;
/// The bytes of each plane of the prefix.
const SHARED: u64 = 2 * UNIT;
/// Where the marks of the prefix and of the other set begin; those of the first set begin after 0.
const PREFIX: u8 = 0x10;
const OTHER: u8 = 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    MakeSet,
    Grow,
    GrowAgain,
    Write,
    Read,
    Shrink,
    Regrow,
    CreatePrefix,
    WritePrefix,
    Seal,
    MakeOther,
    Map,
    GrowBehind,
    WriteBehind,
    Clear,
    CloseOther,
    ClosePrefix,
    Trim,
    Allocate,
    CloseAllocation,
    CloseSet,
}

const OWN: [Step; 7] =
    [Step::MakeSet, Step::Grow, Step::GrowAgain, Step::Write, Step::Read, Step::Shrink, Step::Regrow];
const SHARING: [Step; 11] = [
    Step::CreatePrefix,
    Step::WritePrefix,
    Step::Seal,
    Step::MakeOther,
    Step::Map,
    Step::GrowBehind,
    Step::WriteBehind,
    Step::Clear,
    Step::CloseOther,
    Step::ClosePrefix,
    Step::Trim,
];
const END: [Step; 3] = [Step::Allocate, Step::CloseAllocation, Step::CloseSet];

impl Step {
    /// Whether it gives back: what of it fails stays charged, and is tried again.
    pub(super) fn closes(self) -> bool {
        matches!(self, Step::CloseOther | Step::ClosePrefix | Step::CloseAllocation | Step::CloseSet)
    }

    /// Whether it may have happened in part where it failed.
    pub(super) fn may_be_partly_done(self) -> bool {
        self.closes()
            || matches!(
                self,
                Step::Write | Step::WritePrefix | Step::WriteBehind | Step::Shrink | Step::Clear | Step::Trim
            )
    }
}

/// The steps for a backing.
pub(super) fn scenario(name: &str) -> Vec<Step> {
    let sharing = SHARING.iter().filter(|_| name == "cuda-pool");
    OWN.iter().chain(sharing).chain(&END).copied().collect()
}

/// What a failure must leave as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) used_bytes: u64,
    pub(super) books: Counts,
    sets: Vec<SetFigures>,
}

impl Observed {
    /// Whether everything is as it was before. Where `undoes` is false nothing can be given back: a pool then parks what
    /// it made, and planes of a set that was not made keep their addresses until they are reaped.
    pub(super) fn is_as(&self, before: &Self, undoes: bool) -> bool {
        if undoes {
            return self == before;
        }
        self.sets == before.sets && self.books.mappings == before.books.mappings && self.used_bytes == self.books.bytes
    }
}

/// One backing in one host, and what the scenario made.
pub(super) struct World<'s> {
    pub(super) simulator: &'s Simulator,
    pub(super) host: Host,
    pub(super) backing: BackingHandle,
    pub(super) set: Option<BufferSet>,
    other: Option<BufferSet>,
    writable: Option<Prefix>,
    sealed: Option<SharedPrefix>,
    allocation: Option<Allocation>,
    /// How far the first set still shows what was written.
    written: u64,
}

impl<'s> World<'s> {
    pub(super) fn new(simulator: &'s Simulator, name: &'static str) -> Self {
        let park = [("park", "32768")];
        let (host, backing) = host(name, if name == "cuda-pool" { &park } else { &[] });
        assert_eq!(backing.capabilities().granularity(), Some(UNIT));
        // The context is made now: it stays where a step fails, and the calls that make it are no step's.
        drop(host.buffer_set(&backing, 1, &BufferSpec::new(UNIT)).expect("the driver is well"));
        let (set, other, writable, sealed, allocation) = (None, None, None, None, None);
        Self { simulator, host, backing, set, other, writable, sealed, allocation, written: 0 }
    }

    pub(super) fn run(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::MakeSet => self.set = Some(self.make_set(1)?),
            Step::Grow => self.set_mut().grow_to(3 * UNIT)?,
            Step::GrowAgain => self.set_mut().grow_to(6 * UNIT)?,
            Step::Write => self.write()?,
            Step::Read => self.check_planes()?,
            Step::Shrink => {
                self.written = 2 * UNIT;
                self.set_mut().shrink_to(2 * UNIT)?;
            }
            Step::Regrow => self.set_mut().grow_to(4 * UNIT)?,
            Step::CreatePrefix => {
                let spec = PrefixSpec::new(SHARED).planes(PLANES).holder(HolderId::new(2));
                self.writable = Some(self.host.prefix(&self.backing, &spec)?);
            }
            Step::WritePrefix => {
                let prefix = self.writable.as_mut().expect("was created");
                (0..PLANES).try_for_each(|plane| prefix.write(plane, 0, &bytes_of(PREFIX | mark(plane), SHARED)))?;
            }
            Step::Seal => match self.writable.take().expect("was created").seal() {
                Ok(sealed) => self.sealed = Some(sealed),
                Err(unsealed) => {
                    self.writable = Some(unsealed.prefix);
                    return Err(unsealed.error);
                }
            },
            Step::MakeOther => self.other = Some(self.make_set(2)?),
            Step::Map => {
                let prefix = self.sealed.clone().expect("was sealed");
                self.other_mut().map_prefix(&prefix)?;
            }
            Step::GrowBehind => self.other_mut().grow_to(SHARED + UNIT)?,
            Step::WriteBehind => {
                (0..PLANES).try_for_each(|plane| self.other_mut().fill(plane, SHARED, UNIT, OTHER | mark(plane)))?;
            }
            Step::Clear => self.other_mut().clear()?,
            Step::Trim => self.host.trim(&self.backing, u64::MAX).map(|_| ())?,
            Step::Allocate => {
                let spec = AllocationSpec::new(3 * UNIT - 1);
                self.allocation = Some(self.host.allocate(&self.backing, &spec)?);
            }
            Step::CloseOther => self.other.take().map_or(Ok(()), BufferSet::close)?,
            Step::ClosePrefix => self.sealed.take().map_or(Ok(()), SharedPrefix::close)?,
            Step::CloseAllocation => self.allocation.take().map_or(Ok(()), Allocation::close)?,
            Step::CloseSet => self.set.take().map_or(Ok(()), BufferSet::close)?,
        }
        Ok(())
    }

    fn make_set(&self, holder: u64) -> Result<BufferSet, Error> {
        let spec = BufferSpec::new(CAPACITY).holder(HolderId::new(holder));
        self.host.buffer_set(&self.backing, PLANES, &spec)
    }

    fn write(&mut self) -> Result<(), Error> {
        for plane in 0..PLANES {
            self.set_mut().fill(plane, 0, 3 * UNIT, mark(plane))?;
            self.set_mut().write(plane, 3 * UNIT, &bytes_of(mark(plane), 3 * UNIT))?;
        }
        self.written = 6 * UNIT;
        Ok(())
    }

    fn set_mut(&mut self) -> &mut BufferSet {
        self.set.as_mut().expect("was made")
    }

    fn other_mut(&mut self) -> &mut BufferSet {
        self.other.as_mut().expect("was made")
    }

    pub(super) fn is_retired(&self) -> bool {
        self.host.backings()[0].state.name() == "retired"
    }

    pub(super) fn used(&self) -> u64 {
        used(&self.host)
    }

    pub(super) fn observe(&self) -> Observed {
        let sets = self.set.iter().chain(&self.other).map(SetFigures::of).collect();
        Observed { used_bytes: self.used(), books: self.simulator.counts(), sets }
    }

    /// What is owned is charged, and where nothing is in doubt, nothing else is. Nobody sees what is another's.
    pub(super) fn check(&self) {
        assert_eq!(self.used(), self.simulator.counts().bytes, "what is owned is charged");
        if !self.is_retired() {
            self.check_planes().unwrap();
        }
    }

    fn check_planes(&self) -> Result<(), Error> {
        let read = |set: &BufferSet, plane| -> Result<Vec<u8>, Error> {
            let mut bytes = bytes_of(0xEE, set.len().min(set.committed()));
            set.read(plane, 0, &mut bytes).map(|()| bytes)
        };
        for plane in 0..PLANES {
            if let Some(set) = &self.set {
                let bytes = read(set, plane)?;
                let (kept, rest) = bytes.split_at(bytes.len().min(size(self.written)));
                assert!(is_all(kept, mark(plane)), "plane {plane} lost what was written");
                assert!(rest.chunks(size(UNIT)).all(|unit| shows_only(unit, 0)), "plane {plane} shows another's");
            }
            if let Some(set) = &self.other {
                let bytes = read(set, plane)?;
                let (front, rest) = bytes.split_at(bytes.len().min(size(set.shared())));
                assert!(is_all(front, PREFIX | mark(plane)), "plane {plane}: the prefix shows something else");
                assert!(rest.chunks(size(UNIT)).all(|unit| shows_only(unit, OTHER)), "plane {plane} shows another's");
            }
        }
        Ok(())
    }

    /// Drops everything that the scenario made.
    pub(super) fn forget_objects(&mut self) {
        drop((self.sealed.take(), self.writable.take(), self.set.take(), self.other.take(), self.allocation.take()));
    }

    /// Drops everything, and looks for what is left once the driver is well again.
    pub(super) fn end(mut self) {
        self.forget_objects();
        assert!(self.used() >= self.simulator.counts().bytes, "what could not be given back stays charged");
        self.simulator.heal();
        let report = self.host.reap();
        assert_eq!((report.remaining, report.remaining_bytes), (0, 0));
        self.host.trim(&self.backing, u64::MAX).unwrap();
        assert_eq!((self.used(), live(self.simulator)), (0, Counts::default()), "charged, live");
        let simulator = self.simulator;
        drop(self);
        assert_eq!(simulator.counts(), Counts::default(), "something outlives the host");
    }
}

/// Whether a unit is zero, or shows what one of a holder's planes wrote.
fn shows_only(unit: &[u8], marks: u8) -> bool {
    is_all(unit, 0) || (0..PLANES).any(|plane| is_all(unit, marks | mark(plane)))
}

fn mark(plane: usize) -> u8 {
    u8::try_from(plane).unwrap() + 1
}

fn bytes_of(byte: u8, bytes: u64) -> Vec<u8> {
    vec![byte; size(bytes)]
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}
