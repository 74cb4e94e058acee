//! The check itself, over the simulated driver: that it measures and prints, not what.

use leasehold_tests::cuda::Simulator;
use std::process::Command;

fn check(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-gpu-check"))
        .args(arguments)
        .env("LEASEHOLD_SIM_MEMORY", (1_u64 << 30).to_string())
        .env("LEASEHOLD_SIM_GRANULARITY", (64 << 10).to_string())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn every_row_is_measured_but_the_graph_that_the_simulator_lacks() {
    let driver = Simulator::path();
    let (code, table, said) = check(&["--driver", driver.to_str().unwrap(), "--growth", "4", "--size", "1"]);
    assert_eq!(code, 0, "{said}");
    assert!(table.contains("cuda-vmm: conformance | conforms") && table.contains("cuda-pool: conformance | conforms"));
    let missing: Vec<_> = table.lines().filter(|line| line.contains("not measured")).collect();
    assert_eq!(missing.len(), 1, "{table}");
    assert!(missing[0].contains("captured graph") && missing[0].contains("cuStreamCreate"), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("| ")).count(), 13, "{table}");
}

#[test]
fn without_a_device_it_says_so() {
    let (code, table, said) = check(&["--driver", "/nowhere/libcuda.so"]);
    assert_eq!((code, table.as_str()), (2, ""));
    assert!(said.contains("no device to check: no CUDA driver at /nowhere/libcuda.so"), "{said}");
}
