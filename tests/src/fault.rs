//! A backing that fails where it is told to.
//!
//! ```text
//!   test ──► Faults ◄── shared ──► FaultyBacking ──► dyn Backing (host-mmap, say)
//!            plan, count, held       every call
//! ```
//!
//! [`FaultyBacking`] counts each call, fails those that were planned, and passes the others on to the backing that it
//! wraps. [`Faults`] is the test's side of it: what is to fail, how often each call was made, what is held. It may keep
//! the books itself, of its own host or of another, as [`Books`] says. Any thread may call; no lock is held across a
//! call. It panics where it is told to, and nowhere else.

use leasehold::{Error, Host};
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, AuthorityId, Backing, BackingError, BackingRegistration, Change,
    CommitRange, Description, Domain, ErrorKind, HostServices, MemoryRole, Options, Region, RegionId, ReleaseOutcome,
    ReleaseTarget, ReserveRequest, SharedMapping, Transfer, VirtualBacking,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kind of call to a backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is named as the method is")]
pub enum Call {
    Describe,
    Accounting,
    Granularity,
    Reserve,
    Commit,
    Decommit,
    Cost,
    CommittedBytes,
    Allocate,
    Release,
}

impl Call {
    /// The calls that can answer a failure.
    pub const FALLIBLE: [Call; 7] =
        [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::CommittedBytes, Call::Allocate, Call::Release];
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A failure of that kind, before anything is done.
    Refuse(ErrorKind),
    /// A failure of that kind, after half of it is done: of a decommit, which leaves each region a prefix of what it
    /// had and some regions more than others; of a release, which is then quarantined. Any other call refuses.
    HalfWay(ErrorKind),
    /// A panic, before anything is done.
    Panic,
}

/// How often a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strikes {
    /// At one call.
    Once,
    /// At that call and all later ones of its kind, until [`Faults::heal`].
    Always,
}

/// Who pays for what a [`FaultyBacking`] commits.
#[derive(Clone, Copy, Debug)]
pub enum Books {
    /// The buffers.
    OfTheBuffers,
    /// The backing, through these services.
    OfItsHost(HostServices),
    /// The backing, it says, on books that its host does not keep.
    Elsewhere(AuthorityId),
}

/// What a backing holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Live regions.
    pub regions: usize,
    /// Live allocations.
    pub allocations: usize,
    /// Bytes committed in them.
    pub owned_bytes: u64,
}

/// Address space that a backing handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The region or allocation.
    pub target: ReleaseTarget,
    /// Where it begins.
    pub base: Address,
    /// Its size.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    call: Call,
    nth: u64,
    strikes: Strikes,
    fault: Fault,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<Call, u64>,
    plans: Vec<Plan>,
    struck: u64,
    /// Committed bytes of all that is live.
    live: HashMap<ReleaseTarget, u64>,
    handed_out: Vec<Extent>,
}

/// What is to fail, and what was seen. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

impl Faults {
    /// Nothing fails yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails the `nth` call of a kind from now on; the next one is number 0.
    pub fn plan(&self, call: Call, nth: u64, strikes: Strikes, fault: Fault) {
        let nth = self.count(call) + nth;
        self.lock().plans.push(Plan { call, nth, strikes, fault });
    }

    /// Forgets what was planned.
    pub fn heal(&self) {
        self.lock().plans.clear();
    }

    /// How many calls of a kind were made.
    #[must_use]
    pub fn count(&self, call: Call) -> u64 {
        self.lock().counts.get(&call).copied().unwrap_or(0)
    }

