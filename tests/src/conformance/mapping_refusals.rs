//! Mappings that must be refused, each right in every way but one; and what a refusal leaves.

use super::Check;
use super::subject::{INVALID, NOT_OURS, Subject, UNKNOWN, ensure_refused};
use leasehold_plugin_api::{ErrorKind, PrefixId, PrefixMapping, PrefixRange, Region, RegionId};

const TAKEN: &[ErrorKind] = &[ErrorKind::AlreadyCommitted];
const ABSENT: &[ErrorKind] = &[ErrorKind::NotCommitted];

/// Nothing is mapped or committed in a region of so many granules: all of it can be committed, and is given back.
fn ensure_free(subject: &Subject<'_>, region: &Region, granules: u64, when: &str) -> Check {
    subject.ensure_committed(region, 0, when)?;
    let whole = [subject.range(region, 0, granules)];
    subject.commit(&whole).map_err(|error| format!("{when}: {error}"))?;
    subject.decommit(&whole)
}

pub(super) fn an_unsealed_prefix_is_not_mapped(subject: &Subject<'_>) -> Check {
    let (prefix, region) = (subject.prefix(2)?, subject.region(4)?);
    let mapping = [subject.mapping((&prefix, 0, 2), &region, 0)];
    let refused = subject.sharing()?.map_prefix(&mapping);
    ensure_refused("a mapping of an unsealed prefix", refused, &[ErrorKind::WrongState])?;
    ensure_free(subject, &region, 4, "after the refusal")?;
    subject.seal(&prefix)?;
    subject.map(&mapping)
}

pub(super) fn an_unknown_prefix_or_region_is_not_mapped(subject: &Subject<'_>) -> Check {
    let (sharing, prefix, region) = (subject.sharing()?, subject.sealed(2)?, subject.region(4)?);
    let range = |prefix: PrefixId| PrefixRange::new(prefix, 0, subject.granule);
    let stranger = PrefixMapping::new(range(PrefixId::new(subject.id())), region.id, 0);
    ensure_refused("a mapping of an unknown prefix", sharing.map_prefix(&[stranger]), NOT_OURS)?;
    let unmapped = sharing.unmap(&[stranger]);
    ensure_refused("an unmapping of an unknown prefix", unmapped, &[NOT_OURS, ABSENT].concat())?;
    let nowhere = PrefixMapping::new(range(prefix.id), RegionId::new(subject.id()), 0);
    ensure_refused("a mapping into an unknown region", sharing.map_prefix(&[nowhere]), UNKNOWN)?;
    ensure_refused("an unmapping in an unknown region", sharing.unmap(&[nowhere]), &[UNKNOWN, ABSENT].concat())?;
    ensure_free(subject, &region, 4, "after the refusals")
}

/// Seen elsewhere: the keys and the values of a layer were mapped at the same place.
pub(super) fn two_parts_at_one_place_are_refused(subject: &Subject<'_>) -> Check {
    let (prefix, region) = (subject.sealed(4)?, subject.region(8)?);
    for [one, other] in [[(0, 0), (2, 0)], [(0, 0), (2, 1)], [(0, 3), (0, 2)], [(0, 0), (0, 0)]] {
        let mappings = [one, other].map(|(from, first)| subject.mapping((&prefix, from, 2), &region, first));
        let refused = subject.sharing()?.map_prefix(&mappings);
        ensure_refused(format!("granules {one:?} and {other:?} at one place"), refused, INVALID)?;
        ensure_free(subject, &region, 8, "after the refusal")?;
    }
    Ok(())
}

pub(super) fn a_place_that_is_taken_is_refused(subject: &Subject<'_>) -> Check {
    let (sharing, prefix, region) = (subject.sharing()?, subject.sealed(3)?, subject.region(12)?);
    subject.commit(&[subject.range(&region, 2, 2)])?;
    subject.map(&[subject.mapping((&prefix, 0, 3), &region, 6)])?;
    for first in [0, 1, 2, 3, 4, 5, 6, 7, 8] {
        let refused = sharing.map_prefix(&[subject.mapping((&prefix, 0, 3), &region, first)]);
        ensure_refused(format!("a mapping at granule {first}"), refused, TAKEN)?;
    }
    subject.ensure_committed(&region, 2, "after the refusals")?;
    subject.unmap(&[subject.mapping((&prefix, 0, 3), &region, 6)])?;
    subject.decommit(&[subject.range(&region, 2, 2)])?;
    ensure_free(subject, &region, 12, "in the end")
}

