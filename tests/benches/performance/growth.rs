//! Growing a buffer: within what is committed, in large steps, and a token at a time.

use crate::bare::{Reservation, Spacers};
use crate::harness::{Samples, interleave, nanos, nanos_each};
use crate::hosts::{BUDGET, GIB, KIB, MIB, Single};
use crate::table::{Aim, Row, Table};
use leasehold::{Buffer, GrowthPolicy};
use onnx_runtime_memory_governor::{HolderId, LeaseLedger, LedgerGovernor, MemoryRole, Tier};
use onnx_runtime_virtual_memory::VirtualBuffer;
use std::hint::black_box;
use std::sync::Arc;

/// What the whole buffer grows to, and by how much at a time.
pub(crate) const WHOLE: u64 = 500 * MIB;
pub(crate) const TOKEN: u64 = 4 * KIB;

/// The least that growing within the committed part could be.
struct Watermark {
    len: u64,
    committed: u64,
}

impl Watermark {
    #[inline(always)]
    fn grow_to(&mut self, bytes: u64) -> Result<(), u64> {
        if bytes > self.committed {
            return Err(bytes);
        }
        self.len = self.len.max(bytes);
        Ok(())
    }
}

/// A comparison and a store, through the public interface.
pub(crate) fn within_the_committed_part(table: &mut Table) {
    const TURNS: u32 = 1_000_000;
    let host = Single::loaded();
    let mut buffer = host.buffer(4 * MIB, GrowthPolicy::Exact);
    buffer.grow_to(4 * MIB).expect("there is memory");
    let mut watermark = Watermark { len: 0, committed: 4 * MIB };
    let mut grow_buffer = || {
        buffer.shrink_to(4 * MIB - 1).expect("nothing is given back");
        nanos_each(TURNS, |turn| {
            let _ = black_box(black_box(&mut buffer).grow_to(black_box(turn)));
        })
    };
    let mut grow_watermark = || {
        nanos_each(TURNS, |turn| {
            let _ = black_box(black_box(&mut watermark).grow_to(black_box(turn)));
        })
    };
    let [ours, theirs] = interleave(3, 31, [&mut grow_buffer, &mut grow_watermark]);
    table.add(Row {
        what: "`grow_to` within the committed part".to_owned(),
        ours: ours.time(),
        beside: "a comparison and a store, inlined",
        theirs: theirs.time(),
        comparison: ours.beyond(&theirs).nanoseconds(),
        aim: Aim::AtMost("≤ 3 ns", 3.0, ours.median()),
    });
}

/// What 1 GiB grows by at a time.
const STEP: u64 = 2 * MIB;

/// 1 GiB in steps of 2 MiB, exactly what is asked for, never touched.
pub(crate) fn in_large_steps(table: &mut Table) {
    let host = Single::loaded();
    let mut spacers = Spacers::default();
    let mut grow_buffer = || {
        spacers.add();
        let mut buffer = host.buffer(GIB, GrowthPolicy::Exact);
        nanos(|| grow(&mut buffer, GIB, STEP))
    };
    let mut grow_bare = || {
        let mut bare = Reservation::new(in_memory(GIB));
        nanos(|| bare.open(in_memory(STEP)))
    };
    let [ours, theirs] = interleave(32, 320, [&mut grow_buffer, &mut grow_bare]);
    let ratio = ours.relative_to(&theirs);
    table.add(Row {
        what: "1 GiB in 2 MiB steps, Exact, untouched".to_owned(),
        ours: ours.time(),
        beside: "`mprotect` alone, in a loop",
        theirs: theirs.time(),
        comparison: ratio.multiples(),
        aim: Aim::AtMost("≤ 1.10 ×", 1.10, ratio.median),
    });
    in_large_steps_written(table, &host);
}

/// The same, and a byte of every page is written after each step: what an engine sees of it.
fn in_large_steps_written(table: &mut Table, host: &Single) {
    let mut grow_buffer = || {
        let mut buffer = host.buffer(GIB, GrowthPolicy::Exact);
        nanos(|| {
            for end in (1..=GIB / STEP).map(|count| count * STEP) {
                buffer.grow_to(end).expect("there is memory");
                let all = buffer.as_mut_slice().expect("it is host memory");
                write_pages(&mut all[in_memory(end - STEP)..]);
            }
        })
    };
    let mut grow_bare = || {
        let mut bare = Reservation::new(in_memory(GIB));
        nanos(|| bare.open_and(in_memory(STEP), write_pages))
    };
    let [ours, theirs] = interleave(1, 5, [&mut grow_buffer, &mut grow_bare]);
    table.add(Row {
        what: "1 GiB in 2 MiB steps, Exact, a byte of every page written".to_owned(),
        ours: ours.time(),
        beside: "`mprotect` and the same writes",
        theirs: theirs.time(),
        comparison: ours.relative_to(&theirs).multiples(),
        aim: Aim::Reported,
    });
}

