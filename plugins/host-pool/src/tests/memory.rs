//! Reads and writes committed memory, and asks the kernel what is behind an address.
#![expect(unsafe_code, reason = "follows addresses that the backing under test handed out")]

use leasehold_plugin_api::Address;
use rustix::io::Errno;
use std::process::{Command, ExitStatus};

/// Writes `value` to every byte; the range is committed.
pub(super) fn fill(base: Address, offset: u64, bytes: u64, value: u8) {
    let start = base.checked_add(offset).unwrap().to_pointer::<u8>();
    // SAFETY: the test has committed the range and no other thread touches it.
    unsafe { start.write_bytes(value, usize::try_from(bytes).unwrap()) };
}

/// Whether every byte is `value`; the range is committed or a prefix.
pub(super) fn holds(base: Address, offset: u64, bytes: u64, value: u8) -> bool {
    let start = base.checked_add(offset).unwrap().to_pointer::<u8>();
    // SAFETY: the test has committed the range or mapped a prefix there, and nobody writes meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast_const(), usize::try_from(bytes).unwrap()) };
    bytes.iter().all(|byte| *byte == value)
}

/// The first byte of a committed range.
pub(super) fn first_byte(base: Address, offset: u64) -> u8 {
    let start = base.checked_add(offset).unwrap().to_pointer::<u8>();
    // SAFETY: the test has committed the range or mapped a prefix there, and nobody writes meanwhile.
    unsafe { start.read_volatile() }
}

/// What the kernel answers to whoever wants to write there.
pub(super) fn make_writable(base: Address, offset: u64, bytes: u64) -> Result<(), Errno> {
    let start = base.checked_add(offset).unwrap();
    // SAFETY: the range is a prefix of the test; more access breaks no reference.
    unsafe {
        rustix::mm::mprotect(
            start.to_pointer(),
            usize::try_from(bytes).unwrap(),
            rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE,
        )
    }
}

/// Maps pages of their own until the process has no mapping left.
pub(super) fn take_last_mappings() {
    let (access, kind) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    // SAFETY: the kernel chooses addresses that nothing has; the pages stay for the life of the process.
    while unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 4096, access, kind) }.is_ok() {}
}

/// What became of the child that runs `test` alone; `None` in that child itself.
///
/// For tests that spend something of the whole process, or end it.
pub(super) fn child(test: &str) -> Option<ExitStatus> {
    const CHILD: &str = "LEASEHOLD_TEST_CHILD";
    if std::env::var(CHILD).is_ok_and(|name| name == test) {
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = format!("tests::{test}");
    let output = child.args(["--exact", &name, "--nocapture", "--test-threads=1"]).env(CHILD, test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("running 1 test"), "there is no test {name}");
    Some(output.status)
}

/// One kernel mapping that reaches into a range: its permissions, and its proportional share of memory in bytes.
#[derive(Debug)]
pub(super) struct KernelMapping {
    pub(super) permissions: String,
    pub(super) pss_bytes: u64,
}

/// Kernel mappings that reach into the range, as `/proc/self/smaps` tells.
pub(super) fn mappings(base: Address, bytes: u64) -> Vec<KernelMapping> {
    let (start, end) = (base.get(), base.get() + bytes);
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut found = Vec::new();
    let mut is_within = false;
    for line in smaps.lines() {
        if let Some((from, to, permissions)) = header(line) {
            is_within = from < end && to > start;
            if is_within {
                found.push(KernelMapping { permissions, pss_bytes: 0 });
            }
        } else if is_within && let Some(pss) = line.strip_prefix("Pss:") {
            let kib: u64 = pss.trim().trim_end_matches(" kB").parse().unwrap();
            found.last_mut().unwrap().pss_bytes = kib * 1024;
        }
    }
    found
}

fn header(line: &str) -> Option<(u64, u64, String)> {
    let (addresses, rest) = line.split_once(' ')?;
    let (from, to) = addresses.split_once('-')?;
    let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
    Some((from, to, rest.split(' ').next()?.to_owned()))
}
