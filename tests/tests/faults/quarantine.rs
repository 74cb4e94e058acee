//! Releases that fail: what is kept in quarantine, stays charged, and is given back later.

use crate::{CAPACITY, GRANULE, REFUSALS, Step, World, alone, two_backings};
use leasehold::{BufferSpec, Domain, ErrorKind};
use leasehold_tests::fault::{Call, Fault, Faults, Held, Strikes, Under};

#[test]
fn a_failed_release_is_quarantined_stays_charged_and_is_reaped_once_the_fault_is_gone() {
    let _alone = alone();
    for under in Under::EXACT {
        let mut world = World::new(under);
        world.run(Step::Make).unwrap();
        world.run(Step::GrowTo(5)).unwrap();
        world.run(Step::Allocate).unwrap();
        world.faults.plan(Call::Release, 0, Strikes::Always, REFUSALS[3]);
        drop((world.set.take(), world.allocation.take()));
        assert_eq!(world.used(), 25 * GRANULE, "{under:?}");
        for _ in 0..2 {
            let report = world.host.reap();
            let seen = (report.released, report.remaining, report.remaining_bytes);
            assert_eq!((seen, world.used()), ((0, 5, 25 * GRANULE), 25 * GRANULE), "{under:?}");
        }
        world.faults.heal();
        let report = world.host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (5, 0, 0), "{under:?}");
        assert_eq!(world.used(), 0, "{under:?}");
        world.end();
    }
}

#[test]
fn what_is_in_quarantine_is_refunded_when_its_backing_ends() {
    let _alone = alone();
    for under in Under::EXACT {
        let mut world = World::new(under);
        world.run(Step::Make).unwrap();
        world.run(Step::GrowTo(5)).unwrap();
        world.faults.plan(Call::Release, 0, Strikes::Always, REFUSALS[3]);
        drop(world.set.take());
        let World { host, backing, .. } = world;
        let governor = host.governor();
        let used = || governor.snapshot().domain(Domain::Host).unwrap().used_bytes;
        drop(host);
        assert_eq!(used(), 20 * GRANULE, "{under:?}: the handle keeps the backing");
        drop(backing);
        assert_eq!(used(), 0, "{under:?}");
    }
}

#[test]
fn a_release_that_panics_is_quarantined_and_tried_again() {
    let _alone = alone();
    for under in Under::EXACT {
        let faults = Faults::new();
        let host = two_backings(under, &faults);
        let faulty = host.backing("faulty").unwrap();
        let mut set = host.buffer_set(&faulty, 2, &BufferSpec::new(CAPACITY)).unwrap();
        set.grow_to(GRANULE).unwrap();
        faults.plan(Call::Release, 0, Strikes::Once, Fault::Panic);
        let error = set.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
        assert_eq!(
            (host.backings()[0].state.name(), faults.held().regions),
            ("retired", 1),
            "the other plane is released"
        );
        let used = || host.snapshot().domain(Domain::Host).unwrap().used_bytes;
        assert_eq!(used(), GRANULE);
        assert_eq!((host.reap().released, used(), faults.held()), (1, 0, Held::default()));
    }
}
