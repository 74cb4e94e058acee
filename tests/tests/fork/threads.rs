//! Forks while other threads are in the middle of calls, and hold locks.

use super::*;
use leasehold::contract::{
    AllocateRequest, Allocation, Backing, BackingError, Description, DeviceKey, ReleaseOutcome, ReleaseTarget,
};
use leasehold::{Address, AllocationSpec, HolderId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

const THREADS: u64 = 8;
const FORKS: usize = 40;

/// Grows, shrinks, maps and drops, until it is told to stop.
fn work(rig: &TestRig, prefix: &SharedPrefix, holder: u64, stop: &AtomicBool) {
    let spec = BufferSpec::new(8 * MIB).holder(HolderId::new(holder));
    let mark = u8::try_from(holder).expect("few threads");
    while !stop.load(Ordering::Relaxed) {
        let mut set = rig.host.buffer_set(&rig.backing, 2, &spec).unwrap();
        set.grow_to(2 * MIB).unwrap();
        set.plane_mut(0).unwrap().fill(mark);
        set.shrink_to(MIB).unwrap();
        assert!(is_all(set.plane(0).unwrap(), mark));
        let mut mapped = rig.host.buffer_set(&rig.backing, PLANES, &spec).unwrap();
        mapped.map_prefix(prefix).unwrap();
        rig.host.trim(&rig.backing, MIB).unwrap();
    }
}

#[test]
fn forks_beside_eight_threads_change_nothing() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let prefix = engine.prefix.clone().unwrap();
        let stop = AtomicBool::new(false);
        let children: Vec<_> = thread::scope(|scope| {
            for holder in 1..=THREADS {
                let (rig, prefix, stop) = (&rig, &prefix, &stop);
                scope.spawn(move || work(rig, prefix, holder, stop));
            }
            let child = |_| {
                in_fork(How::Fork, || {
                    let is_refused = refused(engine.set().grow_to(16 * MIB)) && refused(engine.set().shrink_to(0));
                    engine.drop_all();
                    is_refused && rig.host.reap() == leasehold::ReapReport::default()
                })
            };
            let children = (0..FORKS).map(child).collect();
            stop.store(true, Ordering::Relaxed);
            children
        });
        assert_eq!(children, vec![Ok(true); FORKS], "{}", rig.name);
        assert!(engine.is_intact(), "{}", rig.name);
        drop(prefix);
        engine.drop_all();
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!(books(&rig), (0, 0), "{}", rig.name);
    }
}

/// A backing with one lock, which an allocation holds until it is let go on.
struct Locked {
    lock: Mutex<()>,
    entered: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
    released: Arc<AtomicBool>,
}

impl Backing for Locked {
    fn describe(&self) -> Description {
        Description::new(DeviceKey::HOST, "locked")
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        let _held = self.lock.lock().unwrap();
        self.entered.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(Allocation { id: request.id, base: Address::new(1 << 40), bytes: request.bytes })
    }

    fn release(&self, _target: ReleaseTarget) -> ReleaseOutcome {
        let _held = self.lock.lock().unwrap();
        self.released.store(true, Ordering::Relaxed);
        ReleaseOutcome::Complete
    }
}

#[test]
fn a_lock_that_is_held_during_a_fork_is_not_waited_for() {
    let (entered, has_entered) = sync_channel(1);
    let (go_on, going_on) = sync_channel(1);
    let released = Arc::new(AtomicBool::new(false));
    let backing =
        Locked { lock: Mutex::new(()), entered, go_on: Mutex::new(going_on), released: Arc::clone(&released) };
    let host = Host::builder().with_backing("locked", move |_| Ok(Box::new(backing))).load().unwrap();
    let handle = host.backing("locked").unwrap();
    thread::scope(|scope| {
        let allocating = scope.spawn(|| host.allocate(&handle, &AllocationSpec::new(1)).map(drop));
        has_entered.recv().unwrap();
        let mut handle = Some(handle.clone());
        let ended = in_fork(How::Fork, || {
            let inherited = handle.take().unwrap();
            refused(host.allocate(&inherited, &AllocationSpec::new(1))) && refused(host.trim(&inherited, 1))
        });
        assert_eq!(ended, Ok(true));
        assert!(!released.load(Ordering::Relaxed));
        go_on.send(()).unwrap();
        allocating.join().unwrap().unwrap();
    });
    assert!(released.load(Ordering::Relaxed), "the parent's allocation went back to it");
}
