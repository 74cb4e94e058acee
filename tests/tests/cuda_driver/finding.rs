//! Where the driver is, what is wrong with it, and no panic.

use leasehold_cuda_driver::Driver;
use leasehold_plugin_api::{BackingError, ErrorKind};
use leasehold_tests::child::in_child;
use leasehold_tests::cuda::{Lasting, Simulator};
use leasehold_tests::plugins::library;
use std::fs;
use std::path::{Path, PathBuf};

/// A refusal of the kind `Unavailable`, short enough to cross whole, with these words.
#[track_caller]
fn assert_unavailable(outcome: Result<Driver, BackingError>, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().len() <= 440, "{} bytes: {error}", error.message().len());
    for word in words {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
}

/// Where a text is in a file.
fn places(bytes: &[u8], text: &[u8]) -> Vec<usize> {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == text[0]);
    starts.map(|(at, _)| at).filter(|at| bytes[*at..].starts_with(text)).collect()
}

/// A copy of the simulator in which a text is changed to another one of the same length.
pub(super) fn changed_simulator(folder: &Path, from: &str, to: &str) -> PathBuf {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(Simulator::path()).unwrap();
    let from = [from.as_bytes(), b"\0"].concat();
    let places = places(&bytes, &from);
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    let path = folder.join("libcuda.so.1");
    fs::write(&path, bytes).unwrap();
    path
}

/// A number of so many bytes in a file.
fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

/// A copy of the simulator whose `SONAME` is `libcuda.so.1`, as a driver's is. The new name replaces that of a function that
/// no driver has. System V Application Binary Interface, chapters 4 and 5.
fn simulator_named_as_drivers_are(folder: &Path) -> PathBuf {
    const NAME: &[u8] = b"libcuda.so.1\0";
    let mut bytes = fs::read(Simulator::path()).unwrap();
    let headers = (0..number(&bytes, 56, 2)).map(|index| number(&bytes, 32, 8) + index * number(&bytes, 54, 2));
    let dynamic = headers.into_iter().find(|at| number(&bytes, *at, 4) == 2).unwrap();
    let (begin, end) = (number(&bytes, dynamic + 8, 8), number(&bytes, dynamic + 32, 8));
    let entry = |tag| (begin..begin + end).step_by(16).find(|at| number(&bytes, *at, 8) == tag).unwrap();
    // It is in the first segment, where offsets are addresses.
    let (names, size, soname) = (number(&bytes, entry(5) + 8, 8), number(&bytes, entry(10) + 8, 8), entry(14) + 8);
    assert!(bytes[names + number(&bytes, soname, 8)..].starts_with(b"libcuda.so\0"));
    let given_up = b"leasehold_sim_plan_halfway\0";
    let at = (0..size).find(|at| bytes[names + at..].starts_with(given_up)).unwrap();
    bytes[names + at..names + at + NAME.len()].copy_from_slice(NAME);
    bytes[soname..soname + 8].copy_from_slice(&u64::try_from(at).unwrap().to_le_bytes());
    let path = folder.join("driver");
    fs::write(&path, bytes).unwrap();
    path
}

/// A copy of the simulator with some `SONAME` that is as the toolkit's stub: `cuInit` fails with 34, where the environment has
/// [`STUB`].
fn stub(folder: &Path, name: &str, from: &Path) -> PathBuf {
    let mut bytes = fs::read(from).unwrap();
    let variable = b"LEASEHOLD_SIM_PLAN";
    let places = places(&bytes, variable);
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + variable.len()].copy_from_slice(STUB.0.as_bytes());
    }
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

const STUB: (&str, &str) = ("LEASEHOLD_SIM_STUB", "cuInit 1 34 on");

/// Whether a file is loaded in this process.
fn is_loaded(path: &Path) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| line.ends_with(path.to_str().unwrap()))
}

/// Whether this is the child, in which a folder is where libraries are looked for first, and stubs are stubs.
fn in_child_of(name: &str, folder: &Path) -> bool {
    in_child(name, &[("LD_LIBRARY_PATH", folder.to_str().unwrap()), STUB])
}

/// The folder where libraries are looked for first.
fn searched() -> PathBuf {
    PathBuf::from(std::env::var("LD_LIBRARY_PATH").unwrap())
}

