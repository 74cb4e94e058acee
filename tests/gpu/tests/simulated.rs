//! The check itself, over the simulated driver: it measures and prints. What it prints is not looked at.

use leasehold_tests::cuda::Simulator;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Over a device of 1 GiB with granules of 64 KiB.
fn check(arguments: &[&str]) -> (i32, String, String) {
    check_on((1 << 10) * MIB, 64 << 10, arguments, "")
}

/// Over a device with that much memory in granules of that many bytes. With a planned failure: the function, which call of
/// it fails (1 is the first), and the code.
fn check_on(memory: u64, granule: u64, arguments: &[&str], plan: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-gpu-check"))
        .args(arguments)
        .env("LEASEHOLD_SIM_PLAN", plan)
        .env("LEASEHOLD_SIM_MEMORY", memory.to_string())
        .env("LEASEHOLD_SIM_GRANULARITY", granule.to_string())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn every_row_is_measured_but_those_of_graphs_and_kernels_that_the_simulator_lacks() {
    let driver = Simulator::path();
    let (code, table, said) = check(&["--driver", driver.to_str().unwrap(), "--growth", "4", "--size", "1"]);
    assert_eq!(code, 0, "{said}");
    assert!(table.contains("cuda-vmm: conformance | conforms") && table.contains("cuda-pool: conformance | conforms"));
    let missing: Vec<_> = table.lines().filter(|line| line.contains("not measured")).collect();
    let (kernels, graphs): (Vec<_>, Vec<_>) = missing.into_iter().partition(|row| row.contains("a kernel's store"));
    assert_eq!((kernels.len(), graphs.len()), (2, 12), "{table}");
    assert!(kernels.iter().all(|row| row.contains("the driver lacks cuModuleLoadData")), "{table}");
    for row in graphs {
        assert!(
            (row.contains("captured graph replays") || row.contains("captures a graph"))
                && row.contains("lacks cuStreamBeginCapture_v2"),
            "{table}"
        );
    }
    assert_eq!(table.lines().filter(|line| line.starts_with("| ")).count(), 28, "{table}");
}

#[test]
fn what_goes_wrong_is_in_the_table_and_in_the_status() {
    let driver = Simulator::path();
    let arguments = ["--driver", driver.to_str().unwrap(), "--growth", "4", "--size", "1"];
    for (plan, row) in
        [("cuMemMap 1 700", "cuda-vmm: conformance"), ("cuMemcpyDtoDAsync_v2 1 700", "a prefix of 1 MiB")]
    {
        let (code, table, said) = check_on((1 << 10) * MIB, 64 << 10, &arguments, plan);
        assert_eq!(code, 1, "{plan}: {said}");
        let wrong = table.lines().filter(|line| line.contains("**wrong**")).any(|line| line.contains(row));
        assert!(wrong, "{plan}: {table}");
        assert_eq!(table.lines().filter(|line| line.contains("captured graph")).count(), 8, "{plan}: {table}");
    }
}

#[test]
fn stores_into_what_is_sealed_are_refused() {
    let driver = Simulator::path();
    let (code, table, said) = check(&["--driver", driver.to_str().unwrap(), "--growth", "4", "--size", "1"]);
    assert_eq!(code, 0, "{said}");
    let refused = "refused, and the byte is as it was sealed: cuMemsetD8Async failed: CUDA_ERROR_INVALID_VALUE (1) |";
    let stores: Vec<_> = table.lines().filter(|line| line.starts_with("| a fill into a sealed prefix")).collect();
    assert_eq!(stores.len(), 2, "{table}");
    assert!(stores.iter().all(|row| row.ends_with(refused)), "{table}");
}

#[test]
fn a_child_that_stores_says_in_its_status_what_came_of_it() {
    let driver = Simulator::path();
    let store = |store, plan| {
        let arguments = ["--driver", driver.to_str().unwrap(), "--store", store];
        check_on((1 << 10) * MIB, 64 << 10, &arguments, plan)
    };
    let (code, said, _) = store("fill-of-window", "");
    assert_eq!(code, 0, "{said}");
    // The first store is the one that has to succeed, the prefix's zeroing is before it.
    let (code, said, _) = store("fill-of-mapping", "cuMemsetD8Async 2 1");
    assert_eq!((code, said.as_str()), (1, "cuMemsetD8Async failed: CUDA_ERROR_INVALID_VALUE (1)\n"));
    // The second is the one of sealing: it returns success, and does nothing.
    let (code, said, _) = store("fill-of-window", "cuMemSetAccess 2 0");
    assert_eq!(code, 2, "nothing can be sealed: {said}");
    assert!(said.contains("not sealed: cuMemSetAccess failed: CUDA_ERROR_NOT_SUPPORTED (801)"), "{said}");
    let (code, said, _) = store("kernel-into-mapping", "");
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with("the driver lacks cuModuleLoadData"), "{said}");
    let (code, said, _) = store("fill-of-mapping", "cuDevicePrimaryCtxRetain 1 46");
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with("no device to check: "), "{said}");
}

/// A device that says "read-only" and lets a store through.
#[test]
fn a_device_that_does_not_enforce_its_access_is_wrong() {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-gpu-check"))
        .args(["--driver", Simulator::path().to_str().unwrap(), "--store", "fill-of-window"])
        .env("LEASEHOLD_SIM_LETS_WRITE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), &*said), (Some(1), "it was let through, and the sealed byte is another\n"));
}

#[test]
fn sizes_are_whole_granules_that_are_free() {
    let driver = Simulator::path();
    let arguments = ["--driver", driver.to_str().unwrap(), "--growth", "5", "--size"];
    for (memory, size, growth, prefix) in [(302, "256", 4, 70), (1 << 10, "63", 4, 62), (1 << 10, "2", 4, 2)] {
        let arguments: Vec<_> = arguments.into_iter().chain([size]).collect();
        let (code, table, said) = check_on(memory * MIB, 2 * MIB, &arguments, "");
        assert_eq!(code, 0, "--size {size} of {memory} MiB: {said}");
        assert!(table.contains(&format!("| growth to {growth} MiB by 2048 KiB")), "{table}");
        assert!(table.contains(&format!("| a prefix of {prefix} MiB in a buffer | mapped")), "{table}");
        let calls = table.lines().find(|line| line.contains("| cuMemCreate |")).unwrap();
        assert!(calls.contains(&format!(", {} calls", prefix / 2)), "{calls}");
    }
}

#[test]
fn what_is_too_small_to_check_is_refused() {
    let driver = Simulator::path();
    let arguments = ["--driver", driver.to_str().unwrap(), "--size", "1"];
    let (code, table, said) = check_on((1 << 10) * MIB, 2 * MIB, &arguments, "");
    assert_eq!((code, table.as_str()), (2, ""));
    assert_eq!(said, "--size 1 is less than a granule of 2048 KiB; ask for 2 or more\n");
    let (code, table, said) = check_on(8 * MIB, 2 * MIB, &arguments, "");
    assert_eq!((code, table.as_str()), (2, ""));
    assert!(said.starts_with("too little memory: "), "{said}");
}

#[test]
fn without_a_device_it_says_so() {
    let (code, table, said) = check(&["--driver", "/nowhere/libcuda.so"]);
    assert_eq!((code, table.as_str()), (2, ""));
    assert!(said.contains("no device to check: no CUDA driver at /nowhere/libcuda.so"), "{said}");
}
