//! What every backing does: say what it is, hand out memory, take it back.

use super::subject::{INVALID, SOMEBODY, Subject, TOO_MUCH, UNKNOWN, ensure_refused, ensure_unreleased};
use super::{Check, ensure};
use leasehold_plugin_api::{AllocateRequest, AllocationId, RegionId, ReleaseTarget};

/// Sizes around the edges of granules, small alignments and large ones.
const SIZES: [(u64, u64); 5] = [(1, 1), (4096, 64), (6912, 4096), (1 << 20, 2 << 20), ((1 << 20) + 1, 1)];

pub(super) fn answers_stay_the_same(subject: &Subject<'_>) -> Check {
    let backing = subject.backing;
    let ask = || {
        let granularity = backing.as_virtual_backing().map(|growing| growing.granularity());
        let offers = (backing.as_shared_mapping().is_some(), backing.as_transfer().is_some());
        (backing.describe(), backing.accounting(), granularity, offers)
    };
    let before = ask();
    let made = subject.allocate(&subject.allocation_request(1, 1)).map_err(|error| error.to_string())?;
    ensure!(ask() == before, "an answer changed with an allocation: {before:?}, then {:?}", ask());
    subject.release(ReleaseTarget::Allocation(made.id))?;
    ensure!(ask() == before, "an answer changed with a release: {before:?}, then {:?}", ask());
    Ok(())
}

pub(super) fn an_unknown_extension_is_none(subject: &Subject<'_>) -> Check {
    let answer = subject.backing.extension("nobody has this one");
    ensure!(answer.is_none(), "an extension that nobody has is answered: {answer:?}");
    Ok(())
}

pub(super) fn allocations_are_as_asked_and_apart(subject: &Subject<'_>) -> Check {
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for (bytes, align) in SIZES {
        let request = subject.allocation_request(bytes, align);
        let made = subject.allocate(&request).map_err(|error| format!("{request:?} is refused: {error}"))?;
        let (base, end) = (made.base.get(), made.base.checked_add(made.bytes));
        ensure!(made.id == request.id && made.bytes >= bytes, "{request:?} is answered with {made:?}");
        ensure!(!made.base.is_null() && made.base.is_aligned_to(align), "{request:?} is answered with {made:?}");
        let end = end.ok_or_else(|| format!("{made:?} passes the address space"))?.get();
        let other = taken.iter().find(|(other, other_end)| *other < end && base < *other_end);
        ensure!(other.is_none(), "{made:?} overlaps {other:x?}");
        taken.push((base, end));
    }
    Ok(())
}

pub(super) fn allocations_read_as_zero(subject: &Subject<'_>) -> Check {
    for round in 0..3 {
        for (bytes, align) in SIZES {
            let made =
                subject.allocate(&subject.allocation_request(bytes, align)).map_err(|error| error.to_string())?;
            subject.ensure_reads(made.base, bytes, 0, &format!("round {round}"))?;
            subject.fill(made.base, bytes, 0xa5)?;
            subject.ensure_reads(made.base, bytes, 0xa5, "after a write")?;
            subject.release(ReleaseTarget::Allocation(made.id))?;
        }
    }
    Ok(())
}

pub(super) fn malformed_allocations_are_refused(subject: &Subject<'_>) -> Check {
    for (bytes, align) in [(0, 1), (1, 0), (1, 3), (1, u64::MAX)] {
        let request = subject.allocation_request(bytes, align);
        ensure_refused(format!("{request:?}"), subject.allocate(&request), INVALID)?;
        ensure_dead(subject, ReleaseTarget::Allocation(request.id))?;
    }
    for (bytes, align) in [(u64::MAX, 1), (u64::MAX - 4095, 4096), (1 << 62, 1), (1, 1 << 63)] {
        let request = subject.allocation_request(bytes, align);
        ensure_refused(format!("{request:?}"), subject.allocate(&request), TOO_MUCH)?;
        ensure_dead(subject, ReleaseTarget::Allocation(request.id))?;
    }
    Ok(())
}

/// Nothing is left of what was refused.
fn ensure_dead(subject: &Subject<'_>, target: ReleaseTarget) -> Check {
    ensure_unreleased(&format!("the release of {target:?}"), subject.backing.release(target), UNKNOWN)
}

pub(super) fn an_id_dies_with_its_release(subject: &Subject<'_>) -> Check {
    let made = subject.allocate(&subject.allocation_request(4096, 1)).map_err(|error| error.to_string())?;
    // Regions and allocations are numbered apart.
    ensure_dead(subject, ReleaseTarget::Region(RegionId::new(made.id.get())))?;
    subject.release(ReleaseTarget::Allocation(made.id))?;
    ensure_dead(subject, ReleaseTarget::Allocation(made.id))?;
    ensure_dead(subject, ReleaseTarget::Allocation(AllocationId::new(subject.id())))
}

pub(super) fn an_id_that_is_live_is_refused(subject: &Subject<'_>) -> Check {
    let request = AllocateRequest { holder: SOMEBODY, ..subject.allocation_request(4096, 1) };
    let made = subject.allocate(&request).map_err(|error| error.to_string())?;
    ensure_refused("an id that is live", subject.backing.allocate(&request), INVALID)?;
    subject.release(ReleaseTarget::Allocation(made.id))
}

pub(super) fn trimming_gives_up_what_is_parked_and_no_more(subject: &Subject<'_>) -> Check {
    let trim = |bytes: u64| subject.backing.trim(bytes).map_err(|error| format!("trim({bytes}) fails: {error}"));
    let made = subject.allocate(&subject.allocation_request(1 << 20, 1)).map_err(|error| error.to_string())?;
    trim(u64::MAX)?;
    let live = trim(u64::MAX)?;
    ensure!(live == 0, "trimming twice gave {live} bytes up the second time, with {} bytes in use", made.bytes);
    subject.release(ReleaseTarget::Allocation(made.id))?;
    let nothing = trim(0)?;
    ensure!(nothing == 0, "asked for nothing, it gave {nothing} bytes up");
    let parked = trim(u64::MAX)?;
    ensure!(parked <= made.bytes, "it gave {parked} bytes up, and had at most {}", made.bytes);
    Ok(())
}
