//! What buffers, sets and allocations do where systems of this kind have gone wrong: shrinking, odd sizes, figures that
//! overflow, misuse of a region, planes that are left uneven.

use leasehold::{
    Accounting, AllocationSpec, BackingHandle, BufferSpec, Domain, ErrorKind, GrowthPolicy, Host, HostAccess,
    PrefixSpec,
};
use leasehold_plugin_api::{
    self as api, AllocateRequest, AllocationId, Backing, BackingError, CommitRange, Description, HolderId, MemoryRole,
    RegionId, ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use leasehold_tests::fault::{Call, Fault, Faults, Strikes, Under, host_mmap};
use leasehold_tests::observe::{mappings_in, open_bytes, resident_bytes};
use leasehold_tests::rig::{GIB, KIB, LIMIT, MIB, all_rigs, host_rigs};
use std::collections::HashSet;

const PAGE: u64 = 4 * KIB;

fn used(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().used_bytes
}

/// Whether the charge is a buffer's lease: it carries the figures of a refusal, and covers the worst while nobody can tell
/// what is there. A backing that charges by itself is never in doubt.
fn leases(backing: &BackingHandle) -> bool {
    backing.accounting() == Accounting::Buffer
}

/// A host over each backing of which what is owned is what is committed, behind faults of which none is planned yet.
fn faulty(limit_bytes: u64) -> impl Iterator<Item = (Faults, Host, BackingHandle)> {
    Under::EXACT.into_iter().map(move |under| {
        println!("over {under:?}");
        let faults = Faults::new();
        let host = under.host(&faults, limit_bytes);
        let backing = host.backing("faulty").unwrap();
        (faults, host, backing)
    })
}

#[test]
fn a_buffer_grown_in_one_step_shrinks_and_grows_again() {
    for rig in host_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        let base = buffer.base();
        buffer.grow_to(4 * MIB).unwrap();
        buffer.as_mut_slice().unwrap().fill(0xAB);
        buffer.shrink_to(MIB).unwrap();
        assert_eq!((resident_bytes(base, 8 * MIB), rig.used()), (MIB, MIB), "{}: 3 MiB left", rig.name);
        buffer.grow_to(4 * MIB).unwrap();
        assert_eq!((buffer.base(), rig.used()), (base, 4 * MIB), "{}", rig.name);
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(1 << 20);
        assert!(kept.iter().all(|byte| *byte == 0xAB), "{}: what stayed is as it was", rig.name);
        assert!(fresh.iter().all(|byte| *byte == 0), "{}: what came back reads as zero", rig.name);
    }
}

#[test]
fn a_buffer_grown_in_steps_shrinks_across_their_edges() {
    for rig in host_rigs() {
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(8 * MIB)).unwrap();
        for mib in [1, 2, 4, 8] {
            buffer.grow_to(mib * MIB).unwrap();
            buffer.as_mut_slice().unwrap().fill(1);
        }
        buffer.shrink_to(3 * MIB).unwrap();
        let left = (buffer.committed(), rig.used(), resident_bytes(buffer.base(), 8 * MIB));
        assert_eq!(left, (3 * MIB, 3 * MIB, 3 * MIB), "{}", rig.name);
        buffer.grow_to(8 * MIB).unwrap();
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(3 << 20);
        assert!(kept.iter().all(|byte| *byte == 1) && fresh.iter().all(|byte| *byte == 0), "{}", rig.name);
    }
}

#[test]
fn growing_a_token_at_a_time_costs_the_same_at_every_step() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(500 * MIB)).unwrap();
        let before = faults.counts();
        let steps = 500 * MIB / PAGE;
        for step in 1..=steps {
            buffer.grow_to(step * PAGE).unwrap();
            assert_eq!(faults.count(Call::Commit), step, "one call a step");
        }
        let mut expected = before;
        expected.insert(Call::Commit, steps);
        assert_eq!(faults.counts(), expected, "no other call, whatever the length");
        assert_eq!(
            mappings_in(buffer.base(), buffer.capacity()).len(),
            1,
            "and the kernel's list is as short as at first"
        );
    }
}

#[test]
fn growing_within_what_is_committed_calls_nobody() {
    for (faults, host, backing) in faulty(LIMIT) {
        let spec = BufferSpec::new(MIB).growth(GrowthPolicy::Step(64 * KIB));
        let mut buffer = host.buffer(&backing, &spec).unwrap();
        buffer.grow_to(1).unwrap();
        let before = faults.counts();
        for len in [2, PAGE, PAGE + 1, 64 * KIB] {
            buffer.grow_to(len).unwrap();
        }
        assert_eq!((faults.counts(), buffer.len(), used(&host)), (before, 64 * KIB, 64 * KIB));
    }
}

