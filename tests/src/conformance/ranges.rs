//! Commit and decommit: exact, all or nothing, and whole granules of the right region only.

use super::subject::{INVALID, Subject, UNKNOWN, ensure_refused};
use super::{Check, ensure};
use leasehold_plugin_api::{Change, CommitRange, ErrorKind, Region, RegionId};

pub(super) fn changes_are_exact(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    let regions = [subject.region(8)?, subject.region(8)?, subject.region(8)?];
    for (first, granules) in [(0, 1), (1, 4), (6, 2)] {
        let ranges: Vec<_> = regions.iter().map(|region| subject.range(region, first, granules)).collect();
        let bytes = 3 * granules * subject.granule;
        let cost = growing.cost(&ranges).map_err(|error| format!("cost fails: {error}"))?;
        subject.ensure_exact("cost", cost, bytes)?;
        let again = growing.cost(&ranges).map_err(|error| format!("cost fails: {error}"))?;
        ensure!(again == cost, "asking for the cost changed it: {cost:?}, then {again:?}");
        let change = growing.commit(&ranges).map_err(|error| format!("commit fails: {error}"))?;
        subject.ensure_exact("commit", change, bytes)?;
        ensure!(change == cost, "cost answered {cost:?}, commit {change:?}");
    }
    let ranges: Vec<_> = regions.iter().map(|region| subject.range(region, 2, 2)).collect();
    let change = growing.decommit(&ranges).map_err(|error| format!("decommit fails: {error}"))?;
    subject.ensure_exact("decommit", change, 6 * subject.granule)?;
    regions.iter().try_for_each(|region| subject.ensure_committed(region, 5, "after all"))
}

pub(super) fn a_call_without_ranges_changes_nothing(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    for (what, answer) in
        [("commit", growing.commit(&[])), ("decommit", growing.decommit(&[])), ("cost", growing.cost(&[]))]
    {
        ensure!(answer == Ok(Change::default()), "{what} of nothing answered {answer:?}");
    }
    Ok(())
}

pub(super) fn a_granule_is_committed_once(subject: &Subject<'_>) -> Check {
    let (growing, region) = (subject.growing()?, subject.region(6)?);
    subject.commit(&[subject.range(&region, 2, 2)])?;
    for (first, granules) in [(2, 2), (2, 1), (3, 1), (1, 2), (3, 2), (0, 6)] {
        let range = [subject.range(&region, first, granules)];
        ensure_refused(
            format!("a second commit of {range:?}"),
            growing.commit(&range),
            &[ErrorKind::AlreadyCommitted],
        )?;
        ensure_refused(format!("the cost of {range:?}"), growing.cost(&range), &[ErrorKind::AlreadyCommitted])?;
        subject.ensure_committed(&region, 2, "after the refusal")?;
    }
    Ok(())
}

pub(super) fn a_granule_is_decommitted_once(subject: &Subject<'_>) -> Check {
    let (growing, region) = (subject.growing()?, subject.region(6)?);
    subject.commit(&[subject.range(&region, 2, 2)])?;
    for (first, granules) in [(0, 1), (1, 2), (3, 2), (5, 1), (0, 6)] {
        let range = [subject.range(&region, first, granules)];
        ensure_refused(format!("a decommit of {range:?}"), growing.decommit(&range), &[ErrorKind::NotCommitted])?;
        subject.ensure_committed(&region, 2, "after the refusal")?;
    }
    subject.decommit(&[subject.range(&region, 2, 2)])?;
    let again = growing.decommit(&[subject.range(&region, 2, 2)]);
    ensure_refused("a second decommit", again, &[ErrorKind::NotCommitted])?;
    subject.commit(&[subject.range(&region, 0, 6)])
}

/// Ranges that are wrong in themselves, of a region of eight granules.
fn malformed(granule: u64, region: &Region) -> Vec<CommitRange> {
    let odd = [(1, granule), (granule, 1), (granule / 2, granule), (0, granule + 1), (0, 0), (8 * granule, 0)];
    let outside = [(8 * granule, granule), (7 * granule, 2 * granule), (9 * granule, granule)];
    let last = u64::MAX - granule + 1;
    let overflowing = [(last, granule), (granule, last), (last, last), (u64::MAX, u64::MAX), (u64::MAX, 1)];
    let all = odd.into_iter().chain(outside).chain(overflowing);
    all.map(|(offset, bytes)| CommitRange::new(region.id, offset, bytes)).collect()
}

