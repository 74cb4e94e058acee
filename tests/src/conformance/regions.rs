//! Address space: reserved once, dead after its release.

use super::subject::{INVALID, Subject, TOO_MUCH, UNKNOWN, ensure_refused, ensure_unreleased};
use super::{Check, ensure};
use leasehold_plugin_api::{RegionId, ReleaseTarget, ReserveRequest};

pub(super) fn the_granularity_is_a_power_of_two(subject: &Subject<'_>) -> Check {
    ensure!(subject.granule.is_power_of_two(), "the granularity is {}", subject.granule);
    Ok(())
}

pub(super) fn regions_are_as_asked_and_apart(subject: &Subject<'_>) -> Check {
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for (granules, align) in [(1, 1), (3, 1), (1, 64), (64, 1 << 10), (1 << 10, 1)] {
        let request = ReserveRequest { align: align * subject.granule, ..subject.reserve_request(granules) };
        let made = subject.reserve(&request)?;
        ensure!((made.id, made.bytes) == (request.id, request.bytes), "{request:?} is answered with {made:?}");
        ensure!(
            !made.base.is_null() && made.base.is_aligned_to(request.align),
            "{request:?} is answered with {made:?}"
        );
        let (base, end) = (made.base.get(), made.base.get().saturating_add(made.bytes));
        let other = taken.iter().find(|(other, other_end)| *other < end && base < *other_end);
        ensure!(other.is_none(), "{made:?} overlaps {other:x?}");
        taken.push((base, end));
        subject.ensure_committed(&made, 0, "a new region")?;
    }
    Ok(())
}

pub(super) fn malformed_reservations_are_refused(subject: &Subject<'_>) -> Check {
    let (granule, sound) = (subject.granule, || subject.reserve_request(4));
    let malformed = [
        ReserveRequest { bytes: 0, ..sound() },
        ReserveRequest { bytes: granule + 1, ..sound() },
        ReserveRequest { align: 0, ..sound() },
        ReserveRequest { align: granule + 1, ..sound() },
        ReserveRequest { align: granule / 2, ..sound() },
    ];
    let too_much = [
        ReserveRequest { bytes: u64::MAX - granule + 1, ..sound() },
        ReserveRequest { bytes: 1 << 62, ..sound() },
        ReserveRequest { align: 1 << 63, ..sound() },
    ];
    let growing = subject.growing()?;
    for (requests, kinds) in [(&malformed[..], INVALID), (&too_much[..], TOO_MUCH)] {
        for request in requests {
            ensure_refused(format!("{request:?}"), growing.reserve(request), kinds)?;
            let target = ReleaseTarget::Region(request.id);
            ensure_unreleased("the release of what was refused", subject.backing.release(target), UNKNOWN)?;
        }
    }
    Ok(())
}

pub(super) fn a_region_id_that_is_live_is_refused(subject: &Subject<'_>) -> Check {
    let request = subject.reserve_request(2);
    let region = subject.reserve(&request)?;
    ensure_refused("an id that is live", subject.growing()?.reserve(&request), INVALID)?;
    subject.commit(&[subject.range(&region, 0, 2)])?;
    subject.ensure_committed(&region, 2, "the first one")
}

pub(super) fn a_region_is_dead_after_its_release(subject: &Subject<'_>) -> Check {
    let (region, growing) = (subject.committed_region(3)?, subject.growing()?);
    let target = ReleaseTarget::Region(region.id);
    subject.release(target)?;
    ensure_unreleased("a second release", subject.backing.release(target), UNKNOWN)?;
    ensure_unknown(subject, region.id)?;
    let kinds = UNKNOWN;
    let range = [subject.range(&region, 0, 1)];
    ensure_refused("a commit after the release", growing.commit(&range), kinds)?;
    ensure_refused("a decommit after the release", growing.decommit(&range), kinds)?;
    ensure_refused("a cost after the release", growing.cost(&range), kinds)
}

fn ensure_unknown(subject: &Subject<'_>, region: RegionId) -> Check {
    ensure_refused(format!("committed_bytes of {region}"), subject.growing()?.committed_bytes(region), UNKNOWN)
}

pub(super) fn an_id_that_was_never_given_out_is_unknown(subject: &Subject<'_>) -> Check {
    for id in [subject.id(), 0, u64::MAX] {
        ensure_unknown(subject, RegionId::new(id))?;
        let target = ReleaseTarget::Region(RegionId::new(id));
        ensure_unreleased(&format!("the release of region {id}"), subject.backing.release(target), UNKNOWN)?;
    }
    Ok(())
}
