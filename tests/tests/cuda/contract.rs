//! What the contract asks of every backing, asked of both.

use super::setup::{DEVICE, LIMIT, options, simulator};
use leasehold::Host;
use leasehold_plugin_api::{Backing, BackingError};
use leasehold_tests::conformance::{self, CASES, Capability, Report};
use leasehold_tests::fault::linked_in;
use std::sync::mpsc;

const UNSHARED: (Capability, &str) =
    (Capability::SharedMapping, "its handles go before their mapping, and are nobody's");

fn report(name: &'static str, pairs: &[(&str, &str)], lacks: &'static [(Capability, &'static str)]) -> Report {
    let options = options(pairs);
    let (sender, receiver) = mpsc::channel();
    let create = move |services| -> Result<Box<dyn Backing>, BackingError> {
        let backing = linked_in(name, &options, services)?;
        sender.send(conformance::run(&*backing, lacks)).unwrap();
        Ok(backing)
    };
    let host = Host::builder().limit(DEVICE, LIMIT).with_backing("subject", create).load().unwrap();
    receiver.recv().unwrap_or_else(|_| panic!("{:?}", host.backings()))
}

#[test]
fn cuda_vmm_conforms() {
    let simulator = simulator();
    for handle in ["1", "2"] {
        let report = report("cuda-vmm", &[("handle", handle)], &[UNSHARED]);
        assert!(report.is_conforming(), "{report}");
        let unsupported = CASES.iter().filter(|case| case.needs.contains(&Capability::SharedMapping)).count();
        assert_eq!(report.passed(), CASES.len() - unsupported, "{report}");
    }
    simulator.finish();
}

#[test]
fn cuda_pool_conforms() {
    let simulator = simulator();
    for park in ["0", "8 MiB", "1 GiB"] {
        let report = report("cuda-pool", &[("park", park)], &[]);
        assert!(report.is_conforming(), "{report}");
        assert_eq!(report.passed(), CASES.len(), "{report}");
    }
    simulator.finish();
}
