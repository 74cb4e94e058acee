//! Backings without their device, and those that the host cannot start without.

use crate::{ROGUE, assert_works, report, rogue};
use leasehold::{BackingState, ErrorKind};
use leasehold_tests::plugins::{self, Registry};

#[test]
fn a_backing_without_its_device_is_unavailable_with_the_reason() {
    for (door, library) in plugins::doors(ROGUE) {
        let host = Registry::new()
            .backing("absent", &library, "backing = \"unavailable\"")
            .backing("present", &library, "backing = \"ledgered\"")
            .builder()
            .load()
            .expect("it stops nobody");
        let absent = report(&host, "absent");
        let reason = "no rogue device: /dev/rogue0 is not there; install the rogue driver";
        assert_eq!(absent.state, BackingState::Unavailable { reason: reason.to_owned() });
        assert_eq!(absent.door, Some(door), "it was loaded");
        let error = host.backing("absent").expect_err("is not handed out");
        assert_eq!(error.to_string(), format!("backing \"absent\" is unavailable: {reason}"));
        assert_works(&host, "present");
    }
}

#[test]
fn a_required_backing_that_is_not_ready_stops_the_host_and_a_survey_still_tells_of_all() {
    let absent = "backing = \"unavailable\"\nrequired = true";
    let missing = "required = true";
    let disabled = "backing = \"liar\"\nrequired = true\nenabled = false";
    for (lines, library, words) in [
        (absent, rogue(), "is unavailable: no rogue device"),
        (missing, "leasehold_nowhere".to_owned(), "is rejected: no such library"),
        (disabled, rogue(), "is disabled: enabled = false"),
    ] {
        let registry =
            Registry::new().backing("needed", &library, lines).backing("other", &rogue(), "backing = \"ledgered\"");
        let error = registry.builder().load().expect_err("the host does not start");
        assert_eq!(error.kind(), ErrorKind::RequiredBacking);
        assert!(error.to_string().starts_with(&format!("required backing \"needed\" {words}")), "{error}");
        let host = registry.host();
        assert!(report(&host, "needed").required && report(&host, "needed").state != BackingState::Ready);
        assert_works(&host, "other");
        assert_eq!(host.check_required().expect_err("still").kind(), ErrorKind::RequiredBacking);
    }
}