pub(super) fn malformed_ranges_are_refused(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    let (empty, full) = (subject.region(8)?, subject.committed_region(8)?);
    for range in malformed(subject.granule, &empty) {
        ensure_refused(format!("a commit of {range:?}"), growing.commit(&[range]), INVALID)?;
        ensure_refused(format!("the cost of {range:?}"), growing.cost(&[range]), INVALID)?;
    }
    for range in malformed(subject.granule, &full) {
        ensure_refused(format!("a decommit of {range:?}"), growing.decommit(&[range]), INVALID)?;
    }
    subject.ensure_committed(&empty, 0, "after the refusals")?;
    subject.ensure_committed(&full, 8, "after the refusals")
}

pub(super) fn ranges_of_one_call_that_overlap_are_refused(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    let (empty, full) = (subject.region(8)?, subject.committed_region(8)?);
    for [one, other] in [[(0, 2), (0, 2)], [(0, 2), (1, 2)], [(4, 1), (2, 4)], [(0, 8), (7, 1)]] {
        let ranges = |region: &Region| [one, other].map(|(first, granules)| subject.range(region, first, granules));
        ensure_refused(format!("a commit of {one:?} and {other:?}"), growing.commit(&ranges(&empty)), INVALID)?;
        ensure_refused(format!("the cost of {one:?} and {other:?}"), growing.cost(&ranges(&empty)), INVALID)?;
        ensure_refused(format!("a decommit of {one:?} and {other:?}"), growing.decommit(&ranges(&full)), INVALID)?;
        subject.ensure_committed(&empty, 0, "after the refusal")?;
        subject.ensure_committed(&full, 8, "after the refusal")?;
    }
    Ok(())
}

/// Of four ranges one can't be done, each in its turn: then none of the four is.
pub(super) fn a_commit_is_all_or_nothing_at_each_index(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    for nth in 0..4 {
        let regions = [subject.region(4)?, subject.region(4)?, subject.region(4)?, subject.region(4)?];
        let mut ranges = regions.map(|region| subject.range(&region, 0, 3));
        subject.commit(&[subject.range(&regions[nth], 2, 1)])?;
        ensure_refused(format!("range {nth} is taken"), growing.commit(&ranges), &[ErrorKind::AlreadyCommitted])?;
        ensure_counts(subject, &regions, nth, [1, 0])?;
        subject.decommit(&[subject.range(&regions[nth], 2, 1)])?;
        ranges[nth] = CommitRange::new(RegionId::new(subject.id()), 0, subject.granule);
        ensure_refused(format!("region {nth} is unknown"), growing.commit(&ranges), UNKNOWN)?;
        ranges[nth] = subject.range(&regions[nth], 3, 2);
        ensure_refused(format!("range {nth} leaves its region"), growing.commit(&ranges), INVALID)?;
        ensure_counts(subject, &regions, nth, [0, 0])?;
        ranges[nth] = subject.range(&regions[nth], 0, 3);
        subject.commit(&ranges)?;
        ensure_counts(subject, &regions, nth, [3, 3])?;
    }
    Ok(())
}

pub(super) fn a_decommit_is_all_or_nothing_at_each_index(subject: &Subject<'_>) -> Check {
    let growing = subject.growing()?;
    for nth in 0..4 {
        let make = || subject.committed_region(4);
        let regions = [make()?, make()?, make()?, make()?];
        let mut ranges = regions.map(|region| subject.range(&region, 1, 3));
        subject.decommit(&[subject.range(&regions[nth], 3, 1)])?;
        ensure_refused(format!("range {nth} has a hole"), growing.decommit(&ranges), &[ErrorKind::NotCommitted])?;
        ensure_counts(subject, &regions, nth, [3, 4])?;
        ranges[nth] = CommitRange::new(RegionId::new(subject.id()), 0, subject.granule);
        ensure_refused(format!("region {nth} is unknown"), growing.decommit(&ranges), UNKNOWN)?;
        ensure_counts(subject, &regions, nth, [3, 4])?;
        ranges[nth] = subject.range(&regions[nth], 1, 2);
        subject.decommit(&ranges)?;
        ensure_counts(subject, &regions, nth, [1, 1])?;
    }
    Ok(())
}

/// Granules that are committed of region `nth`, and of each other one.
fn ensure_counts(subject: &Subject<'_>, regions: &[Region; 4], nth: usize, counts: [u64; 2]) -> Check {
    for (index, region) in regions.iter().enumerate() {
        let wanted = if index == nth { counts[0] } else { counts[1] };
        subject.ensure_committed(region, wanted, &format!("region {index}, where {nth} is the wrong one"))?;
    }
    Ok(())
}
