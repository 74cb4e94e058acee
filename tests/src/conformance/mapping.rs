//! Prefixes mapped into regions: exactly where they are asked for, for nothing, for as long as anybody needs them.

use super::prefixes::ensure_stranger;
use super::subject::{NOT_OURS, SOMEBODY_ELSE, Subject, ensure_refused, ensure_unreleased};
use super::{Check, ensure};
use leasehold_plugin_api::{Change, ErrorKind, Prefix, Region, ReleaseTarget, ReserveRequest};

/// A sealed prefix, each granule filled with `mark` and its number.
fn marked(subject: &Subject<'_>, granules: u64, mark: u8) -> Result<Prefix, String> {
    let prefix = subject.prefix(granules)?;
    for (granule, mark) in (0..granules).zip(mark..) {
        subject.fill(subject.at(prefix.window, granule), subject.granule, mark)?;
    }
    subject.seal(&prefix)?;
    Ok(prefix)
}

/// Granules of a region, from `first` on, show these marks.
fn ensure_marks(subject: &Subject<'_>, region: &Region, first: u64, marks: &[u8], when: &str) -> Check {
    (first..).zip(marks).try_for_each(|(granule, mark)| {
        subject.ensure_reads(subject.at(region.base, granule), subject.granule, *mark, when)
    })
}

pub(super) fn mapping_owns_nothing_and_is_exact(subject: &Subject<'_>) -> Check {
    let (sharing, prefix) = (subject.sharing()?, subject.sealed(4)?);
    let regions = [subject.region(8)?, subject.region(8)?, subject.region(8)?];
    let mut mappings = Vec::new();
    for region in &regions {
        mappings.push(subject.mapping((&prefix, 0, 4), region, 1));
        mappings.push(subject.mapping((&prefix, 2, 1), region, 6));
    }
    let bytes = 15 * subject.granule;
    let wanted = Ok(Change { mapped_bytes: bytes, owned_bytes: 0 });
    let mapped = sharing.map_prefix(&mappings);
    ensure!(mapped == wanted, "map_prefix answered {mapped:?}, wanted {wanted:?}");
    for region in &regions {
        subject.ensure_committed(region, 0, "prefixes don't count")?;
    }
    let more = sharing.incremental_owned_bytes(prefix.id);
    ensure!(more == Ok(0), "one more mapping would own {more:?} bytes");
    let unmapped = sharing.unmap(&mappings);
    ensure!(unmapped == wanted, "unmap answered {unmapped:?}, wanted {wanted:?}");
    subject.map(&mappings)
}

pub(super) fn private_memory_grows_beside_a_mapping(subject: &Subject<'_>) -> Check {
    let (prefix, region) = (subject.sealed(2)?, subject.region(8)?);
    subject.map(&[subject.mapping((&prefix, 0, 2), &region, 2)])?;
    subject.commit(&[subject.range(&region, 0, 2), subject.range(&region, 4, 3)])?;
    subject.ensure_committed(&region, 5, "beside a mapping")?;
    subject.decommit(&[subject.range(&region, 4, 3)])?;
    subject.unmap(&[subject.mapping((&prefix, 0, 2), &region, 2)])?;
    subject.commit(&[subject.range(&region, 2, 6)])?;
    subject.ensure_committed(&region, 8, "in place of a mapping")
}

pub(super) fn a_mapping_shows_its_part(subject: &Subject<'_>) -> Check {
    let (prefix, other) = (marked(subject, 4, 10)?, marked(subject, 2, 30)?);
    let (one, two) = (subject.region(8)?, subject.region(8)?);
    subject.map(&[
        subject.mapping((&prefix, 0, 4), &one, 0),
        subject.mapping((&other, 1, 1), &one, 4),
        subject.mapping((&prefix, 1, 2), &two, 3),
        subject.mapping((&prefix, 1, 2), &two, 5),
    ])?;
    ensure_marks(subject, &one, 0, &[10, 11, 12, 13, 31], "the first region")?;
    ensure_marks(subject, &two, 3, &[11, 12, 11, 12], "the second region")?;
    subject.commit(&[subject.range(&two, 0, 3)])?;
    subject.ensure_reads(two.base, 3 * subject.granule, 0, "what is private")?;
    subject.fill(two.base, 3 * subject.granule, 0x77)?;
    ensure_marks(subject, &two, 2, &[0x77, 11, 12], "behind what is private")?;
    subject.unmap(&[subject.mapping((&prefix, 0, 4), &one, 0)])?;
    subject.commit(&[subject.range(&one, 0, 4)])?;
    subject.ensure_reads(one.base, 4 * subject.granule, 0, "in place of a mapping")?;
    subject.fill(one.base, 4 * subject.granule, 0x66)?;
    ensure_marks(subject, &two, 3, &[11, 12, 11, 12], "after private memory was written elsewhere")
}

/// The handle goes first: what is mapped stays, and nothing new can be mapped.
pub(super) fn memory_lives_until_its_last_mapping(subject: &Subject<'_>) -> Check {
    let (prefix, region, last) = (marked(subject, 3, 50)?, subject.region(4)?, subject.region(4)?);
    let mapping = |region: &Region| subject.mapping((&prefix, 0, 3), region, 0);
    subject.map(&[mapping(&region), mapping(&last)])?;
    subject.release_prefix(prefix.id)?;
    ensure_stranger(subject, prefix.id)?;
    let again = subject.sharing()?.map_prefix(&[subject.mapping((&prefix, 0, 1), &region, 3)]);
    ensure_refused("a mapping of a released prefix", again, NOT_OURS)?;
    subject.unmap(&[mapping(&region)])?;
    // Memory that is taken now must not be the memory that is still mapped.
    let other = subject.reserve(&ReserveRequest { holder: SOMEBODY_ELSE, ..subject.reserve_request(16) })?;
    subject.commit(&[subject.range(&other, 0, 16)])?;
    subject.fill(other.base, 16 * subject.granule, 0xff)?;
    ensure_marks(subject, &last, 0, &[50, 51, 52], "after the handle's release")?;
    subject.backing.trim(u64::MAX).map_err(|error| error.to_string())?;
    ensure_marks(subject, &last, 0, &[50, 51, 52], "after a trim")?;
    subject.unmap(&[mapping(&last)])?;
    subject.commit(&[subject.range(&last, 0, 4)])
}

pub(super) fn the_release_of_a_region_unmaps(subject: &Subject<'_>) -> Check {
    let (prefix, region, other) = (marked(subject, 2, 70)?, subject.region(4)?, subject.region(4)?);
    let mapping = |region: &Region| subject.mapping((&prefix, 0, 2), region, 1);
    subject.map(&[mapping(&region), mapping(&other)])?;
    subject.release(ReleaseTarget::Region(region.id))?;
    let gone = subject.sharing()?.unmap(&[mapping(&region)]);
    ensure_refused("an unmapping in a released region", gone, &[ErrorKind::UnknownId, ErrorKind::NotCommitted])?;
    ensure_marks(subject, &other, 1, &[70, 71], "in the other region")?;
    subject.release_prefix(prefix.id)?;
    ensure_unreleased("a second release", subject.sharing()?.release_prefix(prefix.id), NOT_OURS)?;
    ensure_marks(subject, &other, 1, &[70, 71], "after the handle's release")?;
    subject.release(ReleaseTarget::Region(other.id))
}
