//! What a child drops, reads and makes anew.

use super::*;
use leasehold_tests::child::in_child;
use leasehold_tests::observe::Mappings;
use leasehold_tests::plugins::{Registry, library, text};
use std::process::Command;

/// Alone in its process: after a raw clone the allocator's locks are as another thread had them.
#[test]
fn a_child_that_drops_what_it_inherited_changes_nothing() {
    if !in_child("inherited::a_child_that_drops_what_it_inherited_changes_nothing", &[]) {
        return;
    }
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let before = books(&rig);
        for how in [How::Fork, How::RawClone] {
            let dropped = in_fork(how, || {
                engine.drop_all();
                true
            });
            assert_eq!(dropped, Ok(true), "{}, {how:?}", rig.name);
            assert!(engine.is_intact(), "{}, {how:?}", rig.name);
            assert_eq!(books(&rig), before, "{}, {how:?}", rig.name);
        }
        engine.set().grow_to(9 * MIB).unwrap();
        engine.drop_all();
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!(books(&rig), (0, 0), "{}", rig.name);
    }
}

#[test]
fn a_child_that_drops_the_host_leaves_the_parents_alive() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let mut rig = Some(rig);
        let dropped = in_fork(How::Fork, || {
            engine.drop_all();
            rig.take();
            true
        });
        assert_eq!(dropped, Ok(true));
        assert!(engine.is_intact());
        engine.set().grow_to(10 * MIB).unwrap();
    }
}

#[test]
fn windows_of_the_pool_are_not_mapped_in_a_child() {
    for rig in sharing_host_rigs() {
        let mut engine = Engine::on(&rig.host, &rig.backing);
        let (set, prefix) = (engine.set.as_ref().unwrap(), engine.prefix.as_ref().unwrap());
        let windows: Vec<_> = (0..PLANES).flat_map(|plane| [set.base(plane), prefix.base(plane)]).flatten().collect();
        let open = || {
            let maps = Mappings::read();
            windows
                .iter()
                .map(|base| maps.within(*base, MIB).count() + usize::from(maps.open_bytes(*base, MIB) > 0))
                .sum()
        };
        let in_parent: usize = open();
        assert!(in_parent >= windows.len(), "{}", rig.name);
        assert_eq!(in_fork(How::Fork, || open() == 0), Ok(true), "{}", rig.name);
        engine.set().shrink_to(2 * MIB).unwrap();
        assert_eq!(in_fork(How::Fork, || open() == 0), Ok(true), "{}", rig.name);
    }
}

/// Alone in its process: the dynamic linker's lock, which another test may hold while it opens a library, is one that no
/// child can be kept from waiting for.
#[test]
fn a_child_makes_a_host_of_its_own() {
    if !in_child("inherited::a_child_makes_a_host_of_its_own", &[]) {
        return;
    }
    for rig in sharing_host_rigs() {
        let engine = Engine::on(&rig.host, &rig.backing);
        let registry = Registry::new().backing("pool", &text(&library("leasehold_host_pool")), "");
        let served = in_fork(How::Fork, || {
            let host = registry.host();
            let backing = host.backing("pool").unwrap();
            let mut own = Engine::on(&host, &backing);
            let grandchild = in_fork(How::Fork, || {
                own.drop_all();
                refused(host.buffer(&backing, &BufferSpec::new(MIB)))
            });
            let is_whole = own.is_intact() && grandchild == Ok(true);
            own.drop_all();
            host.trim(&backing, u64::MAX).unwrap();
            is_whole && host.snapshot().domain(Domain::Host).is_some_and(|books| books.used_bytes == 0)
        });
        assert_eq!(served, Ok(true), "{}", rig.name);
        assert!(engine.is_intact(), "{}", rig.name);
    }
}

#[test]
fn programs_that_are_started_change_nothing() {
    let rig = sharing_host_rigs().remove(0);
    let mut engine = Engine::on(&rig.host, &rig.backing);
    let status = Command::new("true").status().unwrap();
    assert!(status.success() && engine.is_intact());
    engine.set().grow_to(9 * MIB).unwrap();
}

#[test]
fn private_memory_is_read_and_written_by_the_child_alone() {
    let host = Host::builder().load().unwrap();
    let backing = host.backing("host-mmap").unwrap();
    let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(MIB)).unwrap();
    let mut allocation = host.allocate(&backing, &leasehold::AllocationSpec::new(MIB)).unwrap();
    set.grow_to(MIB / 2).unwrap();
    set.plane_mut(0).unwrap().fill(7);
    allocation.as_mut_slice().unwrap().fill(8);
    let read = in_fork(How::Fork, || {
        let is_read = is_all(set.plane(0).unwrap(), 7) && is_all(allocation.as_slice().unwrap(), 8);
        set.plane_mut(0).unwrap().fill(9);
        set.grow_to(MIB / 4).unwrap();
        let is_written = is_all(set.plane(0).unwrap(), 9);
        is_read && is_written && refused(set.grow_to(MIB)) && refused(set.shrink_to(0))
    });
    assert_eq!(read, Ok(true));
    assert!(is_all(set.plane(0).unwrap(), 7) && is_all(allocation.as_slice().unwrap(), 8));
}
