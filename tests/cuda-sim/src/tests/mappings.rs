//! CUDA Driver API, `cuMemMap`, `cuMemUnmap`, `cuMemSetAccess`, `cuMemGetAccess`.

use super::*;

#[test]
fn the_offset_is_zero_and_flags_are_zero() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, GRANULE).unwrap();
    let handle = create(&mut simulation, 0, 2 * GRANULE).unwrap();
    assert_eq!(call(&mut simulation, |memory, _, _| memory.map(base, GRANULE, GRANULE, handle, 0)), WRONG);
    assert_eq!(call(&mut simulation, |memory, _, _| memory.map(base, GRANULE, 0, handle, 1)), WRONG);
    map(&mut simulation, base, GRANULE, handle).unwrap();
}

#[test]
fn address_and_size_are_multiples_of_the_granularity_and_no_more_than_the_handle_has() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, 4 * GRANULE).unwrap();
    let handle = create(&mut simulation, 0, GRANULE).unwrap();
    for (address, bytes) in [(base, 0), (base, 4096), (base + 4096, GRANULE), (base, 2 * GRANULE)] {
        assert_eq!(map(&mut simulation, address, bytes, handle), WRONG);
    }
    map(&mut simulation, base, GRANULE, handle).unwrap();
}

#[test]
fn mapping_is_only_over_reserved_space() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, 2 * GRANULE).unwrap();
    let handle = create(&mut simulation, 0, 2 * GRANULE).unwrap();
    assert_eq!(map(&mut simulation, base + GRANULE, 2 * GRANULE, handle), WRONG, "past its end");
    assert_eq!(map(&mut simulation, 1 << 46, GRANULE, handle), WRONG);
    free_addresses(&mut simulation, base, 2 * GRANULE).unwrap();
    assert_eq!(map(&mut simulation, base, GRANULE, handle), WRONG, "freed");
}

#[test]
fn mapping_is_only_over_unmapped_space() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, 4 * GRANULE).unwrap();
    let (two, one) = (create(&mut simulation, 0, 2 * GRANULE).unwrap(), create(&mut simulation, 0, GRANULE).unwrap());
    map(&mut simulation, base + GRANULE, 2 * GRANULE, two).unwrap();
    for granule in [1, 2] {
        assert_eq!(map(&mut simulation, base + granule * GRANULE, GRANULE, one), WRONG);
    }
    assert_eq!(map(&mut simulation, base, 2 * GRANULE, two), WRONG, "its end is mapped");
    map(&mut simulation, base, GRANULE, one).unwrap();
    map(&mut simulation, base + 3 * GRANULE, GRANULE, one).unwrap();
}

#[test]
fn unmapping_is_of_whole_mappings() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, 2 * GRANULE).unwrap();
    let handle = create(&mut simulation, 0, 2 * GRANULE).unwrap();
    map(&mut simulation, base, 2 * GRANULE, handle).unwrap();
    for (address, bytes) in [(base, GRANULE), (base + GRANULE, GRANULE), (base, 0)] {
        assert_eq!(unmap(&mut simulation, address, bytes), WRONG);
    }
    unmap(&mut simulation, base, 2 * GRANULE).unwrap();
}

#[test]
fn adjacent_mappings_are_unmapped_in_one_call() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 3);
    unmap(&mut simulation, base, 2 * GRANULE).unwrap();
    assert_eq!(simulation.memory.mappings.len(), 1);
    unmap(&mut simulation, base + 2 * GRANULE, GRANULE).unwrap();
    handles.iter().for_each(|handle| release(&mut simulation, *handle).unwrap());
    free_addresses(&mut simulation, base, 3 * GRANULE).unwrap();
    assert_clean(&simulation);
}

