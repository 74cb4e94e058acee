//! What the contract asks of both backings, asked on the device.

use crate::hosts::Settings;
use crate::table::{Table, Trouble};
use leasehold_tests::conformance::{self, CASES, Capability};

const UNSHARED: &[(Capability, &str)] =
    &[(Capability::SharedMapping, "its handles go before their mapping, and are nobody's")];

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    let lacks: [(&str, &[(Capability, &str)]); 2] = [("cuda-vmm", UNSHARED), ("cuda-pool", &[])];
    for (name, lacks) in lacks {
        let figure = match conformance::of_host(settings.builder(name), lacks) {
            Ok((_, report)) if report.is_conforming() => {
                Ok(format!("conforms: {} of {} cases passed, the others unsupported", report.passed(), CASES.len()))
            }
            Ok((_, report)) => {
                eprintln!("{report}");
                Err(Trouble::Wrong(format!("{} cases fail", report.failures().count())))
            }
            Err(why) => Err(Trouble::Wrong(format!("not made: {why}"))),
        };
        table.add(format!("{name}: conformance"), figure);
    }
}