/// Seen elsewhere: a toolkit's `libcuda.so`, a stub, was taken though the driver was loaded.
#[test]
fn the_driver_that_is_loaded_comes_before_a_stub() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::the_driver_that_is_loaded_comes_before_a_stub", folder.path()) {
        return;
    }
    let folder = searched();
    let stubs = ["libcuda.so", "libcuda.so.1"].map(|name| stub(&folder, name, &Simulator::path()));
    let loaded = simulator_named_as_drivers_are(&folder);
    Simulator::load(&loaded);
    assert_eq!(Driver::open(None).unwrap().device_count(), 2);
    assert!(is_loaded(&loaded) && !stubs.iter().any(|stub| is_loaded(stub)));
}

#[test]
fn libcuda_so_1_comes_before_libcuda_so() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::libcuda_so_1_comes_before_libcuda_so", folder.path()) {
        return;
    }
    let folder = searched();
    let stub = stub(&folder, "libcuda.so", &Simulator::path());
    fs::rename(simulator_named_as_drivers_are(&folder), folder.join("libcuda.so.1")).unwrap();
    assert_eq!(Driver::open(None).unwrap().device_count(), 2);
    assert!(is_loaded(&folder.join("libcuda.so.1")) && !is_loaded(&stub));
}

#[test]
fn a_stub_is_passed_over_for_the_next_name() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::a_stub_is_passed_over_for_the_next_name", folder.path()) {
        return;
    }
    let folder = searched();
    let stub = stub(&folder, "libcuda.so.1", &simulator_named_as_drivers_are(&folder));
    fs::copy(Simulator::path(), folder.join("libcuda.so")).unwrap();
    assert_eq!(Driver::open(None).unwrap().device_count(), 2);
    assert!(!is_loaded(&stub), "it is closed again");
    assert_eq!(Driver::open(None).unwrap().device_count(), 2, "from then on it is the one of the process");
}

#[test]
fn where_only_a_stub_is_found_its_path_is_named() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::where_only_a_stub_is_found_its_path_is_named", folder.path()) {
        return;
    }
    let folder = searched();
    let driver = simulator_named_as_drivers_are(&folder);
    let stubs = ["libcuda.so", "libcuda.so.1"].map(|name| stub(&folder, name, &driver));
    let outcome = Driver::open(None);
    assert_eq!(outcome.as_ref().unwrap_err().native_code(), Some(34));
    assert_unavailable(outcome, &[stubs[1].to_str().unwrap(), "is the toolkit's stub", "LD_LIBRARY_PATH", "`driver`"]);
    assert_unavailable(Driver::open(Some(&stubs[0])), &[stubs[0].to_str().unwrap(), "is the toolkit's stub"]);
    assert_eq!(Driver::open(Some(&driver)).unwrap().device_count(), 2, "no stub is in its way");
}

/// What a program may be linked with can't be closed, and has the driver's name.
#[test]
fn a_stub_that_is_loaded_already_is_named() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::a_stub_that_is_loaded_already_is_named", folder.path()) {
        return;
    }
    let folder = searched();
    let stub = stub(&folder, "linked", &simulator_named_as_drivers_are(&folder));
    Simulator::load(&stub);
    assert_unavailable(Driver::open(None), &[stub.to_str().unwrap(), "is the toolkit's stub"]);
}

#[test]
fn a_named_driver_is_taken_though_none_is_found() {
    let folder = tempfile::tempdir().unwrap();
    if !in_child_of("finding::a_named_driver_is_taken_though_none_is_found", folder.path()) {
        return;
    }
    let folder = searched();
    for name in ["libcuda.so", "libcuda.so.1"] {
        fs::copy(library("leasehold_rogue"), folder.join(name)).unwrap();
    }
    assert_unavailable(Driver::open(None), &["lacks the symbol cuInit", "stub"]);
    let path = simulator_named_as_drivers_are(&folder);
    assert_eq!(Driver::open(Some(&path)).unwrap().device_count(), 2);
    assert_eq!(Driver::open(None).unwrap().device_count(), 2, "from then on it is the one of the process");
}