#[test]
fn a_size_that_is_no_multiple_of_the_granule_keeps_logical_and_physical_apart() {
    for rig in host_rigs() {
        let (granule, size) = (rig.granule, rig.granule + 2816);
        let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(size)).unwrap();
        buffer.grow_to(size).unwrap();
        let seen = (buffer.len(), buffer.committed(), buffer.capacity());
        assert_eq!(seen, (size, 2 * granule, 2 * granule), "{}", rig.name);
        assert_eq!(buffer.as_slice().unwrap().len(), usize::try_from(size).unwrap(), "{}", rig.name);
        let allocation = rig.host.allocate(&rig.backing, &AllocationSpec::new(size)).unwrap();
        let seen = (allocation.len(), allocation.owned_bytes(), rig.used());
        assert_eq!(seen, (size, 2 * granule, 4 * granule), "{}", rig.name);
        drop((buffer, allocation));
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

#[test]
fn a_spec_that_could_never_be_granted_is_refused_and_leaves_nothing() {
    for (faults, host, backing) in faulty(LIMIT) {
        for (spec, planes, kind) in hopeless(PAGE) {
            let error = host.buffer_set(&backing, planes, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{spec:?}, {planes} planes: {error}");
            assert_eq!((faults.held().regions, used(&host)), (0, 0), "{spec:?}");
        }
    }
    for rig in host_rigs() {
        for (spec, planes, kind) in hopeless(rig.granule) {
            let error = rig.host.buffer_set(&rig.backing, planes, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{}: {spec:?}, {planes} planes: {error}", rig.name);
        }
    }
}

/// Specs that could never be granted, with their planes.
fn hopeless(granule: u64) -> [(BufferSpec, usize, ErrorKind); 13] {
    let spec = |capacity| BufferSpec::new(capacity);
    let step = |bytes| spec(MIB).growth(GrowthPolicy::Step(bytes));
    [
        (spec(0), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX - granule + 2), 1, ErrorKind::InvalidRequest),
        (spec(u64::MAX - granule + 1), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 63), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 47), 1, ErrorKind::AddressSpaceExhausted),
        (spec(1 << 46), 3, ErrorKind::AddressSpaceExhausted),
        (spec(MIB).align(0), 1, ErrorKind::InvalidRequest),
        (spec(MIB).align(3), 1, ErrorKind::InvalidRequest),
        (spec(MIB).align(1 << 47), 1, ErrorKind::AddressSpaceExhausted),
        (spec(MIB).align(1 << 63), 1, ErrorKind::AddressSpaceExhausted),
        (spec(MIB), 0, ErrorKind::InvalidRequest),
        (step(0), 1, ErrorKind::InvalidRequest),
    ]
}

#[test]
fn a_large_alignment_is_kept() {
    for rig in host_rigs() {
        let spec = BufferSpec::new(MIB).align(1 << 40);
        let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
        assert!(buffer.base().is_aligned_to(1 << 40), "{}: {}", rig.name, buffer.base());
        buffer.grow_to(MIB).unwrap();
    }
}

#[test]
fn lengths_that_overflow_are_refused_by_the_capacity() {
    for policy in [GrowthPolicy::Exact, GrowthPolicy::Step(u64::MAX), GrowthPolicy::Geometric] {
        for (_, host, backing) in faulty(LIMIT) {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(policy)).unwrap();
            for len in [MIB + 1, u64::MAX - PAGE, u64::MAX] {
                let error = buffer.grow_to(len).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::CapacityExceeded, "{policy:?}, {len}: {error}");
            }
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (0, 0, 0), "{policy:?}");
            buffer.grow_to(1).unwrap();
            buffer.shrink_to(u64::MAX).unwrap();
            assert_eq!(buffer.len(), 1, "{policy:?}: shrinking never grows");
        }
    }
}

