//! A prefix that is mapped beside one that is copied, and parked memory beside fresh memory.

use crate::harness::{Samples, interleave, nanos, nanos_each};
use crate::hosts::{GIB, MIB, Single};
use crate::table::{Aim, Row, Table};
use leasehold::Buffer;
use std::hint::black_box;

const PREFIX: u64 = 256 * MIB;
const GROWTH: u64 = 64 * MIB;
const PAGE: usize = 4096;
/// Mappings of a sample: one alone would be timed with the caches that a copy has just emptied.
const TURNS: u32 = 64;

pub(crate) fn measure(table: &mut Table) {
    prefixes(table);
    parked(table);
}

/// Into a buffer that is there and empty, beside a copy into memory that was touched before.
fn prefixes(table: &mut Table) {
    let pool = Single::pool(GIB);
    let prefix = pool.prefix(PREFIX);
    let mut target = pool.buffer_of(1, PREFIX);
    target.grow_to(PREFIX).expect("it fits");
    target.as_mut_slice().expect("the CPU can touch it").fill(1);
    let map = || {
        let mut buffers: Vec<_> = (0..TURNS).map(|_| pool.buffer_of(1, PREFIX)).collect();
        let mut empty = buffers.iter_mut();
        nanos_each(TURNS, |_| empty.next().expect("one for each turn").map_prefix(&prefix).expect("it fits"))
    };
    let read = || {
        let mut buffer = pool.buffer_of(1, PREFIX);
        nanos(|| {
            buffer.map_prefix(&prefix).expect("it fits");
            read_each_page(&buffer);
        })
    };
    let mut copied = || {
        let from = prefix.plane(0).expect("the CPU can touch it");
        nanos(|| target.as_mut_slice().expect("the CPU can touch it").copy_from_slice(black_box(from)))
    };
    let [map, read, copy] = interleave(2, 21, [&mut || map(), &mut || read(), &mut copied]);
    let row = |what, ours: &Samples, aim: fn(f64) -> Aim| {
        let spread = ours.times_faster_than(&copy);
        Row {
            what,
            ours: ours.time(),
            beside: "copying it into memory that was touched before",
            theirs: copy.time(),
            comparison: format!("{} faster", spread.multiples()),
            aim: aim(spread.median),
        }
    };
    let whole = "a prefix of 256 MiB mapped into a buffer";
    table.add(row(whole.to_owned(), &map, |seen| Aim::AtLeast("≥ 1000 ×", 1000.0, seen)));
    table.add(row(format!("{whole}, every page read"), &read, |_| Aim::Reported));
}

/// Committed and touched, from memory that was parked and from memory that was not there.
fn parked(table: &mut Table) {
    let (own, others, cold) = (Single::pool(GIB), Single::pool(GIB), Single::pool(0));
    let grown = |pool: &Single, holder| {
        let mut buffer = pool.buffer_of(holder, GROWTH);
        nanos(|| {
            buffer.grow_to(GROWTH).expect("it fits");
            write_each_page(&mut buffer);
        })
    };
    let mut holder = 1;
    let mut next = || {
        holder += 1;
        holder
    };
    let [same, other, fresh] =
        interleave(2, 21, [&mut || grown(&own, 1), &mut || grown(&others, next()), &mut || grown(&cold, 1)]);
    let rows = [("their own holder's", same), ("another holder's, zeroed", other)];
    for (whose, ours) in rows {
        let spread = ours.times_faster_than(&fresh);
        table.add(Row {
            what: format!("64 MiB committed from parked granules and touched: {whose}"),
            ours: ours.time(),
            beside: "committed from fresh ones and touched",
            theirs: fresh.time(),
            comparison: format!("{} faster", spread.multiples()),
            aim: Aim::AtLeast("≥ 5 ×", 5.0, spread.median),
        });
    }
}

fn read_each_page(buffer: &Buffer) {
    let bytes = buffer.as_slice().expect("the CPU can touch it");
    black_box(bytes.iter().step_by(PAGE).fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
}

fn write_each_page(buffer: &mut Buffer) {
    let bytes = buffer.as_mut_slice().expect("the CPU can touch it");
    bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(bytes);
}
