//! CUDA Driver API, `cuMemAddressReserve` and `cuMemAddressFree`.

use super::*;

#[test]
fn a_size_is_a_positive_multiple_of_the_page_size() {
    let mut simulation = ready();
    assert_eq!(reserve(&mut simulation, 0), Err(Code::INVALID_VALUE));
    assert_eq!(reserve(&mut simulation, 4095), Err(Code::INVALID_VALUE));
    let base = reserve(&mut simulation, 4096).unwrap();
    free_addresses(&mut simulation, base, 4096).unwrap();
    assert_clean(&simulation);
}

#[test]
fn an_alignment_is_zero_or_a_power_of_two_and_is_kept() {
    let mut simulation = ready();
    let reserve = |simulation: &mut Simulation, align| {
        call(simulation, |memory, settings, _| memory.reserve(settings, GRANULE, align, 0, 0))
    };
    assert_eq!(reserve(&mut simulation, 3), Err(Code::INVALID_VALUE));
    let base = reserve(&mut simulation, 64 << 20).unwrap();
    assert!(base.is_multiple_of(64 << 20));
    assert!(reserve(&mut simulation, 0).unwrap().is_multiple_of(GRANULE));
}

#[test]
fn a_hint_is_a_multiple_of_the_page_size_and_flags_are_zero() {
    let mut simulation = ready();
    let reserve = |simulation: &mut Simulation, hint, flags| {
        call(simulation, |memory, settings, _| memory.reserve(settings, GRANULE, 0, hint, flags))
    };
    assert_eq!(reserve(&mut simulation, 1, 0), Err(Code::INVALID_VALUE));
    assert_eq!(reserve(&mut simulation, 0, 1), Err(Code::INVALID_VALUE));
    assert!(reserve(&mut simulation, 1 << 40, 0).is_ok());
}

#[test]
fn address_space_runs_out_as_out_of_memory() {
    let mut simulation = ready();
    assert_eq!(reserve(&mut simulation, (1 << 47) + 4096), Err(Code::OUT_OF_MEMORY));
    simulation.settings.set("address_space", 0, 2 * GRANULE).unwrap();
    let base = reserve(&mut simulation, 2 * GRANULE).unwrap();
    assert_eq!(reserve(&mut simulation, 4096), Err(Code::OUT_OF_MEMORY));
    simulation.settings.set("address_refusal", 0, 1).unwrap();
    assert_eq!(reserve(&mut simulation, 4096), Err(Code::INVALID_VALUE), "or so");
    free_addresses(&mut simulation, base, 2 * GRANULE).unwrap();
    assert!(reserve(&mut simulation, 4096).is_ok());
}

#[test]
fn only_the_exact_address_and_size_can_be_freed() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, 2 * GRANULE).unwrap();
    assert_eq!(free_addresses(&mut simulation, base, GRANULE), WRONG);
    assert_eq!(free_addresses(&mut simulation, base + GRANULE, GRANULE), WRONG);
    let words: Vec<_> = simulation.memory.violations.drain(..).collect();
    assert!(words[0].contains("2097152 bytes at") && words[0].contains("where 4194304 are reserved"), "{words:?}");
    assert!(words[1].contains("no reservation begins at"), "{words:?}");
    free_addresses(&mut simulation, base, 2 * GRANULE).unwrap();
    assert_clean(&simulation);
}

#[test]
fn a_second_free_is_a_violation() {
    let mut simulation = ready();
    let base = reserve(&mut simulation, GRANULE).unwrap();
    free_addresses(&mut simulation, base, GRANULE).unwrap();
    assert_eq!(free_addresses(&mut simulation, base, GRANULE), WRONG);
    assert!(only_violation(&simulation).starts_with("cuMemAddressFree: no reservation begins at 0x"));
}

#[test]
fn addresses_are_freed_only_when_all_is_unmapped() {
    let mut simulation = ready();
    let (base, handles) = mapped(&mut simulation, 1);
    assert_eq!(free_addresses(&mut simulation, base, GRANULE), WRONG);
    assert!(
        only_violation(&simulation).starts_with("cuMemAddressFree: something is mapped in the 2097152 bytes at 0x")
    );
    end(&mut simulation, base, &handles);
    assert!(simulation.memory.is_empty());
}

#[test]
fn an_alignment_above_a_bound_need_not_be_honoured() {
    let mut simulation = ready();
    simulation.settings.set("honoured_alignment", 0, 4 * GRANULE).unwrap();
    let reserve = |simulation: &mut Simulation, align| {
        call(simulation, |memory, settings, _| memory.reserve(settings, GRANULE, align, 0, 0)).unwrap()
    };
    assert!(reserve(&mut simulation, 4 * GRANULE).is_multiple_of(4 * GRANULE));
    let base = reserve(&mut simulation, 8 * GRANULE);
    assert!(base.is_multiple_of(4 * GRANULE) && !base.is_multiple_of(8 * GRANULE), "{base:#x}");
    free_addresses(&mut simulation, base, GRANULE).unwrap();
    assert_eq!(simulation.memory.violations, [""; 0]);
}
