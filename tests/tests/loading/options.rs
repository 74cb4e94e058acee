//! Options, from the registry file to the backing.

use crate::{ROGUE, device_name, rejection, report};
use leasehold::{BackingState, Stage};
use leasehold_tests::plugins::{self, Registry};

#[test]
fn options_of_every_type_arrive() {
    for (door, library) in plugins::doors(ROGUE) {
        println!("over the door {door}");
        let lines = "backing = \"fussy\"\n[backing.options]\nsize = \"2 MiB\"\ncount = 3\nshare = 0.5\nstrict = true\n\
                     peers = [1, 2]";
        let host = Registry::new().backing("fussy", &library, lines).host();
        assert_eq!(device_name(&host, "fussy"), "size 2097152 count 3 share 0.5 strict true peers [1, 2]");
    }
}

#[test]
fn an_option_that_is_wrong_is_named_and_the_backing_rejected() {
    for (door, library) in plugins::doors(ROGUE) {
        println!("over the door {door}");
        let entry = |backing: &str, option: &str| format!("backing = {backing:?}\n[backing.options]\n{option}");
        let host = Registry::new()
            .backing("typo", &library, &entry("fussy", "siz = \"2 MiB\""))
            .backing("negative", &library, &entry("fussy", "count = -1"))
            .backing("not-a-size", &library, &entry("fussy", "size = \"two\""))
            .backing("not-a-list", &library, &entry("fussy", "peers = 1"))
            .backing("has-none", &library, &entry("ledgered", "any = 1"))
            .backing("right", &library, &entry("fussy", "size = \"2 MiB\""))
            .host();
        for (name, words) in [
            ("typo", "unknown field `siz`, expected one of `size`, `count`, `share`, `strict`, `peers`"),
            ("negative", "count"),
            ("not-a-size", "size"),
            ("not-a-list", "peers"),
            ("has-none", "unknown field `any`, there are no fields"),
        ] {
            let reason = rejection(&host, name, Stage::Create);
            assert!(reason.starts_with("options refused: ") && reason.contains(words), "{reason}");
            assert!(reason.ends_with("; correct [backing.options]"), "{reason}");
        }
        assert_eq!(report(&host, "right").state, BackingState::Ready);
    }
}
