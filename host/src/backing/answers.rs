//! What a right answer looks like: pure checks of what a backing said against what it was asked.
//!
//! Each check answers the breach in words, or nothing. Nothing here calls a backing.

use crate::error::Operation;
use leasehold_plugin_api::{
    Accounting, Address, AllocateRequest, Allocation, Change, CommitRange, Prefix, PrefixMapping, PrefixRequest,
    Region, ReserveRequest,
};

/// A granularity: a power of two.
pub(super) fn granularity(granularity: u64) -> Result<(), String> {
    if granularity.is_power_of_two() {
        return Ok(());
    }
    Err(format!("its granularity is {granularity}, which is not a power of two"))
}

/// A region: the id and size that were asked for, a base that is aligned and not null, an end within the address
/// space. Answers the end.
pub(super) fn region(request: &ReserveRequest, region: &Region) -> Result<Address, String> {
    if region.id != request.id {
        return Err(format!("reserve answered {} for {}", region.id, request.id));
    }
    if region.bytes != request.bytes {
        return Err(format!("reserve answered a region of {} bytes, asked for {}", region.bytes, request.bytes));
    }
    extent("reserve", region.base, region.bytes, request.align)
}

/// An allocation: the id and at least the bytes that were asked for, at an aligned base that is not null. Answers the
/// end.
pub(super) fn allocation(request: &AllocateRequest, allocation: &Allocation) -> Result<Address, String> {
    if allocation.id != request.id {
        return Err(format!("allocate answered {} for {}", allocation.id, request.id));
    }
    if allocation.bytes < request.bytes {
        return Err(format!("allocate answered {} bytes, asked for {}", allocation.bytes, request.bytes));
    }
    extent("allocate", allocation.base, allocation.bytes, request.align)
}

/// A prefix: the id and size that were asked for, a window that is aligned and not null, and as many bytes newly owned, or
/// fewer where the backing pays and had them parked. Answers the window's end.
pub(super) fn prefix(
    accounting: Accounting,
    granularity: u64,
    request: &PrefixRequest,
    prefix: &Prefix,
) -> Result<Address, String> {
    if prefix.id != request.id {
        return Err(format!("create_prefix answered {} for {}", prefix.id, request.id));
    }
    let (asked, bytes, owned) = (request.bytes, prefix.bytes, prefix.owned_bytes);
    if bytes != asked {
        return Err(format!("create_prefix answered a prefix of {bytes} bytes, asked for {asked}"));
    }
    if is_wrongly_owned(accounting, asked, owned) {
        return Err(format!("create_prefix answered {owned} bytes newly owned, asked for {asked}"));
    }
    extent("create_prefix", prefix.window, bytes, granularity)
}

/// A mapping or unmapping of prefixes: exactly the bytes that were asked for, and none of them owned for it.
pub(super) fn mapping(operation: Operation, mappings: &[PrefixMapping], change: Change) -> Result<(), String> {
    let asked = PrefixMapping::total_bytes(mappings);
    let Change { mapped_bytes, owned_bytes } = change;
    if mapped_bytes != asked || owned_bytes != 0 {
        return Err(format!(
            "{operation} answered {mapped_bytes} bytes mapped, {owned_bytes} owned, asked for {asked}, 0"
        ));
    }
    Ok(())
}

/// What one more mapping of a sealed prefix newly owns: nothing.
pub(super) fn increment(owned: u64) -> Result<(), String> {
    if owned == 0 {
        return Ok(());
    }
    Err(format!("incremental_owned_bytes answered {owned} for a prefix that is charged already"))
}

fn extent(operation: &str, base: Address, bytes: u64, align: u64) -> Result<Address, String> {
    if base.is_null() {
        return Err(format!("{operation} answered the null address"));
    }
    if !base.is_aligned_to(align) {
        return Err(format!("{operation} answered base {base}, asked for an alignment of {align}"));
    }
    base.checked_add(bytes)
        .ok_or_else(|| format!("{operation} answered base {base}, from where {bytes} bytes pass the address space"))
}

/// A commit: exactly the bytes that were asked for are newly mapped, and as many newly owned, or fewer where the backing
/// pays and had them parked.
pub(super) fn commit(accounting: Accounting, ranges: &[CommitRange], change: Change) -> Result<(), String> {
    exactly("commit", "newly", accounting, ranges, change)
}

/// A decommit: exactly the bytes that were asked for are unmapped, and as many no longer owned, or fewer where the
/// backing pays and parks them.
pub(super) fn decommit(accounting: Accounting, ranges: &[CommitRange], change: Change) -> Result<(), String> {
    exactly("decommit", "no longer", accounting, ranges, change)
}

fn exactly(
    operation: &str,
    when: &str,
    accounting: Accounting,
    ranges: &[CommitRange],
    change: Change,
) -> Result<(), String> {
    let asked = CommitRange::total_bytes(ranges);
    let Change { mapped_bytes, owned_bytes } = change;
    if mapped_bytes != asked {
        return Err(format!("{operation} answered {mapped_bytes} bytes {when} mapped, asked for {asked}"));
    }
    if is_wrongly_owned(accounting, asked, owned_bytes) {
        return Err(format!("{operation} answered {owned_bytes} bytes {when} owned, asked for {asked}"));
    }
    Ok(())
}

fn is_wrongly_owned(accounting: Accounting, asked: u64, owned: u64) -> bool {
    match accounting {
        Accounting::Buffer => owned != asked,
        Accounting::Backing { .. } => owned > asked,
    }
}

/// A cost: no more than was asked for is newly mapped or newly owned. Parked memory is owned already, and memory may be
/// owned before it is mapped, so that neither bounds the other.
pub(super) fn cost(ranges: &[CommitRange], change: Change) -> Result<(), String> {
    let asked = CommitRange::total_bytes(ranges);
    let Change { mapped_bytes, owned_bytes } = change;
    if mapped_bytes > asked || owned_bytes > asked {
        return Err(format!("cost answered {mapped_bytes} bytes mapped, {owned_bytes} owned, asked for {asked}"));
    }
    Ok(())
}

/// The bytes left after a decommit failed: in whole granules, between what was to stay and what there was.
pub(super) fn left(granularity: u64, least: u64, most: u64, left: u64) -> Result<(), String> {
    if left < least || left > most || !left.is_multiple_of(granularity) {
        return Err(format!(
            "committed_bytes answered {left} after a failed decommit from {most} to {least} in granules of {granularity}"
        ));
    }
    Ok(())
}