#[test]
fn an_allocation_that_could_never_be_granted_is_refused_and_leaves_nothing() {
    let refusals = [
        (AllocationSpec::new(0), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(0), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(3), ErrorKind::InvalidRequest),
        (AllocationSpec::new(MIB).align(1 << 63), ErrorKind::AddressSpaceExhausted),
        (AllocationSpec::new(LIMIT + 1), ErrorKind::TierExhausted),
    ];
    for (faults, host, backing) in faulty(LIMIT) {
        for (spec, kind) in refusals {
            let error = host.allocate(&backing, &spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{spec:?}: {error}");
            assert_eq!((faults.held().allocations, used(&host)), (0, 0), "{spec:?}");
        }
        // No number holds its granules: who charges granules knows that before there is a charge to refuse.
        let kind = if leases(&backing) { ErrorKind::TierExhausted } else { ErrorKind::OutOfMemory };
        assert_eq!(host.allocate(&backing, &AllocationSpec::new(u64::MAX)).unwrap_err().kind(), kind);
        assert_eq!((faults.held().allocations, used(&host)), (0, 0));
    }
}

#[test]
fn an_allocation_without_a_budget_to_stop_it_is_refused_by_the_system() {
    for (faults, host, backing) in faulty(u64::MAX) {
        for bytes in [u64::MAX, 1 << 63, 1 << 47] {
            let error = host.allocate(&backing, &AllocationSpec::new(bytes)).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::AddressSpaceExhausted),
                "{bytes}: {error}"
            );
            assert_eq!((faults.held().allocations, used(&host)), (0, 0), "{bytes}");
        }
    }
}

