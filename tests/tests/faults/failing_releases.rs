//! Releases that all fail: the refusals name the quarantine, and the backing is retired.

use crate::{GRANULE, REFUSALS, alone};
use leasehold::{BackingHandle, Buffer, BufferSpec, Domain, ErrorKind, Host};
use leasehold_tests::fault::{Call, Fault, Faults, Strikes, Under};

/// As `docs/registry.md` says.
const FAILURES_UNTIL_RETIRED: u64 = 16;
const BUFFER: u64 = 64 * GRANULE;
/// A budget of fewer buffers than it takes to retire the backing.
const BUFFERS: u64 = 4;

const UNDER: [Under; 3] = [Under::MMAP, Under::CHARGING_MMAP, Under::POOL];

fn faulty(under: Under, limit: u64) -> (Faults, Host, BackingHandle) {
    let faults = Faults::new();
    let host = under.host(&faults, limit);
    let backing = host.backing("faulty").unwrap();
    (faults, host, backing)
}

fn fail_releases(faults: &Faults) {
    faults.plan(Call::Release, 0, Strikes::Always, REFUSALS[3]);
}

fn grown(host: &Host, backing: &BackingHandle, bytes: u64) -> Result<Buffer, leasehold::Error> {
    let mut buffer = host.buffer(backing, &BufferSpec::new(2 * BUFFER * BUFFERS))?;
    buffer.grow_to(bytes)?;
    Ok(buffer)
}

fn close_one(host: &Host, backing: &BackingHandle) {
    let error = grown(host, backing, GRANULE).unwrap().close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReleased, "{error}");
}

fn quarantined(host: &Host) -> u64 {
    host.snapshot().domain(Domain::Host).unwrap().quarantined_bytes
}

#[test]
fn a_refusal_names_what_is_in_quarantine_and_where() {
    let _alone = alone();
    for under in UNDER {
        let (faults, host, backing) = faulty(under, BUFFERS * BUFFER);
        fail_releases(&faults);
        for _ in 0..BUFFERS {
            grown(&host, &backing, BUFFER).unwrap().close().unwrap_err();
        }
        let error = grown(&host, &backing, BUFFER).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{under:?}: {error}");
        let words = "asks 262144 bytes on host for kv-cache, 0 of 1048576 left, 1048576 of them in quarantine after failed \
                     releases (\"faulty\": 1048576); call Host::reap() to release them, or restart the process";
        assert!(error.to_string().ends_with(words), "{under:?}: {error}");
        let figures = error.tier_exhausted().expect("has figures");
        assert_eq!(figures.quarantined_bytes(), BUFFERS * BUFFER, "{under:?}");
        assert_eq!(figures.quarantined[0].backing, "faulty", "{under:?}");
        assert_eq!(quarantined(&host), BUFFERS * BUFFER, "{under:?}");
        let shown = host.snapshot().to_string();
        assert!(shown.contains("1048576 of 1048576 bytes used, at most 1048576, 1048576 in quarantine"), "{shown}");

        faults.heal();
        assert_eq!(host.reap().remaining, 0, "{under:?}");
        assert_eq!(quarantined(&host), 0, "{under:?}");
        grown(&host, &backing, BUFFER).unwrap().close().unwrap();
    }
}

#[test]
fn a_request_too_large_after_reap_says_raise_budget() {
    let _alone = alone();
    let (faults, host, backing) = faulty(Under::MMAP, BUFFERS * BUFFER);
    fail_releases(&faults);
    grown(&host, &backing, BUFFER).unwrap().close().unwrap_err();
    let _live = grown(&host, &backing, 2 * BUFFER).unwrap();
    let words = |bytes| grown(&host, &backing, bytes).unwrap_err().to_string();
    assert!(words(2 * BUFFER).ends_with("release them, or restart the process"), "{}", words(2 * BUFFER));
    let both = "release them, or restart the process; and lower the request or raise budget.\"host\" in registry.toml";
    assert!(words(3 * BUFFER).ends_with(both), "{}", words(3 * BUFFER));
}

#[test]
fn a_backing_whose_releases_all_fail_is_retired() {
    let _alone = alone();
    for under in UNDER {
        let (faults, host, backing) = faulty(under, 1 << 30);
        fail_releases(&faults);
        for _ in 1..FAILURES_UNTIL_RETIRED {
            close_one(&host, &backing);
        }
        assert_eq!(host.backings()[0].state.name(), "ready", "{under:?}");
        close_one(&host, &backing);
        let state = &host.backings()[0].state;
        assert_eq!(state.name(), "retired", "{under:?}");
        let reason = state.reason().unwrap();
        assert!(reason.starts_with("16 releases in a row failed, the last: "), "{under:?}: {reason}");
        let remedy = "; what they hold stays charged: call Host::reap(), or restart the process";
        assert!(reason.ends_with(remedy), "{under:?}: {reason}");
        assert_eq!(grown(&host, &backing, GRANULE).unwrap_err().kind(), ErrorKind::OutOfService, "{under:?}");

        faults.heal();
        assert_eq!(host.reap().remaining, 0, "{under:?}: what it holds is still given back to it");
    }
}

#[test]
fn a_release_that_succeeds_ends_the_row_of_failures() {
    let _alone = alone();
    let (faults, host, backing) = faulty(Under::MMAP, 1 << 30);
    for _ in 0..3 {
        fail_releases(&faults);
        for _ in 1..FAILURES_UNTIL_RETIRED {
            close_one(&host, &backing);
        }
        faults.heal();
        grown(&host, &backing, GRANULE).unwrap().close().unwrap();
    }
    assert_eq!(host.backings()[0].state.name(), "ready");
}

#[test]
fn reaping_in_vain_retires_no_backing() {
    let _alone = alone();
    let (faults, host, backing) = faulty(Under::MMAP, 1 << 30);
    fail_releases(&faults);
    close_one(&host, &backing);
    for _ in 0..2 * FAILURES_UNTIL_RETIRED {
        assert_eq!(host.reap().remaining, 1);
    }
    assert_eq!((host.backings()[0].state.name(), quarantined(&host)), ("ready", GRANULE));
}

#[test]
fn a_release_in_two_steps_leaves_the_rest_in_quarantine() {
    let _alone = alone();
    let (faults, host, backing) = faulty(Under::MMAP, 1 << 30);
    faults.plan(Call::Release, 0, Strikes::Once, Fault::HalfWay(leasehold_plugin_api::ErrorKind::Internal));
    let buffer = grown(&host, &backing, 4 * GRANULE).unwrap();
    buffer.close().unwrap_err();
    let left = host.snapshot().domain(Domain::Host).unwrap().used_bytes;
    assert!(left > 0 && left < 4 * GRANULE, "{left}");
    assert_eq!(quarantined(&host), left);
    let governor = host.governor();
    drop((host, backing));
    let books = governor.snapshot();
    let books = books.domain(Domain::Host).unwrap();
    assert_eq!((books.used_bytes, books.quarantined_bytes), (0, 0), "the backing took it with it");
}
