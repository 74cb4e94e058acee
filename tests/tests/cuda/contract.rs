//! What the contract asks of every backing, asked of both, linked in and through the interfaces of their libraries, from a
//! registry file that names the simulator.

use super::setup::{DEVICE, LIMIT, simulator, used};
use leasehold_tests::conformance::{self, CASES, CUDA_VMM_LACKS, Capability, Report};
use leasehold_tests::cuda::Simulator;
use leasehold_tests::plugins::{Registry, doors, text};

/// The reports of a backing of that crate through both doors. `line` is an option.
fn conforming(name: &str, crate_name: &str, line: &str, lacks: &'static [(Capability, &'static str)]) -> [Report; 2] {
    doors(crate_name).map(|(door, library)| {
        let options = format!("required = true\n[backing.options]\ndriver = {:?}\n{line}\n", text(&Simulator::path()));
        let registry = Registry::new().backing(name, &library, &options);
        let (host, report) = conformance::of_host(registry.builder().limit(DEVICE, LIMIT), lacks)
            .unwrap_or_else(|why| panic!("{name}, {door:?}, {line}: {why}"));
        assert!(report.is_conforming(), "{name}, {door:?}, {line}: {report}");
        assert_eq!(used(&host), 0, "{name}, {door:?}, {line}");
        report
    })
}

#[test]
fn cuda_vmm_conforms() {
    let simulator = simulator();
    for line in ["handle = 1", "handle = 2"] {
        for report in conforming("cuda-vmm", "leasehold_cuda_vmm", line, &[CUDA_VMM_LACKS]) {
            let unsupported = CASES.iter().filter(|case| case.needs.contains(&Capability::SharedMapping)).count();
            assert_eq!(report.passed(), CASES.len() - unsupported, "{report}");
        }
    }
    simulator.finish();
}

#[test]
fn cuda_pool_conforms() {
    let simulator = simulator();
    for line in ["park = 0", "park = \"8 MiB\"", "park = \"1 GiB\""] {
        for report in conforming("cuda-pool", "leasehold_cuda_pool", line, &[]) {
            assert_eq!(report.passed(), CASES.len(), "{report}");
        }
    }
    simulator.finish();
}

/// What a driver answers to a reservation that there are no addresses for isn't documented: the backings answer the same.
#[test]
fn both_conform_whatever_the_driver_answers_where_there_are_no_addresses() {
    for refusal in [1, 304] {
        let simulator = simulator();
        simulator.set("address_refusal", refusal);
        conforming("cuda-vmm", "leasehold_cuda_vmm", "", &[CUDA_VMM_LACKS]);
        conforming("cuda-pool", "leasehold_cuda_pool", "", &[]);
        simulator.finish();
    }
}
