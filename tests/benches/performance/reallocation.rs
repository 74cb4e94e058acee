//! Growing in place beside reallocating: time and peak memory, every byte written on both sides.

use crate::child;
use crate::growth::{TOKEN, WHOLE};
use crate::harness::{Samples, interleave, nanos};
use crate::hosts::{MIB, Single};
use crate::table::{Aim, Row, Table};
use leasehold::GrowthPolicy;
use std::fs;

const ROUNDS: usize = 5;

/// What one child measured.
struct Run {
    nanoseconds: f64,
    peak_bytes: f64,
}

pub(crate) fn measure(table: &mut Table) {
    let [exact, stepped, vector, copied] =
        interleave(1, ROUNDS, [&mut || run("exact"), &mut || run("step"), &mut || run("vec"), &mut || run("copy")]);
    let besides = [
        ("`Vec<u8>` (the allocator's `mremap` moves it)", &vector),
        ("a new `Vec<u8>` of twice the size, copied", &copied),
    ];
    for (policy, ours) in [("Exact", &exact), ("Step(2 MiB)", &stepped)] {
        for (beside, theirs) in besides {
            add(table, policy, ours, beside, theirs);
        }
    }
}

fn run(variant: &str) -> Run {
    match child::figures(&[variant]).as_slice() {
        [nanoseconds, peak_bytes] => Run { nanoseconds: *nanoseconds, peak_bytes: *peak_bytes },
        other => panic!("{variant}: {other:?}"),
    }
}

fn add(table: &mut Table, policy: &str, ours: &Samples<Run>, beside: &'static str, theirs: &Samples<Run>) {
    let nanoseconds = |run: &Run| run.nanoseconds;
    let (our_time, their_time) = (ours.each(nanoseconds), theirs.each(nanoseconds));
    table.add(Row {
        what: format!("500 MiB, 4 KiB at a time, {policy}, every byte written"),
        ours: our_time.time(),
        beside,
        theirs: their_time.time(),
        comparison: format!("{} faster", our_time.times_faster_than(&their_time).multiples()),
        aim: Aim::Reported,
    });
    let peak = |run: &Run| run.peak_bytes / 1048576.0;
    let (ours, theirs) = (ours.each(peak), theirs.each(peak));
    table.add(Row {
        what: format!("peak resident memory of that, {policy}"),
        ours: format!("{:.0} MiB", ours.median()),
        beside,
        theirs: format!("{:.0} MiB", theirs.median()),
        comparison: ours.relative_to(&theirs).multiples(),
        aim: Aim::Reported,
    });
}

/// Grows and writes; answers nanoseconds and the peak.
pub(crate) fn in_this_process(variant: &str) -> String {
    let nanoseconds = match variant {
        "exact" => grow_a_buffer(GrowthPolicy::Exact),
        "step" => grow_a_buffer(GrowthPolicy::Step(2 * MIB)),
        "vec" => grow_a_vector(),
        "copy" => grow_by_copies(),
        _ => panic!("a variant that is not known: {variant}"),
    };
    format!("{nanoseconds} {}", peak_bytes())
}

fn tokens() -> impl Iterator<Item = u64> {
    (1..=WHOLE / TOKEN).map(|count| count * TOKEN)
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("is small")
}

fn grow_a_buffer(policy: GrowthPolicy) -> f64 {
    let host = Single::loaded();
    let mut buffer = host.buffer(WHOLE, policy);
    nanos(|| {
        for bytes in tokens() {
            buffer.grow_to(bytes).expect("there is memory");
            let all = buffer.as_mut_slice().expect("it is host memory");
            all[in_memory(bytes - TOKEN)..].fill(7);
        }
    })
}

fn grow_a_vector() -> f64 {
    let mut vector: Vec<u8> = Vec::new();
    nanos(|| tokens().for_each(|bytes| vector.resize(in_memory(bytes), 7)))
}

/// What reallocating is where the allocator can't move pages: memory of a device, say.
fn grow_by_copies() -> f64 {
    let mut vector: Vec<u8> = Vec::new();
    nanos(|| {
        for bytes in tokens() {
            if in_memory(bytes) > vector.capacity() {
                let mut larger = Vec::with_capacity(in_memory(bytes).max(2 * vector.capacity()));
                larger.extend_from_slice(&vector);
                vector = larger;
            }
            vector.resize(in_memory(bytes), 7);
        }
    })
}

/// `VmHWM`, see proc_pid_status(5).
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("there is a /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel keeps the peak");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is a number");
    kibibytes * 1024
}
