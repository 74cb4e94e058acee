//! Calls that stop in the middle: what they say, and what they leave.

use super::start;
use super::world::UNIT;
use crate::setup::{DEVICE, NAMES, host, used};
use leasehold::{AllocationSpec, BackingHandle, BufferSpec, Error, ErrorKind, HolderId, Host, Prefix, PrefixSpec};
use leasehold_plugin_api as api;
use leasehold_tests::cuda::{Lasting, Simulator};

const READ: u32 = 1;
const READ_WRITE: u32 = 3;

fn written(host: &Host, backing: &BackingHandle) -> Prefix {
    let mut prefix = host.prefix(backing, &PrefixSpec::new(4 * UNIT)).unwrap();
    prefix.write(0, 0, &[7; 9]).unwrap();
    prefix
}

/// What the device may do with each granule that is mapped.
fn access(simulator: &Simulator) -> Vec<u32> {
    simulator.books().mappings.iter().map(|mapping| mapping.access[0].1).collect()
}

fn kind(error: &leasehold::Error) -> Option<api::ErrorKind> {
    error.backing_error().map(api::BackingError::kind)
}

/// The figure was that of the plane with the least: nothing was said to be in the way.
#[test]
fn what_a_shrink_left_in_one_plane_alone_is_named_as_in_the_way_of_a_prefix() {
    let simulator = start();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = host.prefix(&backing, &PrefixSpec::new(2 * UNIT).planes(2)).unwrap().seal().unwrap();
    let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(8 * UNIT)).unwrap();
    set.grow_to(3 * UNIT).unwrap();
    simulator.plan("cuMemUnmap", 2, Lasting::ForEver, 400);
    set.clear().unwrap_err();
    simulator.heal();
    let error = set.map_prefix(&prefix).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
    assert!(error.to_string().contains("12288 private bytes"), "{error}");
    set.clear().unwrap();
    set.map_prefix(&prefix).unwrap();
    drop((set, prefix, backing, host));
    simulator.finish();
}

/// Private bytes go before the prefixes do.
#[test]
fn a_clear_that_can_not_unmap_its_prefixes_has_lost_what_was_private() {
    let simulator = start();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = host.prefix(&backing, &PrefixSpec::new(2 * UNIT)).unwrap().seal().unwrap();
    let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(8 * UNIT)).unwrap();
    set.map_prefix(&prefix).unwrap();
    set.grow_to(5 * UNIT).unwrap();
    simulator.plan("cuMemUnmap", 2, Lasting::ForEver, 400);
    set.clear().unwrap_err();
    simulator.heal();
    assert_eq!((set.shared(), set.len(), set.committed(), set.owned_bytes()), (2 * UNIT, 0, 2 * UNIT, 0));
    set.clear().unwrap();
    drop((set, prefix, backing, host));
    simulator.finish();
}

/// Part of the window could not be written any more, and the creator was told that it could.
#[test]
fn sealing_that_stops_half_way_lets_all_of_the_prefix_be_written_again() {
    let simulator = start();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = written(&host, &backing);
    simulator.plan_halfway("cuMemSetAccess", 1, Lasting::Once, 400);
    let mut unsealed = prefix.seal().unwrap_err();
    assert_eq!(kind(&unsealed.error), Some(api::ErrorKind::Internal), "{unsealed}");
    assert_eq!(access(&simulator), [READ_WRITE; 4]);
    unsealed.prefix.write(0, 0, &vec![8; 4 * 4096]).unwrap();
    let sealed = unsealed.prefix.seal().unwrap();
    assert_eq!(access(&simulator), [READ; 4]);
    drop((sealed, backing, host));
    simulator.finish();
}

