//! CUDA Driver API, Stream Management.

use super::*;
use crate::memory::Wish;
use crate::streams::{StreamId, exchange_capture_mode};

fn stream(simulation: &mut Simulation) -> StreamId {
    simulation.streams.create(0, 1).unwrap()
}

/// Begins to fill a range.
fn begin(simulation: &mut Simulation, stream: StreamId, base: u64, bytes: u64) {
    simulation.begin("a fill", (stream, 0), (base, bytes, Wish::Write)).unwrap();
}

#[test]
fn a_stream_has_no_flag_but_one_and_dies_once() {
    let mut simulation = ready();
    assert_eq!(simulation.streams.create(0, 2), Err(Code::INVALID_VALUE));
    let made = stream(&mut simulation);
    assert_eq!(simulation.check_stream("f", made, 0), Ok(()));
    assert_eq!(simulation.check_stream("f", made, 1), Err(Code::INVALID_HANDLE), "of another context");
    assert_eq!(simulation.check_stream("f", 0, 1), Ok(()), "each context has a default stream");
    simulation.streams.destroy(made);
    assert_eq!(simulation.check_stream("f", made, 0), Err(Code::INVALID_HANDLE));
    assert!(only_violation(&simulation).ends_with("is no live stream"));
}

#[test]
fn what_is_under_way_is_not_to_be_unmapped() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 2);
    let made = stream(&mut simulation);
    begin(&mut simulation, made, base + GRANULE, 1);
    simulation.check_idle("cuMemUnmap", base, GRANULE);
    assert!(simulation.memory.violations.is_empty(), "beside it");
    simulation.check_idle("cuMemUnmap", base + GRANULE, GRANULE);
    assert!(only_violation(&simulation).ends_with("while a fill is under way there"));
    simulation.streams.wait(made);
    simulation.check_idle("cuMemUnmap", base + GRANULE, GRANULE);
    assert_eq!(simulation.memory.violations.len(), 1, "it was waited for");
    end(&mut simulation, base, &handles);
}

#[test]
fn two_streams_are_not_ordered_and_an_alias_is_the_same_memory() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let alias = reserve(&mut simulation, GRANULE).unwrap();
    map(&mut simulation, alias, GRANULE, handles[0]).unwrap();
    set_access(&mut simulation, alias, GRANULE, &[grant(0, READ_WRITE)]).unwrap();
    let (one, other) = (stream(&mut simulation), stream(&mut simulation));
    begin(&mut simulation, one, base, 16);
    begin(&mut simulation, one, base, 16);
    begin(&mut simulation, other, base + 16, 16);
    assert!(simulation.memory.violations.is_empty(), "the same stream, and other bytes");
    begin(&mut simulation, other, alias + 8, 16);
    assert!(only_violation(&simulation).contains("while a fill is under way on another stream"));
    simulation.streams.wait_for_device(0);
    begin(&mut simulation, other, base, 16);
    assert_eq!(simulation.memory.violations.len(), 1);
    simulation.streams.wait(other);
    unmap(&mut simulation, alias, GRANULE).unwrap();
    free_addresses(&mut simulation, alias, GRANULE).unwrap();
    end(&mut simulation, base, &handles);
}

#[test]
fn while_a_graph_is_captured_only_a_relaxed_thread_may_call() {
    let mut simulation = ready();
    simulation.streams.is_capturing = true;
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::STREAM_CAPTURE_UNSUPPORTED));
    assert!(only_violation(&simulation).contains("unsafe while another thread captures a graph"));
    assert_eq!((exchange_capture_mode(2), exchange_capture_mode(3)), (Ok(0), Err(Code::INVALID_VALUE)));
    let base = reserve(&mut simulation, GRANULE).unwrap();
    assert_eq!(exchange_capture_mode(0), Ok(2));
    simulation.streams.is_capturing = false;
    free_addresses(&mut simulation, base, GRANULE).unwrap();
}