#[test]
fn every_page_of_an_unmapped_range_was_mapped() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 3);
    unmap(&mut simulation, base + GRANULE, GRANULE).unwrap();
    assert_eq!(unmap(&mut simulation, base, 3 * GRANULE), WRONG);
    assert_eq!(unmap(&mut simulation, base + GRANULE, GRANULE), WRONG, "it is unmapped");
    assert_eq!(simulation.memory.mappings.len(), 2, "a refusal unmaps nothing");
    map(&mut simulation, base + GRANULE, GRANULE, handles[1]).unwrap();
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn access_starts_empty_for_the_owner_too() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, GRANULE).unwrap();
    let handle = create(&mut simulation, 0, GRANULE).unwrap();
    map(&mut simulation, base, GRANULE, handle).unwrap();
    assert_eq!(read(&mut simulation, base, 1), Err(Code::INVALID_VALUE));
    assert_eq!(fill(&mut simulation, base, 1, 0), WRONG);
    let access = |simulation: &mut Simulation, device| {
        call(simulation, |memory, settings, _| memory.access(settings, location(device), base))
    };
    assert_eq!(access(&mut simulation, 0), Ok(0));
    set_access(&mut simulation, base, GRANULE, &[grant(0, READ)]).unwrap();
    assert_eq!((access(&mut simulation, 0), access(&mut simulation, 1)), (Ok(1), Ok(0)), "for each device apart");
    set_access(&mut simulation, base, GRANULE, &[grant(1, READ_WRITE)]).unwrap();
    assert_eq!((access(&mut simulation, 0), access(&mut simulation, 1)), (Ok(1), Ok(3)));
    assert_eq!(access(&mut simulation, 2), Err(Code::INVALID_DEVICE));
}

#[test]
fn access_is_set_over_whole_mappings_that_are_mapped_throughout() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 3);
    let all = [grant(0, READ)];
    set_access(&mut simulation, base, 2 * GRANULE, &all).unwrap();
    assert_eq!(set_access(&mut simulation, base, GRANULE + 4096, &all), WRONG);
    assert_eq!(set_access(&mut simulation, base + 4096, GRANULE, &all), WRONG);
    unmap(&mut simulation, base + GRANULE, GRANULE).unwrap();
    assert_eq!(set_access(&mut simulation, base, 3 * GRANULE, &all), WRONG);
    map(&mut simulation, base + GRANULE, GRANULE, handles[1]).unwrap();
    assert_eq!(set_access(&mut simulation, base, 3 * GRANULE, &[]), WRONG, "for nobody");
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn access_that_is_refused_for_one_device_is_set_for_none() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let outcome = set_access(&mut simulation, base, GRANULE, &[grant(0, READ), grant(7, READ)]);
    assert_eq!(outcome, Err(Code::INVALID_DEVICE));
    let outcome = set_access(&mut simulation, base, GRANULE, &[grant(0, READ), grant(1, 2)]);
    assert_eq!(outcome, WRONG, "there is no access to write alone");
    fill(&mut simulation, base, GRANULE, 1).unwrap();
    end(&mut simulation, base, &handles);
    assert_clean(&simulation);
}

#[test]
fn a_device_that_can_not_reach_the_owner_gets_no_access() {
    let mut simulation = ready();
    simulation.settings.strangers.insert((1, 0));
    let (base, handles) = mapped(&mut simulation, 1);
    assert_eq!(set_access(&mut simulation, base, GRANULE, &[grant(1, READ)]), Err(Code::INVALID_DEVICE));
    end(&mut simulation, base, &handles);
}

#[test]
fn a_device_without_read_only_mappings_refuses_them() {
    let mut simulation = ready();
    simulation.settings.set("read_only", 0, 0).unwrap();
    let (base, handles) = mapped(&mut simulation, 1);
    assert_eq!(set_access(&mut simulation, base, GRANULE, &[grant(0, READ)]), Err(Code::NOT_SUPPORTED));
    end(&mut simulation, base, &handles);
}

#[test]
fn what_is_reported_of_an_unmapped_address_is_a_setting() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    let access = |simulation: &mut Simulation, address| {
        call(simulation, |memory, settings, _| memory.access(settings, location(0), address))
    };
    let is_mapped = |simulation: &mut Simulation, address| {
        call(simulation, |memory, settings, _| memory.is_mapped(settings, address))
    };
    assert_eq!((access(&mut simulation, base), is_mapped(&mut simulation, base)), (Ok(3), Ok(true)));
    unmap(&mut simulation, base, GRANULE).unwrap();
    assert_eq!(
        (access(&mut simulation, base), is_mapped(&mut simulation, base)),
        (Err(Code::INVALID_VALUE), Ok(false))
    );
    simulation.settings.set("access_everywhere", 0, 1).unwrap();
    simulation.settings.set("refuses_unmapped", 0, 1).unwrap();
    assert_eq!((access(&mut simulation, base), is_mapped(&mut simulation, base)), (Ok(0), Err(Code::INVALID_VALUE)));
    map(&mut simulation, base, GRANULE, handles[0]).unwrap();
    end(&mut simulation, base, &handles);
}