#[test]
fn without_a_driver_opening_answers_what_was_tried_and_what_to_install() {
    if !in_child("finding::without_a_driver_opening_answers_what_was_tried_and_what_to_install", &[]) {
        return;
    }
    match Driver::open(None) {
        Ok(_) => println!("skipped: this machine has a CUDA driver"),
        Err(error) if error.native_code().is_some() => println!("skipped: this machine has a CUDA driver: {error}"),
        outcome => {
            let words =
                ["no CUDA driver", "libcuda.so.1", "cannot open shared object file", "install the NVIDIA driver"];
            assert_unavailable(outcome, &words);
        }
    }
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let outcome = Driver::open(Some(Path::new("/nowhere/libcuda.so.1")));
    assert_unavailable(outcome, &["no CUDA driver at /nowhere/libcuda.so.1", "cannot open shared object file"]);
}

#[test]
fn a_library_that_is_no_driver_is_refused_by_the_first_symbol_that_it_lacks() {
    let outcome = Driver::open(Some(&library("leasehold_rogue")));
    assert_unavailable(outcome, &["libleasehold_rogue.so", "lacks the symbol cuInit;", "libcuda.so.1"]);
}

#[test]
fn a_driver_that_lacks_one_symbol_is_refused_with_its_version() {
    if !in_child("finding::a_driver_that_lacks_one_symbol_is_refused_with_its_version", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = changed_simulator(folder.path(), "cuMemSetAccess", "cuMemSetAccesz");
    assert_unavailable(Driver::open(Some(&path)), &["lacks the symbol cuMemSetAccess (it is of CUDA 12.8)"]);
}

#[test]
fn a_driver_whose_name_nobody_looks_for_is_refused() {
    if !in_child("finding::a_driver_whose_name_nobody_looks_for_is_refused", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = changed_simulator(folder.path(), "libcuda.so", "libcudb.so");
    assert_unavailable(Driver::open(Some(&path)), &["SONAME", "libcuda.so.1"]);
}

#[test]
fn a_second_driver_in_one_process_is_refused() {
    if !in_child("finding::a_second_driver_in_one_process_is_refused", &[]) {
        return;
    }
    let first = Driver::open(Some(&Simulator::path())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcuda.so.1");
    fs::copy(Simulator::path(), &path).unwrap();
    assert_unavailable(Driver::open(Some(&path)), &["is not the CUDA driver that this process uses", "fresh process"]);
    assert_eq!(first.device_count(), 2);
}

#[test]
fn once_opened_by_its_path_the_simulator_is_what_is_found_by_name() {
    if !in_child("finding::once_opened_by_its_path_the_simulator_is_what_is_found_by_name", &[]) {
        return;
    }
    let simulator = Simulator::start();
    assert_eq!(Driver::open(None).unwrap().device_count(), 2);
    assert_eq!(simulator.count("cuInit"), 1);
    simulator.finish();
}

#[test]
fn a_driver_without_devices_is_unavailable() {
    let name = "finding::a_driver_without_devices_is_unavailable";
    if !in_child(name, &[("LEASEHOLD_SIM_DEVICES", "0")]) {
        return;
    }
    let outcome = Driver::open(Some(&Simulator::path()));
    assert_eq!(outcome.as_ref().unwrap_err().native_code(), Some(100));
    assert_unavailable(outcome, &["of CUDA 12.8", "cuInit failed: CUDA_ERROR_NO_DEVICE (100)", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn what_initialising_answers_comes_with_advice() {
    let simulator = Simulator::start();
    let advice = [
        (3, "forked after CUDA was initialised"),
        (34, "stub"),
        (802, "fabric manager"),
        (803, "reboot"),
        (804, "compatibility"),
        (810, "MPS server ended"),
        (999, "nvidia-smi"),
    ];
    for (code, word) in advice {
        simulator.plan("cuInit", 1, Lasting::Once, code);
        let outcome = Driver::open(Some(&Simulator::path()));
        assert_unavailable(outcome, &["cuInit failed: CUDA_ERROR_", &format!("({code})"), word]);
    }
    simulator.plan("cuDeviceGetCount", 1, Lasting::Once, 999);
    assert_unavailable(Driver::open(Some(&Simulator::path())), &["cuDeviceGetCount failed: CUDA_ERROR_UNKNOWN (999)"]);
    simulator.plan("cuInit", 1, Lasting::Once, 4_000_000_000);
    assert_unavailable(Driver::open(Some(&Simulator::path())), &["cuInit failed: CUresult (4000000000)"]);
    simulator.finish();
}