#[test]
fn where_neither_sealing_nor_undoing_it_works_nobody_writes_and_nobody_maps() {
    let simulator = start();
    let (host, backing) = host("cuda-pool", &[]);
    let prefix = written(&host, &backing);
    simulator.plan_halfway("cuMemSetAccess", 1, Lasting::ForEver, 400);
    let mut unsealed = prefix.seal().unwrap_err();
    simulator.heal();
    assert_eq!(kind(&unsealed.error), Some(api::ErrorKind::BrokenOff), "{unsealed}");
    let text = unsealed.to_string();
    assert!(text.contains("undoing it failed too: cuMemSetAccess failed") && text.contains("write to none"), "{text}");
    let error = unsealed.prefix.write(0, 0, &[9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
    let sealed = unsealed.prefix.seal().unwrap();
    assert_eq!(access(&simulator), [READ; 4]);
    let mut bytes = [0; 9];
    sealed.read(0, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 9]);
    drop((sealed, backing, host));
    simulator.finish();
}

/// After a call that stopped in the middle the same call failed for ever: part of its range was not mapped any more.
#[test]
fn what_an_unmapping_left_half_way_goes_with_the_next_reap() {
    let simulator = start();
    for name in crate::setup::NAMES {
        let (host, backing) = host(name, &[("park", "0")][..usize::from(name == "cuda-pool")]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(8 * UNIT)).unwrap();
        set.grow_to(8 * UNIT).unwrap();
        simulator.plan_halfway("cuMemUnmap", 1, Lasting::ForEver, 400);
        let error = set.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
        assert_eq!((used(&host), simulator.counts().mappings), (4 * UNIT, 4), "{name}");
        assert_eq!(host.reap().remaining, 1, "{name}");
        assert_eq!(simulator.counts().mappings, 2, "{name}: a retry comes further");
        simulator.heal();
        assert_eq!(host.reap().remaining, 0, "{name}");
        assert_eq!((used(&host), simulator.counts().bytes), (0, 0), "{name}");
    }
    simulator.finish();
}

/// What a shrink took from the front of its range left a hole in what was said to be committed; also where the driver doesn't
/// tell what it took.
#[test]
fn a_shrink_that_stops_half_way_leaves_no_hole_in_what_is_committed() {
    let simulator = start();
    for (name, tells) in crate::setup::NAMES.into_iter().flat_map(|name| [(name, true), (name, false)]) {
        let (host, backing) = host(name, &[]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(8 * UNIT)).unwrap();
        set.grow_to(8 * UNIT).unwrap();
        set.fill(0, 0, 8 * UNIT, 5).unwrap();
        simulator.plan_halfway("cuMemUnmap", 1, Lasting::ForEver, 400);
        if !tells {
            simulator.plan("cuPointerGetAttribute", 1, Lasting::ForEver, 400);
        }
        set.shrink_to(2 * UNIT).unwrap_err();
        simulator.heal();
        assert!(set.len() <= set.committed() && set.committed() <= 8 * UNIT, "{name}");
        let mut bytes = vec![0; usize::try_from(set.len()).unwrap()];
        set.read(0, 0, &mut bytes).unwrap();
        assert_eq!((set.len(), bytes), (2 * UNIT, vec![5; 2 * 4096]), "{name}");
        set.grow_to(8 * UNIT).unwrap();
        set.fill(0, 0, 8 * UNIT, 6).unwrap();
        assert_eq!(used(&host), 8 * UNIT, "{name}");
    }
    simulator.finish();
}

/// The code by which the driver says that nothing is mapped there says so of no call that was not made.
#[test]
fn what_was_not_even_asked_for_want_of_a_context_is_mapped_still() {
    let simulator = start();
    for function in ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode"] {
        for name in NAMES {
            let (host, backing) = host(name, &[]);
            let set = |holder| {
                let spec = BufferSpec::new(8 * UNIT).holder(HolderId::new(holder));
                host.buffer_set(&backing, 1, &spec).unwrap()
            };
            let (mut one, mut other) = (set(1), set(2));
            one.grow_to(4 * UNIT).unwrap();
            simulator.plan(function, 1, Lasting::ForEver, 1);
            one.close().unwrap_err();
            simulator.heal();
            other.grow_to(4 * UNIT).unwrap();
            let books = simulator.books();
            assert!(books.handles.iter().all(|handle| handle.mappings <= 1), "{name}, {function}: {books:#?}");
            assert_eq!((host.reap().remaining, used(&host) >= 4 * UNIT), (0, true), "{name}, {function}");
            drop(other);
            host.trim(&backing, u64::MAX).unwrap();
            assert_eq!((used(&host), simulator.books().used(0)), (0, 0), "{name}, {function}");
        }
    }
    simulator.finish();
}

/// And so it is with what a commit left behind.
#[test]
fn what_a_commit_left_is_charged_while_no_context_can_be_made_current() {
    let simulator = start();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(8 * UNIT)).unwrap();
        simulator.plan("cuMemSetAccess", 1, Lasting::Once, 400);
        simulator.plan("cuMemUnmap", 1, Lasting::ForEver, 400);
        set.grow_to(4 * UNIT).unwrap_err();
        simulator.heal();
        simulator.plan("cuCtxSetCurrent", 1, Lasting::ForEver, 1);
        set.shrink_to(0).unwrap_err();
        simulator.heal();
        assert!(used(&host) >= simulator.books().used(0), "{name}");
        set.shrink_to(0).unwrap();
        drop(set);
        host.trim(&backing, u64::MAX).unwrap();
        assert_eq!((used(&host), simulator.books().used(0)), (0, 0), "{name}");
    }
    simulator.finish();
}

#[test]
fn what_could_not_be_undone_of_a_refused_allocation_or_prefix_is_told_with_its_code() {
    let simulator = start();
    let (host, backing) = host("cuda-pool", &[("park", "0")]);
    host.governor().set_limit(DEVICE, 4 * UNIT).unwrap();
    let allocate = || host.allocate(&backing, &AllocationSpec::new(8 * UNIT)).map(drop).unwrap_err();
    let create = || host.prefix(&backing, &PrefixSpec::new(8 * UNIT)).map(drop).unwrap_err();
    for make in [&allocate as &dyn Fn() -> Error, &create] {
        simulator.plan("cuMemAddressFree", 1, Lasting::Once, 400);
        let error = make();
        assert_eq!(error.backing_error().unwrap().native_code(), Some(400), "{error}");
    }
    assert_eq!(host.reap().remaining, 0);
    drop((backing, host));
    simulator.finish();
}

/// The access of an unmapped address was believed, so what was gone stayed charged for ever.
#[test]
fn what_is_gone_is_told_for_every_manner_of_drivers() {
    let simulator = start();
    for (name, everywhere, refuses) in
        [("cuda-vmm", 0, 0), ("cuda-pool", 0, 1), ("cuda-vmm", 1, 0), ("cuda-pool", 1, 1)]
    {
        simulator.set("access_everywhere", everywhere);
        simulator.set("refuses_unmapped", refuses);
        simulator.set("handles_again", 1);
        let (host, backing) = host(name, &[("park", "0")][..usize::from(name == "cuda-pool")]);
        let mut set = host.buffer_set(&backing, 1, &BufferSpec::new(8 * UNIT)).unwrap();
        set.grow_to(8 * UNIT).unwrap();
        simulator.plan_halfway("cuMemUnmap", 1, Lasting::ForEver, 400);
        set.close().unwrap_err();
        assert_eq!((used(&host), simulator.counts().mappings), (4 * UNIT, 4), "{name}, {everywhere}, {refuses}");
        simulator.heal();
        assert_eq!(host.reap().remaining, 0, "{name}");
        assert_eq!((used(&host), simulator.counts().bytes), (0, 0), "{name}");
    }
    simulator.finish();
}
