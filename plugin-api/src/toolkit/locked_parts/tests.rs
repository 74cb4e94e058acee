//! The order of parts and of locks, what is refused, how far an action comes, and what a single part costs.

use super::*;
use crate::{ErrorKind, PrefixId, PrefixRange};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

/// A region with the offsets that were acted on.
#[derive(Debug, Default)]
struct Sample {
    offsets: Mutex<Vec<u64>>,
    is_ending: bool,
}

impl Lockable for Sample {
    type Open<'a> = MutexGuard<'a, Vec<u64>>;

    fn open(&self) -> Option<Self::Open<'_>> {
        (!self.is_ending).then(|| self.offsets.lock().unwrap())
    }
}

fn regions(ids: &[u64]) -> Table<RegionId, Sample> {
    let table = Table::new();
    ids.iter().for_each(|id| table.insert(RegionId::new(*id), Sample::default()).unwrap());
    table
}

fn range(region: u64, offset: u64) -> CommitRange {
    CommitRange::new(RegionId::new(region), offset, 1)
}

/// The region and the offset of every part.
fn seen<L>(locked: &LockedParts<'_, L, CommitRange>) -> Vec<(u64, u64)> {
    locked.iter().map(|(_, part)| (part.region().get(), part.offset)).collect()
}

#[test]
fn parts_come_by_region_and_offset_and_each_region_is_locked_once() {
    let table = regions(&[1, 2, 3]);
    let items = [range(3, 0), range(1, 7), range(2, 4), range(1, 2)];
    let parts = CallParts::new(&items).unwrap();
    let answer = parts.with_locked(&table, |locked| {
        assert_eq!(seen(locked), [(1, 2), (1, 7), (2, 4), (3, 0)]);
        assert_eq!((locked.count(), locked.total_bytes(), locked.regions_mut().count()), (4, 4, 3));
        locked.each_of_first(3, |region, part| region.push(part.offset));
        Ok("done")
    });
    assert_eq!(answer, Ok("done"));
    let offsets = |id| table.find(RegionId::new(id)).unwrap().offsets.lock().unwrap().clone();
    assert_eq!([offsets(1), offsets(2), offsets(3)], [vec![2, 7], vec![4], vec![]]);
}

#[test]
fn a_mapping_is_a_part_of_the_region_that_it_goes_into() {
    let mapping =
        |region, offset| PrefixMapping::new(PrefixRange::new(PrefixId::new(9), 0, 4), RegionId::new(region), offset);
    let items = [mapping(2, 0), mapping(1, 8), mapping(1, 0)];
    let parts = CallParts::new(&items).unwrap();
    assert_eq!(*parts, [mapping(1, 0), mapping(1, 8), mapping(2, 0)]);
    let overlapping = [mapping(1, 0), mapping(1, 3)];
    assert_eq!(CallParts::new(&overlapping).unwrap_err().kind(), ErrorKind::InvalidRequest);
}

#[test]
fn a_call_without_parts_locks_nothing_and_acts() {
    let parts = CallParts::<CommitRange>::new(&[]).unwrap();
    assert_eq!(parts.with_locked(&regions(&[1]), |locked| Ok(locked.count())), Ok(0));
}

/// Whichever of the call's regions it is: nothing is acted on, and no lock is left.
#[test]
fn a_region_that_is_not_live_or_is_being_released_is_unknown() {
    let table = regions(&[1, 3]);
    table.insert(RegionId::new(2), Sample { is_ending: true, ..Sample::default() }).unwrap();
    for (items, dead) in [
        (vec![range(4, 0)], "region 4"),
        (vec![range(2, 0)], "region 2"),
        (vec![range(3, 0), range(2, 0), range(1, 0)], "region 2"),
        (vec![range(1, 0), range(4, 0)], "region 4"),
        (vec![range(1, 0), range(0, 0)], "region 0"),
    ] {
        let parts = CallParts::new(&items).unwrap();
        let refused = parts.with_locked(&table, |_| -> Result<(), _> { unreachable!("{dead} is dead") });
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownId);
        assert!(error.message().starts_with(&format!("{dead} is not live here")), "{error}");
    }
    for id in [1, 3] {
        assert!(table.find(RegionId::new(id)).unwrap().offsets.try_lock().is_ok(), "region {id} is locked still");
    }
}

