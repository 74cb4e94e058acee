//! The check itself, over the simulated driver: it measures and prints. What it prints is not looked at.

use leasehold_tests::cuda::Simulator;
use std::process::Command;

fn check(arguments: &[&str]) -> (i32, String, String) {
    check_with(arguments, "")
}

/// With a planned failure: the function, which call of it fails (1 is the first), and the code.
fn check_with(arguments: &[&str], plan: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-gpu-check"))
        .args(arguments)
        .env("LEASEHOLD_SIM_PLAN", plan)
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
    assert_eq!(missing.len(), 2, "{table}");
    for row in missing {
        assert!(row.contains("captured graph") && row.contains("lacks cuStreamBeginCapture_v2"), "{table}");
    }
    assert_eq!(table.lines().filter(|line| line.starts_with("| ")).count(), 14, "{table}");
}

#[test]
fn what_goes_wrong_is_in_the_table_and_in_the_status() {
    let driver = Simulator::path();
    let arguments = ["--driver", driver.to_str().unwrap(), "--growth", "4", "--size", "1"];
    for (plan, row) in
        [("cuMemMap 1 700", "cuda-vmm: conformance"), ("cuMemcpyDtoDAsync_v2 1 700", "a prefix of 1 MiB")]
    {
        let (code, table, said) = check_with(&arguments, plan);
        assert_eq!(code, 1, "{plan}: {said}");
        let wrong = table.lines().filter(|line| line.contains("**wrong**")).any(|line| line.contains(row));
        assert!(wrong, "{plan}: {table}");
        assert_eq!(table.lines().filter(|line| line.contains("captured graph")).count(), 2, "{plan}: {table}");
    }
}

#[test]
fn without_a_device_it_says_so() {
    let (code, table, said) = check(&["--driver", "/nowhere/libcuda.so"]);
    assert_eq!((code, table.as_str()), (2, ""));
    assert!(said.contains("no device to check: no CUDA driver at /nowhere/libcuda.so"), "{said}");
}
