//! What the contract asks of both backings, asked on the device.

use crate::hosts::Settings;
use crate::table::Table;
use leasehold_tests::conformance::{self, CASES, Capability};

const UNSHARED: &[(Capability, &str)] =
    &[(Capability::SharedMapping, "its handles go before their mapping, and are nobody's")];

/// Whether both conform.
pub(crate) fn measure(settings: &Settings, table: &mut Table) -> bool {
    let lacks: [(&str, &[(Capability, &str)]); 2] = [("cuda-vmm", UNSHARED), ("cuda-pool", &[])];
    let mut conforms = true;
    for (name, lacks) in lacks {
        let figure = match conformance::of_host(settings.builder(name), lacks) {
            Ok((_, report)) if report.is_conforming() => {
                format!("conforms: {} of {} cases passed, the others unsupported", report.passed(), CASES.len())
            }
            Ok((_, report)) => {
                conforms = false;
                eprintln!("{report}");
                format!("does **not** conform: {} cases fail", report.failures().count())
            }
            Err(why) => {
                conforms = false;
                format!("not made: {why}")
            }
        };
        table.add(format!("{name}: conformance"), figure);
    }
    conforms
}