#[test]
fn an_allocation_whose_rounding_passes_the_budget_goes_back() {
    for (faults, host, backing) in faulty(2 * PAGE - 1) {
        let error = host.allocate(&backing, &AllocationSpec::new(PAGE + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
        assert_eq!((faults.held().allocations, used(&host)), (0, 0));
        // A backing that charges by itself charges the rounded size, before it takes anything.
        assert_eq!(faults.count(Call::Release), u64::from(leases(&backing)));
        host.allocate(&backing, &AllocationSpec::new(PAGE)).unwrap();
    }
}

#[test]
fn an_allocation_reads_as_zero_is_aligned_and_is_charged_until_it_goes() {
    for rig in host_rigs() {
        let mut allocation = rig.host.allocate(&rig.backing, &AllocationSpec::new(MIB).align(2 * MIB)).unwrap();
        assert!(allocation.base().is_aligned_to(2 * MIB), "{}", rig.name);
        assert!(allocation.as_slice().unwrap().iter().all(|byte| *byte == 0), "{}", rig.name);
        allocation.as_mut_slice().unwrap().fill(5);
        assert_eq!((rig.used(), resident_bytes(allocation.base(), MIB)), (MIB, MIB), "{}", rig.name);
        allocation.close().unwrap();
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

/// Calls each backing directly, as no buffer ever would.
fn with_raw(check: fn(&dyn Backing, &dyn VirtualBacking)) {
    for under in Under::EXACT {
        println!("over {under:?}");
        let create = move |services| -> Result<Box<dyn Backing>, BackingError> {
            let raw = under.bare(services)?;
            check(&*raw, raw.as_virtual_backing().unwrap());
            Ok(raw)
        };
        let host = Host::builder().limit(Domain::Host, LIMIT).with_backing("raw", create).load().unwrap();
        host.backing("raw").unwrap_or_else(|error| panic!("{error}"));
    }
}

fn reserve(backing: &dyn VirtualBacking, id: u64, bytes: u64) -> Result<api::Region, BackingError> {
    let (role, holder) = (MemoryRole::KvCache, HolderId::new(1));
    backing.reserve(&ReserveRequest { id: RegionId::new(id), bytes, align: PAGE, role, holder })
}

fn range(id: u64, offset: u64, bytes: u64) -> [CommitRange; 1] {
    [CommitRange::new(RegionId::new(id), offset, bytes)]
}

#[test]
fn a_range_that_is_not_whole_granules_drops_nothing_of_its_neighbours() {
    with_raw(|_, backing| {
        let region = reserve(backing, 1, 8 * PAGE).unwrap();
        backing.commit(&range(1, 0, 8 * PAGE)).unwrap();
        let odd = [(1, PAGE), (PAGE, 1), (PAGE / 2, PAGE), (0, 0), (8 * PAGE, PAGE), (7 * PAGE, 2 * PAGE)];
        let overflowing = [(u64::MAX - PAGE + 1, PAGE), (PAGE, u64::MAX - PAGE + 1), (u64::MAX, u64::MAX)];
        for (offset, bytes) in odd.into_iter().chain(overflowing) {
            for outcome in [backing.decommit(&range(1, offset, bytes)), backing.commit(&range(1, offset, bytes))] {
                assert_eq!(outcome.unwrap_err().kind(), api::ErrorKind::InvalidRequest, "{offset}, {bytes}");
            }
            assert_eq!(open_bytes(region.base, 8 * PAGE), 8 * PAGE, "{offset}, {bytes}");
        }
        backing.decommit(&range(1, 3 * PAGE, PAGE)).unwrap();
        assert_eq!(open_bytes(region.base, 8 * PAGE), 7 * PAGE);
        assert_eq!(open_bytes(region.base.checked_add(3 * PAGE).unwrap(), PAGE), 0, "this granule and no other");
    });
}

#[test]
fn a_range_is_committed_once_and_decommitted_once() {
    with_raw(|_, backing| {
        let region = reserve(backing, 1, 4 * PAGE).unwrap();
        backing.commit(&range(1, PAGE, 2 * PAGE)).unwrap();
        for (offset, granules) in [(0, 2), (1, 1), (2, 2), (0, 4)] {
            let error = backing.commit(&range(1, offset * PAGE, granules * PAGE)).unwrap_err();
            assert_eq!(error.kind(), api::ErrorKind::AlreadyCommitted, "{offset}, {granules}");
        }
        for (offset, granules) in [(0, 1), (0, 2), (2, 2), (3, 1)] {
            let error = backing.decommit(&range(1, offset * PAGE, granules * PAGE)).unwrap_err();
            assert_eq!(error.kind(), api::ErrorKind::NotCommitted, "{offset}, {granules}");
        }
        let left = (backing.committed_bytes(RegionId::new(1)).unwrap(), open_bytes(region.base, 4 * PAGE));
        assert_eq!(left, (2 * PAGE, 2 * PAGE));
    });
}

#[test]
fn a_region_is_dead_after_its_release() {
    with_raw(|backing, growing| {
        reserve(growing, 1, 4 * PAGE).unwrap();
        growing.commit(&range(1, 0, PAGE)).unwrap();
        let target = ReleaseTarget::Region(RegionId::new(1));
        assert_eq!(backing.release(target), ReleaseOutcome::Complete);
        let ReleaseOutcome::Failed(error) = backing.release(target) else { panic!("is released twice") };
        assert_eq!(error.kind(), api::ErrorKind::UnknownId);
        let after = [
            growing.commit(&range(1, 0, PAGE)).unwrap_err(),
            growing.decommit(&range(1, 0, PAGE)).unwrap_err(),
            growing.cost(&range(1, 0, PAGE)).unwrap_err(),
            growing.committed_bytes(RegionId::new(1)).unwrap_err(),
        ];
        for error in after {
            assert_eq!(error.kind(), api::ErrorKind::UnknownId, "{error}");
        }
    });
}

#[test]
fn an_id_that_is_live_is_not_given_out_again() {
    with_raw(|backing, growing| {
        let region = reserve(growing, 1, PAGE).unwrap();
        assert_eq!(reserve(growing, 1, PAGE).unwrap_err().kind(), api::ErrorKind::InvalidRequest);
        let (role, holder) = (MemoryRole::Weights, HolderId::new(1));
        let request = AllocateRequest { id: AllocationId::new(1), bytes: 1, align: 1, role, holder };
        backing.allocate(&request).expect("regions and allocations are numbered apart");
        assert_eq!(backing.allocate(&request).unwrap_err().kind(), api::ErrorKind::InvalidRequest);
        growing.commit(&range(1, 0, PAGE)).unwrap();
        assert_eq!(open_bytes(region.base, PAGE), PAGE, "the first one still works");
    });
}

#[test]
fn the_host_uses_no_id_twice() {
    for (faults, host, backing) in faulty(LIMIT) {
        for _ in 0..50 {
            drop(host.buffer_set(&backing, 3, &BufferSpec::new(MIB)).unwrap());
            drop(host.allocate(&backing, &AllocationSpec::new(1)).unwrap());
        }
        let handed_out = faults.handed_out();
        let ids: HashSet<_> = handed_out.iter().map(|extent| extent.target).collect();
        assert_eq!((handed_out.len(), ids.len()), (200, 200));
    }
}

#[test]
fn each_policy_commits_what_it_says() {
    for (faults, host, backing) in faulty(LIMIT) {
        let lens = [1, 4, 5, 9, 17, 30].map(|granules| granules * PAGE);
        let cases = [
            (GrowthPolicy::Exact, [1, 4, 5, 9, 17, 30], 6),
            (GrowthPolicy::Step(8 * PAGE), [8, 8, 8, 16, 24, 32], 4),
            (GrowthPolicy::Step(7 * PAGE + 1), [8, 8, 8, 16, 24, 32], 4),
            (GrowthPolicy::Geometric, [1, 4, 8, 16, 32, 32], 5),
        ];
        for (policy, committed, calls) in cases {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(32 * PAGE).growth(policy)).unwrap();
            let before = faults.count(Call::Commit);
            for (len, granules) in lens.into_iter().zip(committed) {
                buffer.grow_to(len).unwrap();
                assert_eq!((buffer.committed(), used(&host)), (granules * PAGE, granules * PAGE), "{policy:?}, {len}");
            }
            assert_eq!(faults.count(Call::Commit) - before, calls, "{policy:?}");
        }
    }
}

#[test]
fn a_step_that_does_not_fit_the_budget_falls_back_to_what_is_needed() {
    for policy in [GrowthPolicy::Step(8 * PAGE), GrowthPolicy::Geometric] {
        for (_, host, backing) in faulty(10 * PAGE) {
            let mut buffer = host.buffer(&backing, &BufferSpec::new(64 * PAGE).growth(policy)).unwrap();
            buffer.grow_to(8 * PAGE).unwrap();
            buffer.grow_to(9 * PAGE).unwrap();
            assert_eq!((buffer.committed(), used(&host)), (9 * PAGE, 9 * PAGE), "{policy:?}");
            let error = buffer.grow_to(11 * PAGE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TierExhausted, "{policy:?}: {error}");
            let figures = error.tier_exhausted().unwrap_or_else(|| panic!("{policy:?}: no figures: {error}"));
            let seen = (figures.requested_bytes, figures.used_bytes, figures.limit_bytes);
            assert_eq!(seen, (2 * PAGE, 9 * PAGE, 10 * PAGE), "{policy:?}: the figures of what is needed");
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (9 * PAGE, 9 * PAGE, 9 * PAGE), "{policy:?}");
        }
    }
}

#[test]
fn shrinking_to_the_length_gives_back_what_a_policy_doubled_ahead() {
    for (_, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(GrowthPolicy::Geometric)).unwrap();
        buffer.grow_to(8 * PAGE).unwrap();
        buffer.grow_to(8 * PAGE + 1).unwrap();
        assert_eq!((buffer.committed(), used(&host)), (16 * PAGE, 16 * PAGE));
        buffer.shrink_to(12 * PAGE).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (8 * PAGE + 1, 12 * PAGE, 12 * PAGE));
        buffer.shrink_to(8 * PAGE + 1).unwrap();
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (8 * PAGE + 1, 9 * PAGE, 9 * PAGE));
    }
}

