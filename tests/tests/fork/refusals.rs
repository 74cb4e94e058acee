//! Every call in a child is refused, and says why.

use super::*;
use leasehold::{AllocationSpec, Governor, MemoryRole, Reclaim, ReclaimOrder, Shortfall};
use leasehold_tests::rig::all_rigs;
use std::sync::Arc;

struct Nothing;

impl Reclaim for Nothing {
    fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
        0
    }
}

#[test]
fn calls_of_a_child_are_refused_as_forked() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let host = &rig.host;
        let made = in_fork(How::Fork, || {
            refused(host.buffer(&engine.backing, &BufferSpec::new(MIB)))
                && refused(host.allocate(&engine.backing, &AllocationSpec::new(MIB)))
                && refused(host.prefix(&engine.backing, &PrefixSpec::new(MIB)))
                && refused(host.prefix_cache(&engine.backing, &PrefixCacheSpec::new(1, MIB)))
                && refused(host.trim(&engine.backing, MIB))
                && host.reap() == leasehold::ReapReport::default()
        });
        assert_eq!(made, Ok(true), "{}", rig.name);
        let changed = in_fork(How::Fork, || {
            let prefix = engine.prefix.clone().unwrap();
            let set = engine.set();
            let (len, committed) = (set.len(), set.committed());
            refused(set.grow_to(16 * MIB))
                && refused(set.shrink_to(MIB))
                && refused(set.clear())
                && refused(set.map_prefix(&prefix))
                && refused(set.growth_cost(16 * MIB))
                && set.grow_to(committed).is_ok()
                && (set.committed(), len <= set.len()) == (committed, true)
        });
        assert_eq!(changed, Ok(true), "{}", rig.name);
        let seen = in_fork(How::Fork, || {
            let (set, prefix) = (engine.set.as_mut().unwrap(), engine.prefix.as_ref().unwrap());
            refused(set.plane(0))
                && refused(set.private_mut(0))
                && refused(set.read(0, 0, &mut [0]))
                && refused(set.write(0, 2 * MIB, &[1]))
                && refused(set.fill(0, 2 * MIB, 1, 1))
                && refused(prefix.plane(0))
                && refused(prefix.incremental_owned_bytes())
                && set.base(0).is_some()
        });
        assert_eq!(seen, Ok(true), "{}", rig.name);
        assert!(engine.is_intact(), "{}", rig.name);
    }
}

#[test]
fn closing_and_sealing_in_a_child_are_refused() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let mut unsealed = Some(rig.host.prefix(&rig.backing, &PrefixSpec::new(MIB)).unwrap());
        let before = books(&rig);
        let closed = in_fork(How::Fork, || {
            let unsealed = unsealed.take().unwrap().seal().map_err(Error::from);
            let (set, prefix) = (engine.set.take().unwrap(), engine.prefix.take().unwrap());
            engine.cache.take();
            refused(unsealed) && refused(set.close()) && refused(prefix.close())
        });
        assert_eq!(closed, Ok(true), "{}", rig.name);
        assert!(engine.is_intact(), "{}", rig.name);
        assert_eq!(books(&rig), before, "{}", rig.name);
        unsealed.take().unwrap().seal().unwrap();
    }
}

#[test]
fn caches_and_books_are_empty_in_a_child() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let governor: Governor = rig.host.governor();
        let mut registration =
            Some(governor.on_pressure(Domain::Host, ReclaimOrder::new(), Arc::new(Nothing)).unwrap());
        let asked = in_fork(How::Fork, || {
            registration.take();
            let cache = engine.cache.as_ref().unwrap();
            cache.find(&chain()).blocks == 0
                && cache.evict(u64::MAX) == leasehold::Eviction::default()
                && cache.snapshot().blocks == 0
                && refused(cache.insert(&chain(), 0, engine.prefix.clone().unwrap()))
                && refused(governor.lease(Domain::Host, 1, MemoryRole::Weights))
                && refused(governor.on_pressure(Domain::Host, ReclaimOrder::new(), Arc::new(Nothing)))
        });
        assert_eq!(asked, Ok(true), "{}", rig.name);
        assert_eq!(engine.cache.as_ref().unwrap().find(&chain()).blocks, 1, "{}", rig.name);
        engine.drop_all();
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!(books(&rig), (0, 0), "{}", rig.name);
    }
}

#[test]
fn every_backing_is_out_of_service_in_a_child() {
    for rig in all_rigs() {
        let mut buffer = Some(rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap());
        buffer.as_mut().unwrap().grow_to(rig.granule).unwrap();
        let before = (books(&rig), rig.open_bytes(buffer.as_ref().unwrap().base(), MIB));
        let grown = in_fork(How::Fork, || {
            let mut inherited = buffer.take().unwrap();
            refused(inherited.grow_to(MIB)) && refused(inherited.close())
        });
        assert_eq!(grown, Ok(true), "{}", rig.name);
        assert_eq!((books(&rig), rig.open_bytes(buffer.as_ref().unwrap().base(), MIB)), before, "{}", rig.name);
    }
}

#[test]
fn refusals_name_the_backing_and_what_to_do() {
    let host = Host::builder().load().unwrap();
    let mut buffer = host.buffer(&host.backing("host-mmap").unwrap(), &BufferSpec::new(MIB)).unwrap();
    let worded = in_fork(How::Fork, || {
        buffer.grow_to(1).unwrap_err().to_string()
            == "backing \"host-mmap\": commit refused: this process was forked from the one that made the host, whose \
                memory and books stay the parent's; make a host of its own in the child, or start the child before the host \
                or with exec"
    });
    assert_eq!(worded, Ok(true));
}
