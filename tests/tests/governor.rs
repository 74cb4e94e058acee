//! The governor under contention, under a lowered limit, and in words: what it refuses, it refuses with figures.

use leasehold::{
    AllocationSpec, BackingHandle, Buffer, BufferSpec, Domain, ErrorKind, Governor, Host, MemoryRole, Requirements,
    StepScope, Tier,
};
use leasehold_plugin_api as api;
use leasehold_tests::fault::{Books, Call, Fault, Faults, Strikes};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 * KIB;

fn governor(limit_bytes: u64) -> Governor {
    Governor::with_limits([(Domain::Host, limit_bytes)]).unwrap()
}

fn used(governor: &Governor) -> u64 {
    governor.snapshot().domain(Domain::Host).unwrap().used_bytes
}

fn faulty(limit_bytes: u64) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = faults.host(limit_bytes).unwrap();
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

#[test]
fn the_sum_of_the_leases_of_many_threads_never_passes_the_limit() {
    const LIMIT: u64 = 1000;
    let governor = governor(LIMIT);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let host = governor.snapshot().domain(Domain::Host).unwrap().clone();
                assert!(host.used_bytes <= LIMIT && host.peak_bytes <= LIMIT, "{host}");
            }
        });
        let workers: Vec<_> = (0..8_u64)
            .map(|thread| {
                let governor = &governor;
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..5000_u64 {
                        let bytes = (round * 31 + thread * 17) % 300;
                        match governor.lease(Domain::Host, bytes, MemoryRole::KvCache) {
                            Ok(lease) => held.push(lease),
                            Err(error) => {
                                let figures = *error.tier_exhausted().unwrap();
                                assert!(figures.used_bytes + bytes > LIMIT, "refused though it fitted: {figures:?}");
                                held.clear();
                            }
                        }
                    }
                })
            })
            .collect();
        // Everybody ends before anybody's failure is told, or the watcher would watch for ever.
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Release);
        watcher.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert_eq!(used(&governor), 0);
}

#[test]
fn of_many_threads_that_ask_at_once_exactly_as_many_are_granted_as_fit() {
    for _ in 0..50 {
        let governor = governor(10);
        let start = Barrier::new(8);
        let granted = std::thread::scope(|scope| {
            let ask = || {
                start.wait();
                governor.lease(Domain::Host, 3, MemoryRole::Weights).ok()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!((granted.len(), used(&governor)), (3, 9));
    }
}

#[test]
fn two_charges_that_do_not_fit_together_are_never_held_together() {
    let governor = governor(10);
    let holders = AtomicU64::new(0);
    let start = Barrier::new(4);
    let work = || {
        let mut lease = governor.lease(Domain::Host, 0, MemoryRole::KvCache).unwrap();
        start.wait();
        let mut granted = 0;
        for _ in 0..200_000 {
            if lease.grow(6).is_ok() {
                assert_eq!(holders.fetch_add(1, Ordering::AcqRel), 0, "12 of 10 bytes are held");
                granted += 1;
                holders.fetch_sub(1, Ordering::AcqRel);
                lease.shrink(6);
            }
        }
        granted
    };
    let granted: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(granted > 0);
    assert_eq!(used(&governor), 0);
}

#[test]
fn a_doomed_large_request_never_makes_a_small_one_fail() {
    let governor = governor(MIB);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let doomed = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                for bytes in [MIB + 1, u64::MAX / 2, u64::MAX] {
                    governor.lease(Domain::Host, bytes, MemoryRole::KvCache).unwrap_err();
                }
            }
        });
        let small = || governor.lease(Domain::Host, MIB, MemoryRole::KvCache).map(drop);
        let outcome = (0..100_000).try_for_each(|_| small());
        done.store(true, Ordering::Release);
        doomed.join().unwrap();
        outcome.expect("it has the budget to itself");
    });
}