#[test]
fn a_buffer_that_grows_in_steps_shrinks_in_steps_and_keeps_nothing_when_empty() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB).growth(GrowthPolicy::Step(8 * PAGE))).unwrap();
        buffer.grow_to(17 * PAGE).unwrap();
        let calls = faults.count(Call::Decommit);
        for (len, kept) in [(16 * PAGE + 1, 24), (16 * PAGE, 16), (9 * PAGE, 16), (8 * PAGE, 8), (1, 8), (0, 0)] {
            buffer.shrink_to(len).unwrap();
            assert_eq!((buffer.len(), buffer.committed(), used(&host)), (len, kept * PAGE, kept * PAGE));
        }
        assert_eq!(faults.count(Call::Decommit) - calls, 3, "one call a step, none within one");
    }
}

#[test]
fn what_a_growth_would_cost_is_what_it_then_costs() {
    for rig in host_rigs() {
        for policy in [GrowthPolicy::Exact, GrowthPolicy::Step(8 * PAGE), GrowthPolicy::Geometric] {
            let spec = BufferSpec::new(MIB).growth(policy);
            let mut set = rig.host.buffer_set(&rig.backing, 3, &spec).unwrap();
            for len in [0, 1, PAGE, PAGE + 1, 40 * PAGE, 1] {
                let before = rig.used();
                let cost = set.growth_cost(len).unwrap();
                assert_eq!(rig.used(), before, "{}, {policy:?}: asking charges nothing", rig.name);
                set.grow_to(len).unwrap();
                let grown = rig.used() - before;
                assert_eq!((cost.owned_bytes, cost.mapped_bytes), (grown, grown), "{policy:?}, {len}");
            }
            assert_eq!(set.growth_cost(MIB + 1).unwrap_err().kind(), ErrorKind::CapacityExceeded, "{}", rig.name);
        }
    }
}

