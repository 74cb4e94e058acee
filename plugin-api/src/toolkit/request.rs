//! Whether a request is well-formed, before anything is looked up or done: pure arithmetic, and the words of a refusal.

use crate::{AllocateRequest, BackingError, CommitRange, ReserveRequest};
use std::fmt::Display;
use std::ops::Range;

/// Refuses an alignment that is no power of two.
///
/// # Errors
///
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest).
pub fn check_align(id: impl Display, align: u64) -> Result<(), BackingError> {
    if align.is_power_of_two() {
        return Ok(());
    }
    Err(BackingError::invalid(format!("{id}: alignment {align} is refused; ask for a power of two")))
}

/// Refuses a size that is not one or more granules.
///
/// # Errors
///
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest).
pub fn check_granules(id: impl Display, bytes: u64, granule: u64) -> Result<(), BackingError> {
    if bytes != 0 && bytes.is_multiple_of(granule) {
        return Ok(());
    }
    let why = format!("{bytes} bytes are not whole granules; ask for a positive multiple of {granule}");
    Err(BackingError::invalid(format!("{id}: {why}")))
}

/// Refuses a reservation that is malformed.
///
/// # Errors
///
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest).
pub fn check_reserve(request: &ReserveRequest, granule: u64) -> Result<(), BackingError> {
    let ReserveRequest { id, bytes, align, .. } = *request;
    check_align(id, align)?;
    if align < granule {
        let why = format!("alignment {align} is less than the granule; ask for {granule} or more");
        return Err(BackingError::invalid(format!("{id}: {why}")));
    }
    check_granules(id, bytes, granule)
}

/// The physical bytes of a plain allocation: what is asked for, rounded up to `unit`.
///
/// # Errors
///
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) where it is malformed,
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) where no number is that large.
pub fn physical_bytes(request: &AllocateRequest, unit: u64) -> Result<u64, BackingError> {
    let AllocateRequest { id, bytes, align, .. } = *request;
    check_align(id, align)?;
    if bytes == 0 {
        return Err(BackingError::invalid(format!("{id}: asks for 0 bytes; ask for at least 1")));
    }
    bytes.checked_next_multiple_of(unit).ok_or_else(|| BackingError::out_of_memory(bytes))
}

/// The refusal of an id that is live.
#[must_use]
pub fn live_already(id: impl Display) -> BackingError {
    BackingError::invalid(format!("{id}: is live already; mint each id once"))
}

/// How a refusal names a range.
#[must_use]
pub fn name(part: &CommitRange) -> String {
    format!("{}, {} bytes at offset {}", part.region(), part.bytes, part.offset)
}

/// The bytes of a range that is whole granules, a power of two, within a region of `region_bytes`.
///
/// # Errors
///
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) where it isn't.
pub fn range_within(part: &CommitRange, granule: u64, region_bytes: u64) -> Result<Range<u64>, BackingError> {
    // The granule is a power of two: a mask, where a division by a variable would cost more than the look-up.
    let broken = (part.offset | part.bytes) & granule.wrapping_sub(1);
    if part.bytes == 0 || broken != 0 {
        let why = format!("not whole granules; wanted positive multiples of {granule} bytes");
        return Err(BackingError::invalid(format!("{}: {why}", name(part))));
    }
    match part.end() {
        Some(end) if end <= region_bytes => Ok(part.offset..end),
        _ => {
            let why = format!("past the end; the region has {region_bytes} bytes");
            Err(BackingError::invalid(format!("{}: {why}", name(part))))
        }
    }
}

/// Sorts the items of one call by the region and offset of their ranges, and refuses two that overlap.
pub(super) fn in_order<T: Copy>(items: &[T], range: impl Fn(&T) -> CommitRange) -> Result<Vec<T>, BackingError> {
    let mut parts = items.to_vec();
    parts.sort_unstable_by_key(|part| (range(part).region(), range(part).offset));
    let pairs = parts.array_windows().map(|[left, right]| (range(left), range(right)));
    for (left, right) in pairs {
        if overlap(&left, &right) {
            return Err(BackingError::invalid(format!(
                "{}: two ranges of one call overlap, {} bytes at offset {} and {} bytes at offset {}; name each granule \
                 once",
                left.region(),
                left.bytes,
                left.offset,
                right.bytes,
                right.offset
            )));
        }
    }
    Ok(parts)
}

/// Whether `left`, which begins first, reaches into `right`.
fn overlap(left: &CommitRange, right: &CommitRange) -> bool {
    left.region() == right.region() && left.end().is_none_or(|end| end > right.offset)
}