    /// How many calls were made, by kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Call, u64> {
        self.lock().counts.clone()
    }

    /// How many calls failed as planned.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.lock().struck
    }

    /// What is held now.
    #[must_use]
    pub fn held(&self) -> Held {
        let state = self.lock();
        let regions = state.live.keys().filter(|target| matches!(target, ReleaseTarget::Region(_))).count();
        Held { regions, allocations: state.live.len() - regions, owned_bytes: state.live.values().sum() }
    }

    /// All address space that ever was handed out, given back or not.
    #[must_use]
    pub fn handed_out(&self) -> Vec<Extent> {
        self.lock().handed_out.clone()
    }

    /// A host that has one backing, `"faulty"`: the built-in host-mmap behind these faults.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::load`](leasehold::HostBuilder::load).
    pub fn host(&self, limit_bytes: u64) -> Result<Host, Error> {
        self.host_with(limit_bytes, |_| Books::OfTheBuffers)
    }

    /// The same, with books as `books` makes them.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::load`](leasehold::HostBuilder::load).
    pub fn host_with(
        &self,
        limit_bytes: u64,
        books: impl FnOnce(HostServices) -> Books + 'static,
    ) -> Result<Host, Error> {
        let faults = self.clone();
        let create = move |services: HostServices| -> Result<Box<dyn Backing>, BackingError> {
            Ok(Box::new(FaultyBacking::new(host_mmap(services)?, &faults, books(services))))
        };
        Host::builder().limit(Domain::Host, limit_bytes).with_backing("faulty", create).load()
    }

    fn next(&self, call: Call) -> Option<Fault> {
        let mut state = self.lock();
        let count = state.counts.entry(call).or_default();
        let number = *count;
        *count += 1;
        let hit = |plan: &&Plan| {
            plan.call == call
                && match plan.strikes {
                    Strikes::Once => plan.nth == number,
                    Strikes::Always => plan.nth <= number,
                }
        };
        let fault = state.plans.iter().find(hit).map(|plan| plan.fault)?;
        state.struck += 1;
        Some(fault)
    }

    fn hand_out(&self, target: ReleaseTarget, base: Address, bytes: u64, owned_bytes: u64) {
        let mut state = self.lock();
        state.handed_out.push(Extent { target, base, bytes });
        state.live.insert(target, owned_bytes);
    }

    /// Adds to what is committed in each region, or takes from it.
    fn settle(&self, ranges: &[CommitRange], change: impl Fn(u64, u64) -> u64) {
        let mut state = self.lock();
        for range in ranges {
            if let Some(committed) = state.live.get_mut(&ReleaseTarget::Region(range.region())) {
                *committed = change(*committed, range.bytes);
            }
        }
    }

    fn owned_by(&self, target: ReleaseTarget) -> u64 {
        self.lock().live.get(&target).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The built-in host-mmap, with its default options.
///
/// # Errors
///
/// What its creation answers.
///
/// # Panics
///
/// When it isn't linked in.
pub fn host_mmap(services: HostServices) -> Result<Box<dyn Backing>, BackingError> {
    let linked_in = BackingRegistration::linked_in();
    let host_mmap = linked_in.iter().find(|registration| registration.name() == "host-mmap").expect("is linked in");
    host_mmap.create(&Options::new(), services)
}

/// A backing that counts calls, fails those that were planned, and passes the others on.
pub struct FaultyBacking {
    inner: Box<dyn Backing>,
    faults: Faults,
    books: Books,
}

impl std::fmt::Debug for FaultyBacking {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FaultyBacking").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl FaultyBacking {
    /// Wraps a backing.
    #[must_use]
    pub fn new(inner: Box<dyn Backing>, faults: &Faults, books: Books) -> Self {
        Self { inner, faults: faults.clone(), books }
    }

    /// Counts a call, and answers its fault where one was planned. Only `HalfWay` is left to the caller.
    fn pass(&self, call: Call) -> Result<Option<BackingError>, BackingError> {
        match self.faults.next(call) {
            None => Ok(None),
            Some(Fault::Refuse(kind)) => Err(planned(call, kind)),
            Some(Fault::HalfWay(kind)) => Ok(Some(planned(call, kind))),
            Some(Fault::Panic) => panic!("{call:?} panics as planned"),
        }
    }

    fn pass_whole(&self, call: Call) -> Result<(), BackingError> {
        self.pass(call)?.map_or(Ok(()), Err)
    }

    fn growable(&self) -> &dyn VirtualBacking {
        self.inner.as_virtual_backing().expect("only reached where it is offered")
    }

    fn charge(&self, bytes: u64) -> Result<(), BackingError> {
        match self.books {
            Books::OfItsHost(services) => services.charge(Domain::Host, bytes, MemoryRole::KvCache),
            Books::OfTheBuffers | Books::Elsewhere(_) => Ok(()),
        }
    }

    fn refund(&self, bytes: u64) {
        if let Books::OfItsHost(services) = self.books {
            services.refund(Domain::Host, bytes).expect("it was charged");
        }
    }

    fn take_away(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let change = self.growable().decommit(ranges)?;
        self.faults.settle(ranges, |committed, bytes| committed - bytes);
        self.refund(change.owned_bytes);
        Ok(change)
    }

    /// Takes the upper half of a region away, and says what is left.
    fn release_half(&self, target: ReleaseTarget) -> u64 {
        let owned = self.faults.owned_by(target);
        let ReleaseTarget::Region(id) = target else { return owned };
        let half = half_of(&[CommitRange::new(id, 0, owned)], self.growable().granularity());
        if !half.is_empty() {
            self.take_away(&half).expect("what is committed can be decommitted");
        }
        self.faults.owned_by(target)
    }
}

fn planned(call: Call, kind: ErrorKind) -> BackingError {
    BackingError::new(kind, format!("{call:?} fails as planned")).with_native_code(12)
}

/// The upper half of every other range, and the whole of the others: regions are left with prefixes that differ.
fn half_of(ranges: &[CommitRange], granule: u64) -> Vec<CommitRange> {
    let gone = |(index, range): (usize, &CommitRange)| {
        let bytes = if index % 2 == 0 { range.bytes / granule / 2 * granule } else { range.bytes };
        (bytes > 0).then(|| CommitRange::new(range.region(), range.offset + range.bytes - bytes, bytes))
    };
    ranges.iter().enumerate().filter_map(gone).collect()
}

impl Backing for FaultyBacking {
    fn describe(&self) -> Description {
        let _ = self.faults.next(Call::Describe);
        self.inner.describe()
    }

    fn accounting(&self) -> Accounting {
        let _ = self.faults.next(Call::Accounting);
        match self.books {
            Books::OfTheBuffers => Accounting::Buffer,
            Books::OfItsHost(services) => {
                Accounting::Backing { authority: services.authority(Domain::Host).expect("the host keeps books") }
            }
            Books::Elsewhere(authority) => Accounting::Backing { authority },
        }
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.pass_whole(Call::Allocate)?;
        let made = self.inner.allocate(request)?;
        if let Err(refusal) = self.charge(made.bytes) {
            let _ = self.inner.release(ReleaseTarget::Allocation(made.id));
            return Err(refusal);
        }
        self.faults.hand_out(ReleaseTarget::Allocation(made.id), made.base, made.bytes, made.bytes);
        Ok(made)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        match self.pass(Call::Release) {
            Ok(None) => {}
            Ok(Some(error)) => {
                return ReleaseOutcome::Quarantined { remaining_bytes: self.release_half(target), error };
            }
            Err(error) => return ReleaseOutcome::Failed(error),
        }
        let outcome = self.inner.release(target);
        if outcome == ReleaseOutcome::Complete {
            let owned = self.faults.lock().live.remove(&target);
            self.refund(owned.unwrap_or(0));
        }
        outcome
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.inner.as_virtual_backing().map(|_| self as &dyn VirtualBacking)
    }

    fn as_shared_mapping(&self) -> Option<&dyn SharedMapping> {
        self.inner.as_shared_mapping()
    }

    fn as_transfer(&self) -> Option<&dyn Transfer> {
        self.inner.as_transfer()
    }
}

impl VirtualBacking for FaultyBacking {
    fn granularity(&self) -> u64 {
        let _ = self.faults.next(Call::Granularity);
        self.growable().granularity()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.pass_whole(Call::Reserve)?;
        let region = self.growable().reserve(request)?;
        self.faults.hand_out(ReleaseTarget::Region(region.id), region.base, region.bytes, 0);
        Ok(region)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.pass_whole(Call::Commit)?;
        let cost = self.growable().cost(ranges)?;
        self.charge(cost.owned_bytes)?;
        let change = self.growable().commit(ranges).inspect_err(|_| self.refund(cost.owned_bytes))?;
        self.faults.settle(ranges, |committed, bytes| committed + bytes);
        Ok(change)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        let Some(error) = self.pass(Call::Decommit)? else { return self.take_away(ranges) };
        let half = half_of(ranges, self.growable().granularity());
        if !half.is_empty() {
            self.take_away(&half)?;
        }
        Err(error)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.pass_whole(Call::Cost)?;
        self.growable().cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.pass_whole(Call::CommittedBytes)?;
        self.growable().committed_bytes(region)
    }
}