#[test]
fn the_planes_of_a_set_grow_together_and_keep_their_own_bytes() {
    for rig in host_rigs() {
        let mut set = rig.host.buffer_set(&rig.backing, 5, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(3 * rig.granule).unwrap();
        for plane in 0..5 {
            set.plane_mut(plane).unwrap().fill(u8::try_from(plane).unwrap() + 1);
        }
        set.grow_to(4 * rig.granule).unwrap();
        assert_eq!((set.owned_bytes(), rig.used()), (20 * rig.granule, 20 * rig.granule), "{}", rig.name);
        for plane in 0..5 {
            let (old, new) = set.plane(plane).unwrap().split_at(usize::try_from(3 * rig.granule).unwrap());
            assert!(old.iter().all(|byte| usize::from(*byte) == plane + 1), "{}", rig.name);
            assert!(new.iter().all(|byte| *byte == 0), "{}", rig.name);
        }
        assert_eq!(set.plane(5).unwrap_err().kind(), ErrorKind::InvalidRequest, "{}", rig.name);
        assert_eq!(set.base(5), None, "{}", rig.name);
    }
}

#[test]
fn a_half_failed_shrink_leaves_no_length_past_what_is_committed() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(16 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(6);
        faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        let error = buffer.shrink_to(4 * PAGE).unwrap_err();
        assert!(error.to_string().contains("40960 of 65536 bytes stay charged"), "{error}");
        assert_eq!((buffer.len(), buffer.committed(), used(&host)), (10 * PAGE, 10 * PAGE, 10 * PAGE));
        assert_eq!(open_bytes(buffer.base(), MIB), 10 * PAGE);
        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 6));
        buffer.grow_to(16 * PAGE).unwrap();
        assert_eq!(
            (open_bytes(buffer.base(), MIB), used(&host)),
            (16 * PAGE, 16 * PAGE),
            "growing again really commits"
        );
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(10 * 4096);
        assert!(kept.iter().all(|byte| *byte == 6) && fresh.iter().all(|byte| *byte == 0));
    }
}

/// Four planes of 16 granules whose shrink to 4 failed half-way: two were left 10 granules, two were left 4.
fn uneven(faults: &Faults, host: &Host, backing: &BackingHandle) -> leasehold::BufferSet {
    let mut set = host.buffer_set(backing, 4, &BufferSpec::new(MIB)).unwrap();
    set.grow_to(16 * PAGE).unwrap();
    for plane in 0..4 {
        set.plane_mut(plane).unwrap().fill(8);
    }
    faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
    set.shrink_to(4 * PAGE).unwrap_err();
    assert_eq!((set.len(), set.committed(), set.owned_bytes()), (4 * PAGE, 4 * PAGE, 28 * PAGE));
    assert_eq!((used(host), faults.held().owned_bytes), (28 * PAGE, 28 * PAGE));
    set
}

#[test]
fn uneven_planes_grow_even_again() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = uneven(&faults, &host, &backing);
        for (granules, total) in [(6, 32), (10, 40), (16, 64)] {
            set.grow_to(granules * PAGE).unwrap();
            assert_eq!((set.committed(), set.owned_bytes()), (granules * PAGE, total * PAGE), "{granules}");
            assert_eq!((used(&host), faults.held().owned_bytes), (total * PAGE, total * PAGE), "{granules}");
        }
        for plane in 0..4 {
            let (kept, fresh) = set.plane(plane).unwrap().split_at(4 * 4096);
            assert!(kept.iter().all(|byte| *byte == 8), "plane {plane}");
            assert!(fresh.iter().all(|byte| [0, 8].contains(byte)), "plane {plane}: zero, or its own bytes");
        }
    }
}

#[test]
fn a_failed_shrink_that_is_called_again_gives_the_rest_back() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = uneven(&faults, &host, &backing);
        set.shrink_to(4 * PAGE).unwrap();
        assert_eq!((set.len(), set.owned_bytes()), (4 * PAGE, 16 * PAGE));
        assert_eq!((used(&host), faults.held().owned_bytes), (16 * PAGE, 16 * PAGE));
    }
}

