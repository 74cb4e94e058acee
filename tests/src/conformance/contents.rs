//! What committed memory reads as.

use super::subject::{INVALID, SOMEBODY, SOMEBODY_ELSE, Subject, UNKNOWN, ensure_refused};
use super::{Check, ensure};
use crate::is_all;
use leasehold_plugin_api::{CommitRange, HolderId, Region, RegionId, ReleaseTarget, ReserveRequest};

/// A region of so many granules for a holder.
fn region(subject: &Subject<'_>, holder: HolderId, granules: u64) -> Result<Region, String> {
    subject.reserve(&ReserveRequest { holder, ..subject.reserve_request(granules) })
}

pub(super) fn memory_of_another_holder_reads_as_zero(subject: &Subject<'_>) -> Check {
    let (bytes, nobody) = (4 * subject.granule, HolderId::NOBODY);
    for holder in [SOMEBODY, SOMEBODY_ELSE, nobody, nobody, SOMEBODY, nobody, SOMEBODY_ELSE, SOMEBODY_ELSE, SOMEBODY] {
        let mark = if holder == SOMEBODY { 0xc3 } else { 0xd4 };
        let region = region(subject, holder, 4)?;
        subject.commit(&[subject.range(&region, 0, 4)])?;
        let own = if holder == nobody { 0 } else { mark };
        let seen = subject.read(region.base, bytes)?;
        let is_own = seen.chunks(4096).all(|page| is_all(page, 0) || is_all(page, own));
        ensure!(is_own, "new memory of {holder} shows bytes that are not its own");
        subject.fill(region.base, bytes, mark)?;
        subject.release(ReleaseTarget::Region(region.id))?;
    }
    Ok(())
}

pub(super) fn memory_that_comes_back_is_zero_or_the_holders_own(subject: &Subject<'_>) -> Check {
    let region = region(subject, SOMEBODY, 4)?;
    for mark in [1, 2, 3] {
        subject.commit(&[subject.range(&region, 0, 4)])?;
        let seen = subject.read(region.base, 4 * subject.granule)?;
        let is_own = seen.chunks(4096).all(|page| (0..mark).any(|earlier| is_all(page, earlier)));
        ensure!(is_own, "memory that came back shows bytes that are not its holder's");
        subject.fill(region.base, 4 * subject.granule, mark)?;
        subject.decommit(&[subject.range(&region, 0, 4)])?;
    }
    Ok(())
}

pub(super) fn contents_survive_growth_and_what_is_refused(subject: &Subject<'_>) -> Check {
    let (granule, growing) = (subject.granule, subject.growing()?);
    let (region, neighbour) = (subject.region(8)?, subject.region(8)?);
    subject.commit(&[subject.range(&region, 0, 4), subject.range(&neighbour, 0, 4)])?;
    subject.fill(region.base, 4 * granule, 0x11)?;
    subject.fill(neighbour.base, 4 * granule, 0x22)?;
    subject.commit(&[subject.range(&region, 4, 4), subject.range(&neighbour, 6, 2)])?;
    subject.ensure_reads(subject.at(region.base, 4), 4 * granule, 0, "what grew")?;
    let odd = [CommitRange::new(region.id, granule / 2, granule), CommitRange::new(region.id, granule, granule + 1)];
    for range in odd {
        let refused = growing.decommit(&[range]);
        ensure_refused(format!("a decommit of {range:?}"), refused, INVALID)?;
    }
    let stranger = CommitRange::new(RegionId::new(subject.id()), 0, granule);
    let partly = growing.decommit(&[subject.range(&region, 0, 1), stranger]);
    ensure_refused("a decommit with an unknown region", partly, UNKNOWN)?;
    subject.decommit(&[subject.range(&region, 1, 2)])?;
    for (at, count, mark) in [(0, 1, 0x11), (3, 1, 0x11), (4, 4, 0)] {
        subject.ensure_reads(subject.at(region.base, at), count * granule, mark, "beside what was decommitted")?;
    }
    subject.ensure_reads(neighbour.base, 4 * granule, 0x22, "the neighbour")
}
