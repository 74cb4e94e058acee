//! CUDA Driver API, `cuMemcpyHtoD` and its kin, `cuMemsetD8`, `cuMemAlloc`, `cuMemFree`; CUDA Programming Guide,
//! Virtual Aliasing Support.

use super::*;
use crate::memory::Wish;
use crate::settings::FRESH;

#[test]
fn aliases_are_the_same_bytes() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let alias = reserve(&mut simulation, GRANULE).unwrap();
    map(&mut simulation, alias, GRANULE, handles[0]).unwrap();
    set_access(&mut simulation, alias, GRANULE, &[grant(0, READ)]).unwrap();
    call(&mut simulation, |memory, settings, _| memory.write(0, base + 5, b"seen", settings.fresh)).unwrap();
    assert_eq!(read(&mut simulation, alias + 5, 4), Ok(b"seen".to_vec()));
    assert_eq!(simulation.memory.used(0), GRANULE);
}

#[test]
fn fresh_memory_is_not_zero() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    assert_eq!(read(&mut simulation, base, 4), Ok(vec![FRESH; 4]));
    fill(&mut simulation, base, GRANULE, 0).unwrap();
    assert_eq!(read(&mut simulation, base + GRANULE - 2, 2), Ok(vec![0; 2]));
    end(&mut simulation, base, &handles);
    let (base, _) = mapped(&mut simulation, 1);
    assert_eq!(read(&mut simulation, base, 4), Ok(vec![FRESH; 4]), "nor what somebody left");
}

#[test]
fn copies_cross_mappings_that_touch() {
    let mut simulation = ready();
    let (base, _) = mapped(&mut simulation, 3);
    let across = base + GRANULE - 2;
    call(&mut simulation, |memory, settings, _| memory.write(0, across, b"over", settings.fresh)).unwrap();
    assert_eq!(read(&mut simulation, across, 4), Ok(b"over".to_vec()));
    call(&mut simulation, |memory, settings, _| memory.copy(0, base + 2 * GRANULE, across, 4, settings.fresh)).unwrap();
    assert_eq!(read(&mut simulation, base + 2 * GRANULE, 4), Ok(b"over".to_vec()));
}

#[test]
fn a_copy_that_leaves_what_is_mapped_does_nothing() {
    let mut simulation = ready();
    let (base, _) = mapped(&mut simulation, 1);
    let end = base + GRANULE;
    assert_eq!(fill(&mut simulation, end - 4, 8, 1), WRONG);
    assert_eq!(read(&mut simulation, end - 4, 4), Ok(vec![FRESH; 4]));
    assert_eq!(fill(&mut simulation, u64::MAX, 2, 1), WRONG);
    assert_eq!(fill(&mut simulation, end, 0, 1), Ok(()), "no bytes are nowhere");
}

#[test]
fn a_write_into_memory_to_read_is_an_invalid_value_and_a_violation_and_the_context_lives() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    set_access(&mut simulation, base, GRANULE, &[grant(0, READ)]).unwrap();
    assert_eq!(fill(&mut simulation, base, 1, 1), WRONG);
    assert_eq!(call(&mut simulation, |memory, settings, _| memory.copy(0, base, base + 8, 8, settings.fresh)), WRONG);
    assert_eq!(read(&mut simulation, base, 1), Ok(vec![FRESH]));
    let words: Vec<_> = simulation.memory.violations.drain(..).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].starts_with("a copy or fill: device 0 may not write 1 bytes at 0x"), "{words:?}");
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn the_current_device_needs_the_access() {
    let mut simulation = ready();
    let (base, _) = mapped(&mut simulation, 1);
    bind(&mut simulation, 1);
    assert_eq!(read(&mut simulation, base, 1), Err(Code::INVALID_VALUE));
    set_access(&mut simulation, base, GRANULE, &[grant(1, READ)]).unwrap();
    assert_eq!(read(&mut simulation, base, 1), Ok(vec![FRESH]));
    assert_eq!(fill(&mut simulation, base, 1, 1), WRONG);
}

#[test]
fn a_kernel_without_access_poisons_its_context_and_no_other() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    simulation.contexts.retain(1);
    assert_eq!(simulation.touch(0, base, Wish::Write), Ok(()));
    assert_eq!(simulation.touch(1, base, Wish::Read), Err(Code::ILLEGAL_ADDRESS));
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
    bind(&mut simulation, 1);
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::ILLEGAL_ADDRESS));
    assert_eq!(reserve(&mut simulation, GRANULE), Err(Code::ILLEGAL_ADDRESS), "it sticks");
}

#[test]
fn a_kernel_of_another_device_does_not_reach_a_plain_allocation() {
    let mut simulation = ready();
    let base = call(&mut simulation, |memory, settings, device| memory.allocate(settings, device, 1000)).unwrap();
    simulation.contexts.retain(1);
    assert_eq!(simulation.touch(0, base, Wish::Write), Ok(()));
    assert_eq!(simulation.touch(1, base, Wish::Read), Err(Code::ILLEGAL_ADDRESS));
}

#[test]
fn copies_that_overlap_are_a_violation() {
    let mut simulation = ready();
    let (base, _) = mapped(&mut simulation, 1);
    assert_eq!(call(&mut simulation, |memory, settings, _| memory.copy(0, base, base + 4, 8, settings.fresh)), WRONG);
    assert!(only_violation(&simulation).starts_with("cuMemcpyDtoD: 8 bytes"));
}

#[test]
fn a_plain_allocation_is_of_one_byte_or_more_and_counts() {
    let mut simulation = ready();
    let allocate = |simulation: &mut Simulation, bytes| {
        call(simulation, |memory, settings, device| memory.allocate(settings, device, bytes))
    };
    assert_eq!(allocate(&mut simulation, 0), Err(Code::INVALID_VALUE));
    assert_eq!(allocate(&mut simulation, 8 * GRANULE + 1), Err(Code::OUT_OF_MEMORY));
    assert_eq!(allocate(&mut simulation, u64::MAX), Err(Code::OUT_OF_MEMORY));
    let base = allocate(&mut simulation, 1000).unwrap();
    assert_eq!(simulation.memory.used(0), 1024);
    fill(&mut simulation, base, 1000, 9).unwrap();
    assert_eq!(fill(&mut simulation, base, 1001, 9), WRONG);
    assert_eq!(simulation.memory.violations.drain(..).count(), 1);
    assert_eq!(read(&mut simulation, base + 999, 1), Ok(vec![9]));
    assert_eq!(call(&mut simulation, |memory, _, _| memory.free_allocation(base)), Ok(1000));
    assert_clean(&simulation);
    let again = call(&mut simulation, |memory, _, _| memory.free_allocation(base));
    assert_eq!(again, Err(Code::INVALID_VALUE));
    assert!(only_violation(&simulation).starts_with("cuMemFree: no allocation begins at"));
}