fn write_pages(bytes: &mut [u8]) {
    bytes.iter_mut().step_by(in_memory(TOKEN)).for_each(|byte| *byte = 7);
}

/// Nanoseconds of a growth and of the shrinking after it.
struct ThereAndBack {
    growth: f64,
    shrinking: f64,
}

impl ThereAndBack {
    fn of(host: &Single, policy: GrowthPolicy) -> Self {
        let mut buffer = host.buffer(WHOLE, policy);
        let growth = nanos(|| grow(&mut buffer, WHOLE, TOKEN));
        let shrinking = nanos(|| shrink(&mut buffer, TOKEN));
        Self { growth, shrinking }
    }

    fn of_system_calls_alone() -> Self {
        let (whole, token) = (in_memory(WHOLE), in_memory(TOKEN));
        let mut bare = Reservation::new(whole);
        let growth = nanos(|| bare.open(token));
        let shrinking = nanos(|| bare.close(token));
        Self { growth, shrinking }
    }

    fn of_the_other_stack() -> Self {
        let governor = Arc::new(LedgerGovernor::new(LeaseLedger::new(0, BUDGET, 0)));
        let (role, holder) = (MemoryRole::KvCache, HolderId::new(1));
        let capacity = in_memory(WHOLE);
        let mut buffer =
            VirtualBuffer::with_capacity(capacity, governor, Tier::Host, role, holder).expect("address space is free");
        let token = in_memory(TOKEN);
        let lengths = || (0..=capacity / token).map(|count| count * token);
        let growth = nanos(|| lengths().for_each(|bytes| buffer.grow_to(bytes).expect("there is memory")));
        let shrinking = nanos(|| lengths().rev().for_each(|bytes| buffer.shrink_to(bytes).expect("it shrinks")));
        Self { growth, shrinking }
    }
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("is small")
}

fn grow(buffer: &mut Buffer, to: u64, step: u64) {
    let mut len = buffer.len();
    while len < to {
        len += step;
        buffer.grow_to(len).expect("there is memory");
    }
}

fn shrink(buffer: &mut Buffer, step: u64) {
    let mut len = buffer.len();
    while len > 0 {
        len -= step;
        buffer.shrink_to(len).expect("it shrinks");
    }
}

/// 500 MiB, 4 KiB at a time, and back, beside a stack that keeps a list of its mappings.
pub(crate) fn token_by_token(table: &mut Table) {
    let host = Single::loaded();
    let step = GrowthPolicy::Step(2 * MIB);
    // Only ours gets a warm-up: the other stack takes too long for a round that doesn't count.
    let _ = ThereAndBack::of(&host, GrowthPolicy::Exact);
    let [exact, bare, stepped, other] = interleave(
        0,
        3,
        [
            &mut || ThereAndBack::of(&host, GrowthPolicy::Exact),
            &mut ThereAndBack::of_system_calls_alone,
            &mut || ThereAndBack::of(&host, step),
            &mut ThereAndBack::of_the_other_stack,
        ],
    );
    beside_system_calls(table, &exact, &bare);
    beside_the_other_stack(table, "Exact", &exact, &other, ("≥ 30 ×", 30.0));
    beside_the_other_stack(table, "Step(2 MiB)", &stepped, &other, ("≥ 1000 ×", 1000.0));
}

fn beside_system_calls(table: &mut Table, ours: &Samples<ThereAndBack>, theirs: &Samples<ThereAndBack>) {
    for (what, figure) in FIGURES {
        let (ours, theirs) = (ours.each(figure), theirs.each(figure));
        table.add(Row {
            what: format!("500 MiB, 4 KiB at a time, Exact: {what}"),
            ours: ours.time(),
            beside: "`mprotect` and `mmap(MAP_FIXED)` alone",
            theirs: theirs.time(),
            comparison: ours.relative_to(&theirs).multiples(),
            aim: Aim::Reported,
        });
    }
}

/// A name and the nanoseconds that it stands for.
type Figure = (&'static str, fn(&ThereAndBack) -> f64);

const FIGURES: [Figure; 2] =
    [("growth and shrinking", |run| run.growth + run.shrinking), ("growth alone", |run| run.growth)];

fn beside_the_other_stack(
    table: &mut Table,
    policy: &str,
    ours: &Samples<ThereAndBack>,
    theirs: &Samples<ThereAndBack>,
    (aim, least): (&'static str, f64),
) {
    for (what, figure) in FIGURES {
        let (ours, theirs) = (ours.each(figure), theirs.each(figure));
        let ratio = ours.times_faster_than(&theirs);
        table.add(Row {
            what: format!("500 MiB, 4 KiB at a time, {policy}: {what}"),
            ours: ours.time(),
            beside: "`onnx-runtime-virtual-memory` 0.1.0-dev.6",
            theirs: theirs.time(),
            comparison: format!("{} faster", ratio.multiples()),
            aim: Aim::AtLeast(aim, least, ratio.median),
        });
    }
}