#[test]
fn a_shrink_of_which_nobody_can_tell_what_is_left_shows_no_byte_that_may_be_gone() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(16 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(6);
        faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        faults.plan(Call::CommittedBytes, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        buffer.shrink_to(4 * PAGE).unwrap_err();
        let charged = if leases(&backing) { 16 } else { 10 };
        assert_eq!(used(&host), charged * PAGE, "nothing is refunded that may still be held");
        assert_eq!((buffer.len(), buffer.committed()), (4 * PAGE, 4 * PAGE), "what is there for certain");
        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 6));
        let error = buffer.grow_to(16 * PAGE).unwrap_err();
        assert_eq!((error.kind(), buffer.len()), (ErrorKind::Backing, 4 * PAGE), "{error}");
        assert_eq!(buffer.shrink_to(PAGE).unwrap_err().kind(), ErrorKind::Backing);
        faults.heal();
        buffer.grow_to(16 * PAGE).unwrap();
        assert_eq!((open_bytes(buffer.base(), MIB), used(&host)), (16 * PAGE, 16 * PAGE));
        let (kept, fresh) = buffer.as_slice().unwrap().split_at(10 * 4096);
        assert!(kept.iter().all(|byte| *byte == 6) && fresh.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn closing_gives_everything_back_and_says_what_it_could_not() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(PAGE).unwrap();
        set.close().unwrap();
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
        let mut set = host.buffer_set(&backing, 2, &BufferSpec::new(MIB)).unwrap();
        set.grow_to(2 * PAGE).unwrap();
        faults.plan(Call::Release, 1, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
        let error = set.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
        assert!(error.to_string().contains("8192 bytes stay charged: call reap() to try again"), "{error}");
        assert_eq!((used(&host), faults.held().regions), (2 * PAGE, 1), "the other plane is given back");
        let report = host.reap();
        assert_eq!((report.released, report.remaining, report.remaining_bytes), (1, 0, 0));
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
    }
}

#[test]
fn closing_half_way_names_what_stays_charged() {
    for (faults, host, backing) in faulty(LIMIT) {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(8 * PAGE).unwrap();
        faults.plan(Call::Release, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        let error = buffer.close().unwrap_err();
        assert_eq!((used(&host), faults.held().owned_bytes), (4 * PAGE, 4 * PAGE));
        assert!(error.to_string().contains("16384 bytes stay charged"), "{error}");
        assert_eq!(host.reap().released, 1);
        assert_eq!((used(&host), faults.held()), (0, Default::default()));
    }
}

#[test]
fn memory_that_the_cpu_can_not_touch_is_no_slice() {
    let create = |services| -> Result<Box<dyn Backing>, BackingError> { Ok(Box::new(Far(host_mmap(services)?))) };
    let host = Host::builder().limit(Domain::Host, LIMIT).with_backing("far", create).load().unwrap();
    let backing = host.backing("far").unwrap();
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(MIB).unwrap();
    let mut allocation = host.allocate(&backing, &AllocationSpec::new(MIB)).unwrap();
    let refusals = [
        buffer.as_slice().unwrap_err(),
        buffer.as_mut_slice().unwrap_err(),
        allocation.as_slice().unwrap_err(),
        allocation.as_mut_slice().unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

/// host-mmap that says of its memory that the CPU can't touch it.
struct Far(Box<dyn Backing>);

impl Backing for Far {
    fn describe(&self) -> Description {
        Description { host_access: HostAccess::NONE, ..self.0.describe() }
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<api::Allocation, BackingError> {
        self.0.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.0.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        self.0.as_virtual_backing()
    }
}

#[test]
fn two_buffers_grow_and_shrink_on_two_threads() {
    for rig in host_rigs() {
        let work = |mark: u8| {
            let mut buffer = rig.host.buffer(&rig.backing, &BufferSpec::new(4 * MIB)).unwrap();
            for round in 1..100 {
                buffer.grow_to(round * 37 * 1000).unwrap();
                buffer.as_mut_slice().unwrap().fill(mark);
                buffer.shrink_to(round * 1000).unwrap();
                assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == mark), "{}", rig.name);
            }
            buffer
        };
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| work(1));
            let right = work(2);
            (left.join().unwrap(), right)
        });
        assert_eq!(rig.used(), left.committed() + right.committed(), "{}", rig.name);
    }
}

