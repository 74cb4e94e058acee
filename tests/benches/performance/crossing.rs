//! What a call through a shared library costs beyond the same call to the same backing linked in.

use crate::bare::Spacers;
use crate::harness::{Samples, interleave, nanos_each};
use crate::hosts::{MIB, Single};
use crate::table::{Aim, Row, Table};
use leasehold::GrowthPolicy;
use std::hint::black_box;

const GRANULE: u64 = 4096;

pub(crate) fn measure(table: &mut Table) {
    let (loaded, linked_in) = (Single::loaded(), Single::linked_in());
    without_system_calls(table, &loaded, &linked_in);
    with_system_calls(table, &loaded, &linked_in);
}

/// `growth_cost` asks the backing and makes no system call: the difference is the crossing alone.
fn without_system_calls(table: &mut Table, loaded: &Single, linked_in: &Single) {
    const TURNS: u32 = 100_000;
    let (through, direct) = (loaded.set(MIB), linked_in.set(MIB));
    let [ours, theirs] = interleave(
        5,
        61,
        [&mut || nanos_each(TURNS, |_| drop(black_box(through.growth_cost(black_box(GRANULE))))), &mut || {
            nanos_each(TURNS, |_| drop(black_box(direct.growth_cost(black_box(GRANULE)))))
        }],
    );
    add(table, "one call through the `.so`, no system call in it (`growth_cost`)", &ours, &theirs);
}

/// One granule committed and decommitted: two crossings, and the same system calls on both sides. Each sample has a
/// region of its own, in the place that the other side's had. It is the second granule: around the first one the
/// kernel's work depends on which mapping happens to lie before the region.
fn with_system_calls(table: &mut Table, loaded: &Single, linked_in: &Single) {
    let mut spacers = Spacers::default();
    let [ours, theirs] = interleave(
        32,
        960,
        [
            &mut || {
                spacers.add();
                commit_or_decommit(loaded)
            },
            &mut || commit_or_decommit(linked_in),
        ],
    );
    add(table, "one `commit` or `decommit` of a granule through the `.so`, system call included", &ours, &theirs);
}

/// Nanoseconds of half of a commit and a decommit.
fn commit_or_decommit(host: &Single) -> f64 {
    const TURNS: u32 = 500;
    let mut buffer = host.buffer(MIB, GrowthPolicy::Exact);
    buffer.grow_to(GRANULE).expect("there is memory");
    let turn = nanos_each(TURNS, |_| {
        buffer.grow_to(2 * GRANULE).expect("there is memory");
        buffer.shrink_to(GRANULE).expect("it shrinks");
    });
    turn / 2.0
}

fn add(table: &mut Table, what: &str, ours: &Samples, theirs: &Samples) {
    let more = ours.beyond(theirs);
    table.add(Row {
        what: what.to_owned(),
        ours: ours.time(),
        beside: "the same backing linked in",
        theirs: theirs.time(),
        comparison: more.nanoseconds(),
        aim: Aim::AtMost("≤ 10 ns more", 10.0, more.median),
    });
}
