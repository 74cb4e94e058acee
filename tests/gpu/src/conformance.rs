//! What the contract asks of both backings, asked on the device.

use crate::hosts::Settings;
use crate::table::Table;
use leasehold::{Domain, Host};
use leasehold_plugin_api::{Backing, BackingError};
use leasehold_tests::conformance::{self, CASES, Capability};
use leasehold_tests::fault::linked_in;
use std::sync::mpsc;

const UNSHARED: &[(Capability, &str)] =
    &[(Capability::SharedMapping, "its handles go before their mapping, and are nobody's")];

/// Whether both conform.
pub(crate) fn measure(settings: &Settings, table: &mut Table) -> bool {
    let lacks: [(&str, &[(Capability, &str)]); 2] = [("cuda-vmm", UNSHARED), ("cuda-pool", &[])];
    let mut conforms = true;
    for (name, lacks) in lacks {
        let (sender, receiver) = mpsc::channel();
        let options = settings.options();
        let create = move |services| -> Result<Box<dyn Backing>, BackingError> {
            let backing = linked_in(name, &options, services)?;
            let _ = sender.send(conformance::run(&*backing, lacks));
            Ok(backing)
        };
        let domain = Domain::Device(settings.device.ordinal());
        let host = Host::builder().limit(domain, u64::MAX).with_backing("subject", create).load();
        let figure = match (host, receiver.recv()) {
            (Ok(_), Ok(report)) if report.is_conforming() => {
                format!("conforms: {} of {} cases passed, the others unsupported", report.passed(), CASES.len())
            }
            (_, Ok(report)) => {
                conforms = false;
                eprintln!("{report}");
                format!("does **not** conform: {} cases fail", report.failures().count())
            }
            (host, Err(_)) => {
                conforms = false;
                format!("not made: {:?}", host.map(|host| host.backings()))
            }
        };
        table.add(format!("{name}: conformance"), figure);
    }
    conforms
}
