//! A process that forks while it holds buffers and prefixes: nothing that the child does reaches the parent's memory or
//! its books.
//!
//! The windows of host-pool are shared memory. A child that merely dropped what it had inherited punched holes into the
//! parent's live cache, and its frames went to other holders.

#[path = "fork/inherited.rs"]
mod inherited;
#[path = "fork/refusals.rs"]
mod refusals;
#[path = "fork/threads.rs"]
mod threads;

use leasehold::{
    BackingHandle, BlockHash, BufferSet, BufferSpec, Domain, Error, ErrorKind, Host, PrefixCache, PrefixCacheSpec,
    PrefixSpec, SharedPrefix,
};
use leasehold_tests::fork::{How, in_fork};
use leasehold_tests::is_all;
use leasehold_tests::rig::{MIB, TestRig, sharing_host_rigs};

const PLANES: usize = 4;

/// What an engine holds when it forks: a prefix, a cache that knows it, and a buffer set that maps it and grew behind it.
struct Engine {
    backing: BackingHandle,
    prefix: Option<SharedPrefix>,
    cache: Option<PrefixCache>,
    set: Option<BufferSet>,
}

fn chain() -> [BlockHash; 1] {
    [BlockHash::root(b"a prompt")]
}

impl Engine {
    fn on(host: &Host, backing: &BackingHandle) -> Self {
        let mut prefix = host.prefix(backing, &PrefixSpec::new(MIB).planes(PLANES)).unwrap();
        (0..PLANES).for_each(|plane| prefix.plane_mut(plane).unwrap().fill(0x77));
        let prefix = prefix.seal().unwrap();
        let cache = host.prefix_cache(backing, &PrefixCacheSpec::new(PLANES, MIB)).unwrap();
        cache.insert(&chain(), 0, prefix.clone()).unwrap();
        let mut set = host.buffer_set(backing, PLANES, &BufferSpec::new(64 * MIB)).unwrap();
        set.map_prefix(&prefix).unwrap();
        set.grow_to(8 * MIB).unwrap();
        (0..PLANES).for_each(|plane| set.private_mut(plane).unwrap().fill(0x5a));
        Self { backing: backing.clone(), prefix: Some(prefix), cache: Some(cache), set: Some(set) }
    }

    fn set(&mut self) -> &mut BufferSet {
        self.set.as_mut().expect("it is held")
    }

    /// Whether every byte is as it was written, at the same place.
    fn is_intact(&self) -> bool {
        let (set, prefix) = (self.set.as_ref().expect("it is held"), self.prefix.as_ref().expect("it is held"));
        let at = usize::try_from(MIB).expect("it fits");
        (0..PLANES).all(|plane| {
            let (shared, private) = set.plane(plane).unwrap().split_at(at);
            is_all(shared, 0x77) && is_all(private, 0x5a) && is_all(prefix.plane(plane).unwrap(), 0x77)
        })
    }

    fn drop_all(&mut self) {
        self.set.take();
        self.cache.take();
        self.prefix.take();
    }
}

/// What the parent's books say.
fn books(rig: &TestRig) -> (u64, u64) {
    (rig.used(), rig.backing.charged_bytes())
}

fn is_forked(error: &Error) -> bool {
    error.kind() == ErrorKind::OutOfService && error.to_string().contains("forked")
}

fn refused<T>(outcome: Result<T, Error>) -> bool {
    outcome.is_err_and(|error| is_forked(&error))
}
