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

mod faulty_backing;
mod host_memory;
mod linked;
mod under;

pub use faulty_backing::FaultyBacking;
pub use host_memory::HostMemory;
pub use linked::{creator, host_mmap, linked_in};
pub use under::Under;

use leasehold::{Error, Host};
use leasehold_host_pool::HostPool;
use leasehold_plugin_api::{
    Address, AuthorityId, BackingFactory, CommitRange, Domain, ErrorKind, HostServices, Options, PrefixId,
    ReleaseTarget,
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
    CreatePrefix,
    Seal,
    IncrementalOwnedBytes,
    MapPrefix,
    Unmap,
    ReleasePrefix,
    Trim,
}

impl Call {
    /// The calls of every backing that grows that can answer a failure.
    pub const FALLIBLE: [Call; 7] =
        [Call::Reserve, Call::Commit, Call::Decommit, Call::Cost, Call::CommittedBytes, Call::Allocate, Call::Release];

    /// The calls of shared mapping that can.
    pub const SHARING: [Call; 6] = [
        Call::CreatePrefix,
        Call::Seal,
        Call::IncrementalOwnedBytes,
        Call::MapPrefix,
        Call::Unmap,
        Call::ReleasePrefix,
    ];
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A failure of that kind, before anything is done.
    Refuse(ErrorKind),
    /// A failure of that kind, after half of it is done: of a decommit, which leaves each region a prefix of what it
    /// had and some regions more than others; of a release, which is then quarantined. Any other call refuses.
    HalfWay(ErrorKind),
    /// A failure of that kind, though all of it is done: of an allocation or a prefix, which is there, and which nobody
    /// is told of. Any other call refuses.
    Denied(ErrorKind),
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
    /// Whoever pays for what the wrapped backing commits.
    OfTheWrapped,
}

/// What a backing holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Live regions.
    pub regions: usize,
    /// Live allocations.
    pub allocations: usize,
    /// Prefixes whose handle is held.
    pub prefixes: usize,
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

/// What is committed of one region or allocation: one stretch of it.
#[derive(Clone, Copy, Debug, Default)]
struct Committed {
    begin: u64,
    bytes: u64,
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
    /// What is committed of all that is live.
    live: HashMap<ReleaseTarget, Committed>,
    /// Bytes of the prefixes whose handle is held.
    prefixes: HashMap<PrefixId, u64>,
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
        let committed = state.live.values().map(|committed| &committed.bytes);
        let owned_bytes = committed.chain(state.prefixes.values()).sum();
        Held { regions, allocations: state.live.len() - regions, prefixes: state.prefixes.len(), owned_bytes }
    }

    /// All address space that ever was handed out, given back or not.
    #[must_use]
    pub fn handed_out(&self) -> Vec<Extent> {
        self.lock().handed_out.clone()
    }

    /// What begins at an address now.
    #[must_use]
    pub fn live_at(&self, base: Address) -> Option<ReleaseTarget> {
        let state = self.lock();
        let mut latest = state.handed_out.iter().rev();
        let found = latest.find(|extent| extent.base == base && state.live.contains_key(&extent.target));
        found.map(|extent| extent.target)
    }

    /// Whether a region or allocation is not released yet.
    #[must_use]
    pub fn is_live(&self, target: ReleaseTarget) -> bool {
        self.lock().live.contains_key(&target)
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
        let create = move |services: HostServices| {
            host_mmap(services).map(|inner| FaultyBacking::new(inner, &faults, books(services)))
        };
        let builder = Host::builder().limit(Domain::Host, limit_bytes);
        builder.with_accessible_backing("faulty", FaultyBacking::ACCESS, create).load()
    }

    /// A host that has one backing, `"faulty"`: the built-in host-pool behind these faults, with these options.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::load`](leasehold::HostBuilder::load).
    pub fn pool_host(&self, limit_bytes: u64, options: Options) -> Result<Host, Error> {
        let faults = self.clone();
        let create = move |services: HostServices| {
            let pool = HostPool::create(options.read()?, services)?;
            Ok(FaultyBacking::new(pool, &faults, Books::OfTheWrapped))
        };
        let builder = Host::builder().limit(Domain::Host, limit_bytes);
        builder.with_accessible_backing("faulty", FaultyBacking::ACCESS, create).load()
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
        state.live.insert(target, Committed { begin: 0, bytes: owned_bytes });
    }

    /// Ranges were committed, each next to what its region had.
    fn note_commit(&self, ranges: &[CommitRange]) {
        self.settle(ranges, |committed, range| {
            let begin = if committed.bytes == 0 { range.offset } else { committed.begin.min(range.offset) };
            Committed { begin, bytes: committed.bytes + range.bytes }
        });
    }

    /// Ranges were decommitted, each from the end of what its region had.
    fn note_decommit(&self, ranges: &[CommitRange]) {
        self.settle(ranges, |committed, range| Committed { bytes: committed.bytes - range.bytes, ..committed });
    }

    fn settle(&self, ranges: &[CommitRange], change: impl Fn(Committed, &CommitRange) -> Committed) {
        let mut state = self.lock();
        for range in ranges {
            if let Some(committed) = state.live.get_mut(&ReleaseTarget::Region(range.region())) {
                *committed = change(*committed, range);
            }
        }
    }

    fn committed_of(&self, target: ReleaseTarget) -> Committed {
        self.lock().live.get(&target).copied().unwrap_or_default()
    }

    fn forget(&self, target: ReleaseTarget) -> u64 {
        self.lock().live.remove(&target).unwrap_or_default().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