#[test]
fn an_action_ends_at_the_part_that_fails_and_says_how_many_went_well() {
    let table = regions(&[1, 2]);
    let items = [range(1, 0), range(1, 1), range(2, 0), range(2, 1)];
    let parts = CallParts::new(&items).unwrap();
    let until = |region, offset| move |part: &CommitRange| *part == range(region, offset);
    for (ends, done) in [(until(1, 0), 0), (until(1, 1), 1), (until(2, 0), 2), (until(2, 1), 3)] {
        let stopped = parts.with_locked(&table, |locked| {
            Ok(locked.try_each(|_, part| if ends(part) { Err(part.offset) } else { Ok(()) }))
        });
        let error = items[done].offset;
        assert_eq!(stopped, Ok(Err(Stopped { done, error })));
    }
}

#[test]
fn items_go_with_the_parts_until_they_end() {
    let table = regions(&[1, 2]);
    let items = [range(1, 0), range(1, 1), range(2, 0)];
    let parts = CallParts::new(&items).unwrap();
    for given in 0..=4_usize {
        let mut pairs = Vec::new();
        parts
            .with_locked(&table, |locked| {
                locked.each_with("abcd".chars().take(given), |_, part, item| pairs.push((*part, item)));
                Ok(())
            })
            .unwrap();
        let wanted: Vec<_> = items.iter().copied().zip("abcd".chars()).take(given).collect();
        assert_eq!(pairs, wanted);
    }
}

#[test]
fn backwards_is_from_the_last_part_of_each_region_to_its_first() {
    let table = regions(&[1, 2]);
    let items = [range(1, 0), range(1, 1), range(2, 0), range(2, 1)];
    let parts = CallParts::new(&items).unwrap();
    let mut order = Vec::new();
    let outcome = parts.with_locked(&table, |locked| {
        Ok(locked.try_each_backwards(|_, part| {
            order.push((part.region().get(), part.offset));
            if *part == range(2, 0) { Err("refused") } else { Ok(()) }
        }))
    });
    assert_eq!(outcome, Ok(Err("refused")));
    assert_eq!(order, [(1, 1), (1, 0), (2, 1), (2, 0)]);
}

/// Each thread names the regions the other way round, so locks in the order of the items would soon wait for each other.
#[test]
fn two_threads_with_opposite_orders_do_not_deadlock() {
    let table = Arc::new(regions(&[1, 2, 3]));
    let (finished, both) = mpsc::channel();
    for items in [[range(1, 0), range(2, 0), range(3, 0)], [range(3, 0), range(2, 0), range(1, 0)]] {
        let (table, finished) = (Arc::clone(&table), finished.clone());
        thread::spawn(move || {
            for _ in 0..2_000 {
                let parts = CallParts::new(&items).unwrap();
                parts
                    .with_locked(&table, |locked| {
                        thread::yield_now();
                        locked.each_of_first(3, |region, part| region.push(part.offset));
                        Ok(())
                    })
                    .unwrap();
            }
            finished.send(()).unwrap();
        });
    }
    for _ in 0..2 {
        both.recv_timeout(Duration::from_secs(60)).expect("the threads wait for each other");
    }
    for id in 1..=3 {
        assert_eq!(table.find(RegionId::new(id)).unwrap().offsets.lock().unwrap().len(), 4_000);
    }
}

#[test]
fn a_call_of_one_part_borrows_it_and_keeps_no_vector() {
    let items = [range(1, 0)];
    let parts = CallParts::new(&items).unwrap();
    assert!(matches!(parts.0, Cow::Borrowed(_)));
    parts
        .with_locked(&regions(&[1]), |locked| {
            assert_eq!((locked.count(), locked.many.capacity()), (1, 0));
            Ok(())
        })
        .unwrap();
}