#[test]
fn buffers_of_many_threads_are_exact_under_a_budget_that_is_too_small() {
    const LIMIT: u64 = 64 * PAGE;
    let (faults, host, backing) = faulty(LIMIT);
    let work = |thread: u64| {
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        for round in 1..200 {
            let wanted = (round * 7 + thread * 13) % 40 * PAGE;
            match buffer.grow_to(wanted) {
                Ok(()) => buffer.as_mut_slice().unwrap().fill(1),
                Err(error) => assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}"),
            }
            assert!(used(&host.governor()) <= LIMIT);
            buffer.shrink_to(wanted / 3).unwrap();
        }
        buffer
    };
    let buffers: Vec<Buffer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let committed: u64 = buffers.iter().map(Buffer::committed).sum();
    assert_eq!((used(&host.governor()), faults.held().owned_bytes), (committed, committed));
    drop(buffers);
    assert_eq!(used(&host.governor()), 0);
}

#[test]
fn a_failed_commit_leaves_nothing_charged() {
    let (faults, host, backing) = faulty(8 * PAGE);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    buffer.grow_to(5 * PAGE).unwrap_err();
    assert_eq!(used(&host.governor()), 0);
    buffer.grow_to(5 * PAGE).expect("the budget holds it once");
    let rest = host.governor().lease(Domain::Host, 3 * PAGE, MemoryRole::KvCache);
    assert_eq!(rest.expect("all the rest is there").bytes(), 3 * PAGE);
}

#[test]
fn memory_that_the_system_lacks_is_a_capacity_error_and_no_invalid_request() {
    let (faults, host, backing) = faulty(MIB);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    faults.plan(Call::Commit, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::OutOfMemory));
    let error = buffer.grow_to(PAGE).unwrap_err();
    assert_eq!((error.kind(), error.is_exhausted()), (ErrorKind::OutOfMemory, true), "{error}");
    assert_eq!(error.backing_error().unwrap().native_code(), Some(12));
}

