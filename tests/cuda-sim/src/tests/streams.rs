//! CUDA Driver API, Stream Management.

use super::*;
use crate::memory::Wish;
use crate::streams::{Queue, exchange_capture_mode};

const LEGACY: Queue = Queue::Legacy(0);

/// A stream that is ordered with the legacy one, or with none.
fn made(simulation: &mut Simulation, is_blocking: bool) -> Queue {
    let made = simulation.streams.create(0, u32::from(!is_blocking)).unwrap();
    simulation.queue("f", made, 0).unwrap()
}

fn stream(simulation: &mut Simulation) -> Queue {
    made(simulation, false)
}

/// Begins to fill a range.
fn begin(simulation: &mut Simulation, queue: Queue, base: u64, bytes: u64) {
    simulation.begin("a fill", queue, (base, bytes, Wish::Write)).unwrap();
}

#[test]
fn a_stream_has_no_flag_but_one_and_dies_once() {
    let mut simulation = ready();
    assert_eq!(simulation.streams.create(0, 2), Err(Code::INVALID_VALUE));
    let made = simulation.streams.create(0, 1).unwrap();
    let queue = Queue::Made { device: 0, stream: made, is_blocking: false };
    assert_eq!(simulation.queue("f", made, 0), Ok(queue));
    assert_eq!(simulation.queue("f", made, 1), Err(Code::INVALID_HANDLE), "of another context");
    simulation.streams.destroy(made);
    assert_eq!(simulation.queue("f", made, 0), Err(Code::INVALID_HANDLE));
    assert!(only_violation(&simulation).ends_with("is no live stream"));
}

#[test]
fn each_context_has_default_streams_and_each_thread_has_its_own() {
    let mut simulation = ready();
    let mut queue = |stream, device| simulation.queue("f", stream, device).unwrap();
    assert_eq!([queue(0, 0), queue(1, 0), queue(0, 1)], [LEGACY, LEGACY, Queue::Legacy(1)]);
    let mine = queue(2, 0);
    assert_eq!(mine, queue(2, 0));
    let theirs = std::thread::scope(|scope| scope.spawn(|| queue(2, 0)).join().unwrap());
    assert!(theirs != mine && mine != LEGACY);
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
fn the_legacy_stream_is_ordered_with_those_that_block() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let (first, second) = (made(&mut simulation, true), made(&mut simulation, true));
    begin(&mut simulation, first, base, 16);
    begin(&mut simulation, LEGACY, base, 16);
    begin(&mut simulation, second, base, 16);
    assert_eq!(simulation.streams.works(), 3);
    simulation.streams.wait(second);
    assert_eq!((simulation.streams.works(), simulation.memory.violations.len()), (0, 0), "one after the other");

    begin(&mut simulation, second, base, 16);
    begin(&mut simulation, LEGACY, base, 16);
    simulation.streams.wait(second);
    assert_eq!(simulation.streams.works(), 1, "what came later is not waited for");
    let beside = stream(&mut simulation);
    begin(&mut simulation, beside, base, 16);
    assert!(only_violation(&simulation).contains("while a fill is under way on another stream"));
    simulation.streams.wait(beside);
    assert_eq!(simulation.streams.works(), 1);
    simulation.streams.wait(LEGACY);
    end(&mut simulation, base, &handles);
}

#[test]
fn the_legacy_stream_depends_on_what_is_captured_whatever_the_mode() {
    let mut simulation = ready();
    simulation.streams.is_capturing = true;
    assert_eq!(simulation.queue("f", 0, 0), Err(Code::STREAM_CAPTURE_IMPLICIT));
    assert!(only_violation(&simulation).ends_with("on the legacy stream while another thread captures a graph"));
    let beside = stream(&mut simulation);
    assert!(matches!(beside, Queue::Made { is_blocking: false, .. }));
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