pub(super) fn parts_and_places_that_are_malformed_are_refused(subject: &Subject<'_>) -> Check {
    let (granule, prefix, region) = (subject.granule, subject.sealed(4)?, subject.region(8)?);
    let last = u64::MAX - granule + 1;
    let malformed = [
        ((1, granule), 0),
        ((0, granule + 1), 0),
        ((0, granule / 2), 0),
        ((0, 0), 0),
        ((3 * granule, 2 * granule), 0),
        ((4 * granule, granule), 0),
        ((0, 5 * granule), 0),
        ((last, granule), 0),
        ((granule, last), 0),
        ((last, last), 0),
        ((u64::MAX, u64::MAX), 0),
        ((0, granule), 1),
        ((0, granule), granule / 2),
        ((0, granule), 8 * granule),
        ((0, 2 * granule), 7 * granule),
        ((0, granule), last),
        ((0, granule), u64::MAX),
    ];
    for ((offset, bytes), place) in malformed {
        let mapping = PrefixMapping::new(PrefixRange::new(prefix.id, offset, bytes), region.id, place);
        ensure_refused(format!("{mapping:?}"), subject.sharing()?.map_prefix(&[mapping]), INVALID)?;
        let unmapped = subject.sharing()?.unmap(&[mapping]);
        ensure_refused(format!("the unmapping of {mapping:?}"), unmapped, &[INVALID, ABSENT].concat())?;
    }
    ensure_free(subject, &region, 8, "after the refusals")
}

/// Of five mappings one is wrong, each in its turn: then none of the five is made.
pub(super) fn a_mapping_is_all_or_nothing_at_each_index(subject: &Subject<'_>) -> Check {
    let (sharing, prefix) = (subject.sharing()?, subject.sealed(2)?);
    let unsealed = subject.prefix(2)?;
    for nth in 0..5 {
        let make = || subject.region(4);
        let regions = [make()?, make()?, make()?, make()?, make()?];
        let sound = regions.map(|region| subject.mapping((&prefix, 0, 2), &region, 1));
        let wrong = [
            (subject.mapping((&unsealed, 0, 2), &regions[nth], 1), &[ErrorKind::WrongState][..]),
            (subject.mapping((&prefix, 0, 2), &regions[nth], 3), INVALID),
            (subject.mapping((&prefix, 1, 2), &regions[nth], 1), INVALID),
            (PrefixMapping::new(sound[nth].source, RegionId::new(subject.id()), 0), UNKNOWN),
        ];
        for (mapping, kinds) in wrong {
            let mut mappings = sound;
            mappings[nth] = mapping;
            ensure_refused(format!("{nth}: {mapping:?}"), sharing.map_prefix(&mappings), kinds)?;
        }
        subject.commit(&[subject.range(&regions[nth], 2, 1)])?;
        ensure_refused(format!("place {nth} is taken"), sharing.map_prefix(&sound), TAKEN)?;
        subject.decommit(&[subject.range(&regions[nth], 2, 1)])?;
        for region in &regions {
            ensure_free(subject, region, 4, &format!("after the refusals at {nth}"))?;
        }
        subject.map(&sound)?;
        subject.unmap(&sound)?;
    }
    Ok(())
}

pub(super) fn an_unmapping_is_exact_and_all_or_nothing(subject: &Subject<'_>) -> Check {
    let (sharing, prefix, other) = (subject.sharing()?, subject.sealed(4)?, subject.sealed(4)?);
    let regions = [subject.region(8)?, subject.region(8)?, subject.region(8)?];
    let sound = regions.map(|region| subject.mapping((&prefix, 0, 3), &region, 2));
    subject.map(&sound)?;
    for (nth, region) in regions.iter().enumerate() {
        let others = [
            subject.mapping((&prefix, 1, 3), region, 2),
            subject.mapping((&prefix, 0, 2), region, 2),
            subject.mapping((&prefix, 0, 4), region, 2),
            subject.mapping((&prefix, 1, 2), region, 3),
            subject.mapping((&prefix, 0, 3), region, 1),
            subject.mapping((&prefix, 0, 3), region, 5),
            subject.mapping((&other, 0, 3), region, 2),
        ];
        for mapping in others {
            let mut mappings = sound;
            mappings[nth] = mapping;
            ensure_refused(format!("the unmapping of {mapping:?}"), sharing.unmap(&mappings), ABSENT)?;
        }
    }
    for region in &regions {
        let taken = subject.growing()?.commit(&[subject.range(region, 2, 1)]);
        ensure_refused("a commit where a mapping is still there", taken, TAKEN)?;
    }
    subject.unmap(&sound)?;
    ensure_refused("a second unmapping", sharing.unmap(&sound), ABSENT)?;
    regions.iter().try_for_each(|region| ensure_free(subject, region, 8, "after the unmapping"))
}

pub(super) fn commit_and_decommit_leave_mappings_alone(subject: &Subject<'_>) -> Check {
    let (growing, prefix, region) = (subject.growing()?, subject.sealed(2)?, subject.region(6)?);
    let mapping = [subject.mapping((&prefix, 0, 2), &region, 2)];
    subject.map(&mapping)?;
    subject.commit(&[subject.range(&region, 0, 2)])?;
    for (first, granules) in [(2, 2), (2, 1), (3, 1), (3, 3)] {
        let range = [subject.range(&region, first, granules)];
        ensure_refused(format!("a commit over a mapping, {range:?}"), growing.commit(&range), TAKEN)?;
        ensure_refused(format!("the cost of {range:?}"), growing.cost(&range), TAKEN)?;
        ensure_refused(format!("a decommit over a mapping, {range:?}"), growing.decommit(&range), ABSENT)?;
    }
    let across = growing.decommit(&[subject.range(&region, 0, 4)]);
    ensure_refused("a decommit across a mapping", across, ABSENT)?;
    subject.ensure_committed(&region, 2, "after the refusals")?;
    subject.unmap(&mapping)
}