#[test]
fn a_limit_lowered_below_what_is_in_use_takes_nothing_and_grants_nothing() {
    for books in [(|_| Books::OfTheBuffers) as fn(_) -> _, Books::OfItsHost] {
        let faults = Faults::new();
        let host = faults.host_with(16 * PAGE, books).unwrap();
        let backing = host.backing("faulty").unwrap();
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(10 * PAGE).unwrap();
        buffer.as_mut_slice().unwrap().fill(3);
        host.governor().set_limit(Domain::Host, 4 * PAGE).unwrap();

        let snapshot = host.snapshot().domain(Domain::Host).unwrap().clone();
        assert_eq!((snapshot.used_bytes, snapshot.limit_bytes), (10 * PAGE, 4 * PAGE), "nothing is taken");
        assert_eq!((snapshot.oversubscribed_bytes(), snapshot.available_bytes()), (6 * PAGE, 0));
        assert_eq!(snapshot.to_string(), "host: 40960 of 16384 bytes used, at most 40960, oversubscribed by 24576");

        let error = buffer.grow_to(11 * PAGE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
        assert_eq!(host.allocate(&backing, &AllocationSpec::new(1)).unwrap_err().kind(), ErrorKind::TierExhausted);
        let figures =
            *host.governor().lease(Domain::Host, 1, MemoryRole::KvCache).unwrap_err().tier_exhausted().unwrap();
        assert_eq!(figures.available_bytes(), 0, "and not 18 exabytes");

        assert!(buffer.as_slice().unwrap().iter().all(|byte| *byte == 3));
        buffer.shrink_to(9 * PAGE + 1).unwrap();
        buffer.grow_to(10 * PAGE).expect("within what is committed");
        host.buffer(&backing, &BufferSpec::new(MIB)).expect("address space is not budget");
        buffer.shrink_to(3 * PAGE).unwrap();
        assert_eq!(host.snapshot().domain(Domain::Host).unwrap().oversubscribed_bytes(), 0);
        buffer.grow_to(4 * PAGE).expect("there is room again");
        buffer.grow_to(5 * PAGE).unwrap_err();
    }
}

#[test]
fn a_refusal_tells_the_figures_that_it_was_made_on() {
    let (_, host, backing) = faulty(8 * PAGE);
    let spec = BufferSpec::new(MIB).role(MemoryRole::Workspace(StepScope::OneStep));
    let mut set = host.buffer_set(&backing, 2, &spec).unwrap();
    set.grow_to(3 * PAGE).unwrap();
    let figures = *set.grow_to(5 * PAGE).unwrap_err().tier_exhausted().unwrap();
    assert_eq!((figures.domain, figures.tier()), (Domain::Host, Tier::Host));
    assert_eq!(figures.role, MemoryRole::Workspace(StepScope::OneStep));
    assert_eq!((figures.requested_bytes, figures.used_bytes, figures.limit_bytes), (4 * PAGE, 6 * PAGE, 8 * PAGE));
    assert_eq!(figures.available_bytes(), 2 * PAGE);
}

#[test]
fn a_limit_that_is_raised_grants_what_was_refused() {
    let (_, host, backing) = faulty(PAGE);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(2 * PAGE).unwrap_err();
    host.governor().set_limit(Domain::Host, 2 * PAGE).unwrap();
    buffer.grow_to(2 * PAGE).unwrap();
}

#[test]
fn domains_are_charged_apart() {
    let governor = Governor::with_limits([(Domain::Host, 10), (Domain::Device(0), 20)]).unwrap();
    let _all = governor.lease(Domain::Host, 10, MemoryRole::KvCache).unwrap();
    let device = governor.lease(Domain::Device(0), 20, MemoryRole::KvCache).unwrap();
    assert_eq!((device.domain(), device.bytes()), (Domain::Device(0), 20));
    assert_ne!(governor.authority(Domain::Host), governor.authority(Domain::Device(0)));
    assert_eq!(governor.authority(Domain::Device(1)), None);
}

/// The words of every refusal: what failed, why (seen, wanted), what to do.
mod words {
    use super::*;

    fn refusal<T>(outcome: Result<T, leasehold::Error>) -> String {
        outcome.err().expect("is refused").to_string()
    }

    #[test]
    fn of_a_budget_that_is_used_up() {
        let (_, host, backing) = faulty(8 * PAGE);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(6 * PAGE).unwrap();
        assert_eq!(
            refusal(buffer.grow_to(9 * PAGE)),
            "backing \"faulty\": not grown: asks 12288 bytes on host for kv-cache, 8192 of 32768 left; lower the request \
             or raise budget.\"host\" in registry.toml"
        );
        assert_eq!(
            refusal(host.allocate(&backing, &AllocationSpec::new(3 * PAGE))),
            "backing \"faulty\": not allocated: asks 12288 bytes on host for workspace, 8192 of 32768 left; lower the \
             request or raise budget.\"host\" in registry.toml"
        );
        assert_eq!(
            refusal(host.governor().lease(Domain::Host, 3 * PAGE, MemoryRole::Weights)),
            "lease refused: asks 12288 bytes on host for weights, 8192 of 32768 left; lower the request or raise \
             budget.\"host\" in registry.toml"
        );
    }

    #[test]
    fn of_a_domain_without_books() {
        assert_eq!(
            refusal(governor(1).lease(Domain::Device(3), 1, MemoryRole::KvCache)),
            "domain device:3 has no books: no backing serves it and [budget] does not name it; name it in [budget] of \
             registry.toml"
        );
    }

    #[test]
    fn of_a_growth_past_the_capacity() {
        let (_, host, backing) = faulty(MIB);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(6912)).unwrap();
        assert_eq!(
            refusal(buffer.grow_to(8193)),
            "backing \"faulty\": not grown: asks 8193 bytes, the capacity is 8192; make the buffer with a larger \
             capacity, which costs address space only"
        );
    }

    #[test]
    fn of_other_books() {
        let faults = Faults::new();
        let elsewhere = leasehold::AuthorityId::from_bytes([0xAB; 16]);
        let host = faults.host_with(MIB, move |_| Books::Elsewhere(elsewhere)).unwrap();
        let ours = host.governor().authority(Domain::Host).unwrap();
        assert_eq!(
            refusal(host.buffer(&host.backing("faulty").unwrap(), &BufferSpec::new(1))),
            format!(
                "backing \"faulty\": not admitted: it keeps the books abababababababababababababababab of host, this \
                 governor keeps {ours}; use the host that created the backing, or let the backing charge through its \
                 host's services"
            )
        );
    }

    #[test]
    fn of_a_search_that_found_nothing() {
        let (_, host, _) = faulty(MIB);
        assert_eq!(
            refusal(host.find(&Requirements::growable().tier(Tier::Device))),
            "no backing fits: faulty is on host:0, not device; lower the requirements, or add a backing to registry.toml"
        );
        assert_eq!(
            refusal(host.find(&Requirements::growable().shared_mapping())),
            "no backing fits: faulty offers no shared-mapping; lower the requirements, or add a backing to registry.toml"
        );
        assert_eq!(
            refusal(host.backing("falty")),
            "no backing is called \"falty\": there are faulty; correct the name, or add the backing to registry.toml"
        );
    }

    #[test]
    fn of_a_backing_that_is_out_of_service() {
        let (faults, host, backing) = faulty(MIB);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        faults.plan(Call::Commit, 0, Strikes::Once, Fault::Panic);
        assert_eq!(
            refusal(buffer.grow_to(1)),
            "backing \"faulty\": commit failed: the plugin panicked: Commit panics as planned; the backing is out of \
             service from now on: use another, and report this to its author"
        );
        assert_eq!(
            refusal(buffer.grow_to(1)),
            "backing \"faulty\": commit refused: the backing is out of service: commit: the plugin panicked: Commit \
             panics as planned; use another backing, and report this to the plugin's author"
        );
        assert_eq!(
            refusal(host.backing("faulty")),
            "backing \"faulty\" is retired: commit: the plugin panicked: Commit panics as planned"
        );
    }

    #[test]
    fn of_a_shrink_and_a_release_that_failed() {
        let (faults, host, backing) = faulty(MIB);
        let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
        buffer.grow_to(8 * PAGE).unwrap();
        faults.plan(Call::Decommit, 0, Strikes::Once, Fault::HalfWay(api::ErrorKind::Internal));
        assert_eq!(
            refusal(buffer.shrink_to(2 * PAGE)),
            "not shrunk to 8192 bytes a plane: backing \"faulty\": decommit failed: Decommit fails as planned; 20480 of \
             32768 bytes stay charged: call shrink_to again"
        );
        faults.plan(Call::Release, 0, Strikes::Once, Fault::Refuse(api::ErrorKind::Internal));
        assert_eq!(
            refusal(buffer.close()),
            "backing \"faulty\": release failed: Release fails as planned; 20480 bytes stay charged: call reap() to try \
             again"
        );
    }

    #[test]
    fn of_specs_that_could_never_be_granted() {
        let (_, host, backing) = faulty(MIB);
        let words = |spec: BufferSpec| refusal(host.buffer(&backing, &spec));
        assert_eq!(
            words(BufferSpec::new(0)),
            "backing \"faulty\": buffer not made: a capacity of 0 bytes can hold nothing; ask for at least one"
        );
        assert_eq!(
            words(BufferSpec::new(1).align(3)),
            "backing \"faulty\": buffer not made: an alignment of 3 bytes is no power of two; ask for one"
        );
        assert_eq!(
            words(BufferSpec::new(u64::MAX)),
            "backing \"faulty\": buffer not made: a capacity of 18446744073709551615 bytes passes the address space; ask \
             for less"
        );
        assert_eq!(
            words(BufferSpec::new(1 << 47)),
            "backing \"faulty\": reserve failed: no address space for 140737488355328 bytes aligned to 4096: \
             mmap(PROT_NONE) failed: ENOMEM (12); ask for less, or raise the address space limit (ulimit -v, RLIMIT_AS) or \
             vm.max_map_count"
        );
        assert_eq!(
            refusal(host.allocate(&backing, &AllocationSpec::new(0))),
            "backing \"faulty\": allocation not made: an allocation of 0 bytes can hold nothing; ask for at least one"
        );
        assert_eq!(
            refusal(host.buffer_set(&backing, 0, &BufferSpec::new(1))),
            "backing \"faulty\": buffer not made: a set of 0 planes can hold nothing; ask for at least one"
        );
    }
}
