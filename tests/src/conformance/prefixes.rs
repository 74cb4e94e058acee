//! Prefixes by themselves: made, sealed, released.

use super::subject::{
    INVALID, NOT_OURS, SOMEBODY, SOMEBODY_ELSE, Subject, TOO_MUCH, ensure_refused, ensure_unreleased,
};
use super::{Check, ensure};
use leasehold_plugin_api::{ErrorKind, PrefixId, PrefixMapping, PrefixRange, PrefixRequest, RegionId};

pub(super) fn prefixes_are_as_asked_and_own_what_they_hold(subject: &Subject<'_>) -> Check {
    for granules in [1, 3, 8] {
        let request = subject.prefix_request(granules);
        let made = subject.create(&request)?;
        ensure!((made.id, made.bytes) == (request.id, request.bytes), "{request:?} is answered with {made:?}");
        let is_owned = made.owned_bytes == made.bytes || (subject.may_park() && made.owned_bytes < made.bytes);
        ensure!(is_owned && !made.window.is_null(), "{request:?} is answered with {made:?}");
        let aligned = subject.growing().is_err() || made.window.is_aligned_to(subject.granule);
        ensure!(aligned, "the window of {made:?} is not aligned to {}", subject.granule);
        let more = subject.sharing()?.incremental_owned_bytes(made.id).map_err(|error| error.to_string())?;
        ensure!(more == 0, "one more mapping would own {more} bytes");
    }
    Ok(())
}

pub(super) fn malformed_prefixes_are_refused(subject: &Subject<'_>) -> Check {
    let (sharing, granule) = (subject.sharing()?, subject.granule);
    let sound = || subject.prefix_request(1);
    let mut cases = vec![(PrefixRequest { bytes: 0, ..sound() }, INVALID)];
    if subject.growing().is_ok() {
        cases.push((PrefixRequest { bytes: granule + 1, ..sound() }, INVALID));
        cases.push((PrefixRequest { bytes: granule / 2, ..sound() }, INVALID));
    }
    cases.push((PrefixRequest { bytes: u64::MAX - granule + 1, ..sound() }, TOO_MUCH));
    cases.push((PrefixRequest { bytes: 1 << 62, ..sound() }, TOO_MUCH));
    for (request, kinds) in cases {
        ensure_refused(format!("{request:?}"), sharing.create_prefix(&request), kinds)?;
        ensure_unreleased("the release of what was refused", sharing.release_prefix(request.id), NOT_OURS)?;
    }
    let live = sound();
    subject.create(&live)?;
    ensure_refused("an id that is live", sharing.create_prefix(&live), INVALID)
}

pub(super) fn a_prefix_is_sealed_once(subject: &Subject<'_>) -> Check {
    let prefix = subject.sealed(2)?;
    for _ in 0..2 {
        ensure_refused("a second seal", subject.sharing()?.seal(prefix.id), &[ErrorKind::WrongState])?;
    }
    Ok(())
}

/// A prefix that is not live here is refused; no cost is answered for it, not even zero.
pub(super) fn ensure_stranger(subject: &Subject<'_>, id: PrefixId) -> Check {
    let sharing = subject.sharing()?;
    ensure_refused(format!("incremental_owned_bytes of {id}"), sharing.incremental_owned_bytes(id), NOT_OURS)?;
    ensure_refused(format!("seal of {id}"), sharing.seal(id), NOT_OURS)?;
    ensure_unreleased(&format!("the release of {id}"), sharing.release_prefix(id), NOT_OURS)?;
    // The prefix is refused first: its region is unknown too, and its figures are nonsense.
    let nonsense = PrefixMapping::new(PrefixRange::new(id, 1, u64::MAX), RegionId::new(subject.id()), 1);
    ensure_refused(format!("map_prefix of {id}"), sharing.map_prefix(&[nonsense]), &{ [NOT_OURS, INVALID].concat() })
}

pub(super) fn a_prefix_of_somebody_else_is_refused(subject: &Subject<'_>) -> Check {
    for id in [subject.id(), 0, u64::MAX] {
        ensure_stranger(subject, PrefixId::new(id))?;
    }
    Ok(())
}

pub(super) fn a_prefix_is_dead_after_its_release(subject: &Subject<'_>) -> Check {
    let (writable, sealed) = (subject.prefix(2)?, subject.sealed(2)?);
    for prefix in [writable, sealed] {
        subject.release_prefix(prefix.id)?;
        ensure_stranger(subject, prefix.id)?;
    }
    Ok(())
}

pub(super) fn a_prefix_reads_as_zero_and_keeps_what_was_written(subject: &Subject<'_>) -> Check {
    for holder in [SOMEBODY, SOMEBODY_ELSE, SOMEBODY] {
        let made = subject.create(&PrefixRequest { holder, ..subject.prefix_request(3) })?;
        if holder == SOMEBODY_ELSE {
            subject.ensure_reads(made.window, made.bytes, 0, "a prefix of another holder")?;
        }
        subject.fill(made.window, made.bytes, 0x5a)?;
        subject.ensure_reads(made.window, made.bytes, 0x5a, "before it is sealed")?;
        subject.seal(&made)?;
        subject.ensure_reads(made.window, made.bytes, 0x5a, "after it is sealed")?;
        subject.release_prefix(made.id)?;
    }
    Ok(())
}
