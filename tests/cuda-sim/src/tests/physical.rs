//! CUDA Driver API, `cuMemCreate`, `cuMemRelease`, `cuMemRetainAllocationHandle`, `cuMemGetAllocationGranularity`.

use super::*;
use crate::memory::granularity;

#[test]
fn a_size_is_a_multiple_of_the_granularity_of_the_very_property_struct() {
    let mut simulation = ready();
    simulation.settings.set("rdma_granularity", 0, 4 * GRANULE).unwrap();
    assert_eq!(create(&mut simulation, 0, 0), Err(Code::INVALID_VALUE));
    assert_eq!(create(&mut simulation, 0, 6912), Err(Code::INVALID_VALUE));
    let rdma = AllocationProp { gpu_direct_rdma: 1, ..prop(0) };
    let of = |simulation: &mut Simulation, bytes| {
        call(simulation, |memory, settings, _| memory.create(settings, bytes, &rdma, 0))
    };
    assert_eq!(of(&mut simulation, GRANULE), Err(Code::INVALID_VALUE));
    let handle = of(&mut simulation, 4 * GRANULE).unwrap();
    release(&mut simulation, handle).unwrap();
    assert_clean(&simulation);
}

#[test]
fn granularity_is_minimum_or_recommended() {
    let mut settings = settings();
    settings.set("recommended", 0, 4 * GRANULE).unwrap();
    assert_eq!(granularity(&settings, &prop(0), 0), Ok(GRANULE));
    assert_eq!(granularity(&settings, &prop(0), 1), Ok(4 * GRANULE));
    assert_eq!(granularity(&settings, &prop(0), 2), Err(Code::INVALID_VALUE));
}

#[test]
fn properties_name_a_device_that_there_is() {
    let settings = settings();
    for device in [-1, 2, i32::MAX] {
        assert_eq!(granularity(&settings, &prop(device), 0), Err(Code::INVALID_DEVICE));
    }
    for wrong in [
        AllocationProp { kind: 0, ..prop(0) },
        AllocationProp { handle_types: 2, ..prop(0) },
        AllocationProp { location: MemLocation { kind: 2, id: 0 }, ..prop(0) },
        AllocationProp { reserved: [0, 0, 0, 1], ..prop(0) },
    ] {
        assert_eq!(granularity(&settings, &wrong, 0), Err(Code::INVALID_VALUE), "{wrong:?}");
    }
}

#[test]
fn a_device_without_virtual_memory_supports_nothing_of_it() {
    let mut settings = settings();
    settings.set("virtual_memory", 0, 0).unwrap();
    assert_eq!(granularity(&settings, &prop(0), 0), Err(Code::NOT_SUPPORTED));
}

#[test]
fn memory_runs_out_for_each_device_apart() {
    let mut simulation = ready();
    let all = create(&mut simulation, 0, 8 * GRANULE).unwrap();
    assert_eq!(create(&mut simulation, 0, GRANULE), Err(Code::OUT_OF_MEMORY));
    let other = create(&mut simulation, 1, GRANULE).unwrap();
    assert_eq!((simulation.memory.used(0), simulation.memory.used(1)), (8 * GRANULE, GRANULE));
    release(&mut simulation, all).unwrap();
    let again = create(&mut simulation, 0, 8 * GRANULE).unwrap();
    [other, again].into_iter().for_each(|handle| release(&mut simulation, handle).unwrap());
    assert_clean(&simulation);
}

#[test]
fn release_of_a_mapped_handle_is_legal_and_memory_lives_until_the_last_mapping_is_gone() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    fill(&mut simulation, base, GRANULE, 7).unwrap();
    release(&mut simulation, handles[0]).unwrap();
    assert_eq!(simulation.memory.used(0), GRANULE);
    assert_eq!(read(&mut simulation, base, 3), Ok(vec![7; 3]));
    unmap(&mut simulation, base, GRANULE).unwrap();
    assert_eq!(simulation.memory.used(0), 0);
    free_addresses(&mut simulation, base, GRANULE).unwrap();
    assert_clean(&simulation);
}

#[test]
fn memory_lives_until_the_last_handle_is_gone() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    fill(&mut simulation, base, GRANULE, 7).unwrap();
    unmap(&mut simulation, base, GRANULE).unwrap();
    assert_eq!(simulation.memory.used(0), GRANULE);
    map(&mut simulation, base, GRANULE, handles[0]).unwrap();
    assert_eq!(read(&mut simulation, base, 1), Err(Code::INVALID_VALUE), "access starts empty again");
    assert_eq!(simulation.memory.violations.drain(..).count(), 1);
    set_access(&mut simulation, base, GRANULE, &[grant(0, READ)]).unwrap();
    assert_eq!(read(&mut simulation, base, 1), Ok(vec![7]));
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn a_retained_handle_needs_a_release_of_its_own() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let retained = call(&mut simulation, |memory, _, _| memory.retain_handle(base + 4097)).unwrap();
    assert_eq!(retained, handles[0]);
    end(&mut simulation, base, &handles);
    assert_eq!(simulation.memory.used(0), GRANULE);
    release(&mut simulation, retained).unwrap();
    assert_clean(&simulation);
}

#[test]
fn only_what_is_mapped_can_be_retained() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, GRANULE).unwrap();
    assert_eq!(call(&mut simulation, |memory, _, _| memory.retain_handle(base)), Err(Code::INVALID_VALUE));
}

#[test]
fn a_dead_handle_is_a_violation() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, GRANULE).unwrap();
    let handle = create(&mut simulation, 0, GRANULE).unwrap();
    release(&mut simulation, handle).unwrap();
    assert_eq!(release(&mut simulation, handle), WRONG);
    assert_eq!(map(&mut simulation, base, GRANULE, handle), WRONG);
    let words = &simulation.memory.violations;
    assert_eq!(words.len(), 2);
    assert!(words[0].starts_with("cuMemRelease: 0xcafe") && words[1].starts_with("cuMemMap: 0xcafe"), "{words:?}");
}

#[test]
fn a_handle_whose_memory_only_a_mapping_keeps_is_dead() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    release(&mut simulation, handles[0]).unwrap();
    assert_eq!(release(&mut simulation, handles[0]), WRONG);
    assert!(only_violation(&simulation).ends_with("is no live handle"));
    unmap(&mut simulation, base, GRANULE).unwrap();
}

#[test]
fn whether_the_number_of_a_handle_comes_again_is_a_setting() {
    let mut simulation = ready();
    let again = |simulation: &mut Simulation| {
        let first = create(simulation, 0, GRANULE).unwrap();
        release(simulation, first).unwrap();
        let next = create(simulation, 0, GRANULE).unwrap();
        release(simulation, next).unwrap();
        first == next
    };
    assert!(!again(&mut simulation));
    simulation.settings.set("handles_again", 0, 1).unwrap();
    assert!(again(&mut simulation));
    assert_clean(&simulation);
}
