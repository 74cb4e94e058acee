//! Copies and fills by address, asked of the backings directly: what is not there, and what is sealed, is refused before the
//! driver is asked.

use super::setup::{DEVICE, LIMIT, NAMES, UNIT, options, simulator};
use leasehold::{HolderId, Host};
use leasehold_plugin_api::{
    Address, Backing, BackingError, CommitRange, ErrorKind, MemoryRole, PrefixId, PrefixMapping, PrefixRange,
    PrefixRequest, RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest,
};
use leasehold_tests::cuda::{Lasting, Simulator};
use leasehold_tests::fault::creator;
use std::rc::Rc;

const ROLE: MemoryRole = MemoryRole::KvCache;
const HOLDER: HolderId = HolderId::new(1);
const REGION: RegionId = RegionId::new(1 << 42);
const PREFIX: PrefixId = PrefixId::new(1 << 42);

/// Shows a backing to a test, over the simulator.
fn examine(name: &'static str, act: impl Fn(&Simulator, &dyn Backing) + 'static) {
    let simulator = Rc::new(simulator());
    let shown = Rc::clone(&simulator);
    let builder = Host::builder().limit(DEVICE, LIMIT).with_backing(name, creator(name, options(&[])));
    drop(builder.examine(move |_, backing| act(&shown, backing)).load().unwrap());
    Rc::into_inner(simulator).expect("nobody else has it").finish();
}

/// What writing, filling and reading two bytes answer, of which no call of the driver is made where both are refused.
fn outcomes(simulator: &Simulator, backing: &dyn Backing, at: Address) -> [Option<ErrorKind>; 3] {
    let transfer = backing.as_transfer().unwrap();
    let before = simulator.books().calls;
    let kind = |outcome: Result<(), BackingError>| outcome.err().map(|error| error.kind());
    let writes = [kind(transfer.write(at, &[1; 2])), kind(transfer.fill(at, 2, 1))];
    if writes.iter().all(Option::is_some) {
        assert_eq!(simulator.books().calls, before, "the driver was asked");
    }
    [writes[0], writes[1], kind(transfer.read(at, &mut [0; 2]))]
}

fn at(base: Address, offset: u64) -> Address {
    base.checked_add(offset).unwrap()
}

fn reserve(backing: &dyn Backing) -> Address {
    let request = ReserveRequest { id: REGION, bytes: 4 * UNIT, align: UNIT, role: ROLE, holder: HOLDER };
    backing.as_virtual_backing().unwrap().reserve(&request).unwrap().base
}

const NOT_THERE: [Option<ErrorKind>; 3] = [Some(ErrorKind::NotCommitted); 3];
const NOWHERE: [Option<ErrorKind>; 3] = [Some(ErrorKind::InvalidRequest); 3];
const SEALED: [Option<ErrorKind>; 3] = [Some(ErrorKind::WrongState), Some(ErrorKind::WrongState), None];

#[test]
fn what_is_not_committed_is_neither_read_nor_written() {
    for name in NAMES {
        examine(name, |simulator, backing| {
            let (base, growing) = (reserve(backing), backing.as_virtual_backing().unwrap());
            assert_eq!(outcomes(simulator, backing, base), NOT_THERE);
            growing.commit(&[CommitRange::new(REGION, UNIT, UNIT)]).unwrap();
            assert_eq!(outcomes(simulator, backing, at(base, UNIT)), [None; 3]);
            assert_eq!(outcomes(simulator, backing, at(base, 2 * UNIT - 2)), [None; 3]);
            for offset in [UNIT - 1, 2 * UNIT - 1] {
                assert_eq!(outcomes(simulator, backing, at(base, offset)), NOT_THERE, "one byte of two is there");
            }
            growing.decommit(&[CommitRange::new(REGION, UNIT, UNIT)]).unwrap();
            assert_eq!(outcomes(simulator, backing, at(base, UNIT)), NOT_THERE);
            assert_eq!(backing.release(ReleaseTarget::Region(REGION)), ReleaseOutcome::Complete);
            assert_eq!(outcomes(simulator, backing, base), NOWHERE);
        });
    }
}

#[test]
fn a_region_that_is_in_quarantine_is_only_released() {
    for name in NAMES {
        examine(name, |simulator, backing| {
            let base = reserve(backing);
            backing.as_virtual_backing().unwrap().commit(&[CommitRange::new(REGION, 0, UNIT)]).unwrap();
            simulator.plan("cuMemAddressFree", 1, Lasting::Once, 400);
            simulator.plan("cuMemUnmap", 1, Lasting::Once, 400);
            let outcome = backing.release(ReleaseTarget::Region(REGION));
            assert!(matches!(outcome, ReleaseOutcome::Quarantined { remaining_bytes: UNIT, .. }), "{outcome:?}");
            assert_eq!(outcomes(simulator, backing, base), NOWHERE);
            simulator.heal();
            assert_eq!(backing.release(ReleaseTarget::Region(REGION)), ReleaseOutcome::Complete);
        });
    }
}

#[test]
fn what_is_sealed_is_read_and_not_written_through_its_window_or_wherever_it_is_mapped() {
    examine("cuda-pool", |simulator, backing| {
        let (base, sharing) = (reserve(backing), backing.as_shared_mapping().unwrap());
        let request = PrefixRequest { id: PREFIX, bytes: 2 * UNIT, role: ROLE, holder: HOLDER };
        let window = sharing.create_prefix(&request).unwrap().window;
        assert_eq!(outcomes(simulator, backing, window), [None; 3]);
        // Where neither sealing nor undoing that went well, some of it may be sealed.
        simulator.plan_halfway("cuMemSetAccess", 1, Lasting::ForEver, 400);
        assert_eq!(sharing.seal(PREFIX).unwrap_err().kind(), ErrorKind::BrokenOff);
        simulator.heal();
        assert_eq!(outcomes(simulator, backing, at(window, 2 * UNIT - 2)), SEALED);
        let mapping = PrefixMapping::new(PrefixRange::new(PREFIX, 0, UNIT), REGION, UNIT);
        assert_eq!(sharing.map_prefix(&[mapping]).unwrap_err().kind(), ErrorKind::WrongState);
        sharing.seal(PREFIX).unwrap();
        assert_eq!(outcomes(simulator, backing, window), SEALED);
        sharing.map_prefix(&[mapping]).unwrap();
        assert_eq!(outcomes(simulator, backing, at(base, UNIT)), SEALED);
        assert_eq!(outcomes(simulator, backing, at(base, UNIT - 1)), NOT_THERE);
        backing.as_virtual_backing().unwrap().commit(&[CommitRange::new(REGION, 2 * UNIT, UNIT)]).unwrap();
        assert_eq!(outcomes(simulator, backing, at(base, 2 * UNIT - 1)), SEALED, "one byte of two is");
        assert_eq!(outcomes(simulator, backing, at(base, 2 * UNIT)), [None; 3]);
        assert_eq!(sharing.release_prefix(PREFIX), ReleaseOutcome::Complete);
        assert_eq!(outcomes(simulator, backing, window), NOWHERE);
        assert_eq!(backing.release(ReleaseTarget::Region(REGION)), ReleaseOutcome::Complete);
    });
}