#[test]
fn a_buffer_that_shrinks_leaves_its_neighbours_bytes() {
    for rig in host_rigs() {
        let make = || rig.host.buffer(&rig.backing, &BufferSpec::new(MIB)).unwrap();
        let mut buffers = [make(), make(), make()];
        for buffer in &mut buffers {
            buffer.grow_to(MIB).unwrap();
            buffer.as_mut_slice().unwrap().fill(4);
        }
        buffers[1].shrink_to(1).unwrap();
        for buffer in &buffers {
            assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 4), "{}", rig.name);
        }
    }
}

#[test]
fn a_buffer_outlives_its_host() {
    for (faults, host, backing) in faulty(GIB) {
        let governor = host.governor();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        drop((host, backing));
        buffer.grow_to(MIB).unwrap();
        buffer.as_mut_slice().unwrap().fill(1);
        let used = || governor.snapshot().domain(Domain::Host).unwrap().used_bytes;
        assert_eq!(used(), MIB);
        drop(buffer);
        assert_eq!((used(), faults.held()), (0, Default::default()));
    }
}

/// The system hands an address out again the moment that it is given back: another thread's region may have it before
/// this thread's release has returned.
#[test]
fn regions_that_threads_make_and_drop_never_count_as_overlapping() {
    for rig in host_rigs() {
        let work = |round: u64| {
            let spec = BufferSpec::new(64 * PAGE);
            let mut buffer = rig.host.buffer(&rig.backing, &spec).unwrap();
            buffer.grow_to((1 + round % 8) * PAGE).unwrap();
            buffer.as_mut_slice().unwrap().fill(1);
            drop(rig.host.allocate(&rig.backing, &AllocationSpec::new(PAGE)).unwrap());
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..400).for_each(work));
            }
        });
        assert_eq!(rig.host.backings()[0].state, leasehold::BackingState::Ready, "{}", rig.name);
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

/// The same when a backing ends, and unmaps what it could not release before.
#[test]
fn a_backing_that_ends_with_regions_in_quarantine_makes_nobody_elses_count_as_overlapping() {
    let end_one = |under: Under| {
        let faults = Faults::new();
        let host = under.host(&faults, LIMIT);
        let backing = host.backing("faulty").unwrap();
        let mut set = host.buffer_set(&backing, 8, &BufferSpec::new(64 * PAGE)).unwrap();
        if under.shares() {
            // Held by what is in quarantine alone.
            let prefix = host.prefix(&backing, &PrefixSpec::new(8 * PAGE).planes(8)).unwrap().seal().unwrap();
            set.map_prefix(&prefix).unwrap();
        }
        faults.plan(Call::Release, 0, Strikes::Always, Fault::Refuse(api::ErrorKind::Internal));
        drop(set);
    };
    for rig in host_rigs() {
        let reserve = || drop(rig.host.buffer(&rig.backing, &BufferSpec::new(64 * PAGE)).unwrap());
        std::thread::scope(|scope| {
            for under in Under::EXACT {
                scope.spawn(move || (0..200).for_each(|_| end_one(under)));
                scope.spawn(|| (0..2000).for_each(|_| reserve()));
            }
        });
        assert_eq!(rig.host.backings()[0].state, leasehold::BackingState::Ready, "{}", rig.name);
    }
}

#[test]
fn an_allocation_is_copied_in_and_out_and_never_past_its_end() {
    for rig in all_rigs() {
        let mut made = rig.host.allocate(&rig.backing, &AllocationSpec::new(1000)).unwrap();
        made.write(990, b"the end...").unwrap();
        made.fill(0, 10, 7).unwrap();
        let mut seen = [1; 20];
        made.read(980, &mut seen).unwrap();
        assert_eq!((&seen[..10], &seen[10..]), (&[0; 10][..], &b"the end..."[..]), "{}", rig.name);
        made.read(9, &mut seen[..2]).unwrap();
        assert_eq!(seen[..2], [7, 0], "{}", rig.name);
        for (offset, bytes) in [(991, 10), (1001, 0), (u64::MAX, 1)] {
            let refused = [made.write(offset, &seen[..bytes]), made.fill(offset, u64::try_from(bytes).unwrap(), 1)];
            for error in refused.into_iter().chain([made.read(offset, &mut [0; 20][..bytes])]).map(Result::unwrap_err) {
                assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{}: {error}", rig.name);
                let words = format!("not copied: {bytes} bytes at offset {offset} pass the allocation's 1000 bytes");
                assert!(error.to_string().contains(&words), "{}: {error}", rig.name);
            }
        }
    }
}
