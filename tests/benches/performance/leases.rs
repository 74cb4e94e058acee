//! Charging a budget and giving it back, by one thread and by two at once.

use crate::harness::{interleave, nanos_each};
use crate::hosts::BUDGET;
use crate::table::{Aim, Row, Table};
use leasehold::{Domain, Governor};
use onnx_runtime_memory_governor::{HolderId, LeaseLedger, LedgerGovernor, MemoryGovernor, Tier};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

const BYTES: u64 = 4096;
/// Long enough for two threads to run side by side.
const TURNS: u32 = 1_000_000;
const ROUNDS: usize = 21;
const AIM: Option<f64> = Some(3.0);

pub(crate) fn measure(table: &mut Table) {
    let ours = Governor::with_limits([(Domain::Host, BUDGET)]).expect("there is randomness");
    let theirs = LedgerGovernor::new(LeaseLedger::new(0, BUDGET, 0));
    for threads in [1, 2] {
        held(table, threads, &ours, &theirs);
        taken_anew(table, threads, &ours, &theirs);
    }
}

/// What a growing buffer does: a lease that it holds grows and shrinks.
fn held(table: &mut Table, threads: usize, ours: &Governor, theirs: &LedgerGovernor) {
    let our_turns = || {
        let mut lease = ours.lease(Domain::Host, BYTES, leasehold::MemoryRole::KvCache).expect("it fits");
        nanos_each(TURNS, |_| {
            lease.grow(black_box(BYTES)).expect("it fits");
            lease.shrink(black_box(BYTES));
        })
    };
    let their_turns = || {
        let mut lease = their_lease(theirs);
        nanos_each(TURNS, |_| {
            lease.grow(black_box(BYTES)).expect("it fits");
            black_box(lease.shrink(black_box(BYTES)));
        })
    };
    add(
        table,
        &format!("charge and refund on a lease that is held, {threads} at once"),
        (threads, AIM),
        our_turns,
        their_turns,
    );
}

/// A lease taken and dropped.
fn taken_anew(table: &mut Table, threads: usize, ours: &Governor, theirs: &LedgerGovernor) {
    let our_turns = || {
        nanos_each(TURNS, |_| {
            let lease = ours.lease(Domain::Host, black_box(BYTES), leasehold::MemoryRole::KvCache);
            drop(black_box(lease.expect("it fits")));
        })
    };
    let their_turns = || nanos_each(TURNS, |_| drop(black_box(their_lease(theirs))));
    add(table, &format!("a lease taken and dropped, {threads} at once"), (threads, None), our_turns, their_turns);
}

fn their_lease(theirs: &LedgerGovernor) -> onnx_runtime_memory_governor::MemoryLease {
    let role = onnx_runtime_memory_governor::MemoryRole::KvCache;
    theirs.reserve(Tier::Host, black_box(BYTES), role, HolderId::new(1)).expect("it fits")
}

fn add(
    table: &mut Table,
    what: &str,
    (threads, least): (usize, Option<f64>),
    our_turns: impl Fn() -> f64 + Sync,
    their_turns: impl Fn() -> f64 + Sync,
) {
    let [ours, theirs] =
        interleave(2, ROUNDS, [&mut || at_once(threads, &our_turns), &mut || at_once(threads, &their_turns)]);
    let ratio = ours.times_faster_than(&theirs);
    table.add(Row {
        what: what.to_owned(),
        ours: ours.time(),
        beside: "`LeaseLedger` of `onnx-runtime-memory-governor` 0.1.0-dev.6",
        theirs: theirs.time(),
        comparison: format!("{} faster", ratio.multiples()),
        aim: least.map_or(Aim::Reported, |least| Aim::AtLeast("≥ 3 ×", least, ratio.median)),
    });
}

/// Runs the work on so many threads at once; answers what the slowest of them measured.
fn at_once(threads: usize, work: &(impl Fn() -> f64 + Sync)) -> f64 {
    let barrier = Barrier::new(threads);
    let run = || {
        barrier.wait();
        work()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let ended = others.into_iter().map(|thread| thread.join().expect("the thread ends"));
        let here = run();
        ended.fold(here, f64::max)
    })
}
