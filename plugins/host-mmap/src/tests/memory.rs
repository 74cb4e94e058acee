//! Reads and writes committed memory, and asks the kernel what is behind an address.
#![expect(unsafe_code, reason = "follows addresses that the backing under test handed out")]

use super::PAGE;
use leasehold_plugin_api::Address;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Writes `value` to the first byte of every page; the range is committed.
pub(super) fn mark(base: Address, offset: u64, bytes: u64, value: u8) {
    for page in pages(base, offset, bytes) {
        // SAFETY: the test has committed the page and no other thread touches it.
        unsafe { page.to_pointer::<u8>().write_volatile(value) };
    }
}

/// Whether the first byte of every page is `value`; the range is committed.
pub(super) fn holds(base: Address, offset: u64, bytes: u64, value: u8) -> bool {
    pages(base, offset, bytes).all(|page| {
        // SAFETY: the test has committed the page and no other thread touches it.
        unsafe { page.to_pointer::<u8>().read_volatile() == value }
    })
}

/// Bytes of the range that have a page behind them: bit 63 of each entry, `Documentation/admin-guide/mm/pagemap.rst`.
pub(super) fn resident(base: Address, offset: u64, bytes: u64) -> u64 {
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    let count = pages(base, offset, bytes).filter(|page| {
        let mut entry = [0; 8];
        pagemap.read_exact_at(&mut entry, page.get() / PAGE * 8).unwrap();
        u64::from_ne_bytes(entry) >> 63 == 1
    });
    u64::try_from(count.count()).unwrap() * PAGE
}

/// Kernel mappings that reach into the range.
pub(super) fn mappings(base: Address, bytes: u64) -> usize {
    let (start, end) = (base.get(), base.get() + bytes);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ranges = maps.lines().map(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let (to, _) = rest.split_once(' ').unwrap();
        (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap())
    });
    ranges.filter(|(from, to)| *from < end && *to > start).count()
}

/// Whether this process is the child that runs `test` alone. If not, runs that child and holds it to success.
///
/// For tests that spend something of the whole process.
pub(super) fn is_child(test: &str) -> bool {
    const CHILD: &str = "LEASEHOLD_TEST_CHILD";
    if std::env::var(CHILD).is_ok_and(|name| name == test) {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = format!("tests::{test}");
    let output = child.args(["--exact", &name, "--nocapture", "--test-threads=1"]).env(CHILD, test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Unmaps a page behind the backing's back.
pub(super) fn tear_out(base: Address, offset: u64) {
    let page = base.checked_add(offset).unwrap();
    // SAFETY: the page belongs to a region of the test that nothing refers to.
    unsafe { leasehold_host_memory::sys::unmap(page, PAGE) }.unwrap();
}

/// Maps pages of their own until the process has no mapping left: an odd page takes two, and may leave one.
pub(super) fn take_last_mappings() {
    let (access, kind) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    let page = usize::try_from(PAGE).unwrap();
    // SAFETY: the kernel chooses addresses that nothing has; the pages stay for the life of the process.
    while unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), page, access, kind) }.is_ok() {}
}

/// Pins a range, so that `MADV_DONTNEED` refuses it.
pub(super) fn lock(base: Address, offset: u64, bytes: u64) {
    let start = base.checked_add(offset).unwrap();
    // SAFETY: the range belongs to a region of the test; locking keeps its bytes.
    unsafe { rustix::mm::mlock(start.to_pointer(), usize::try_from(bytes).unwrap()) }.unwrap();
}

fn pages(base: Address, offset: u64, bytes: u64) -> impl Iterator<Item = Address> {
    (0..bytes / PAGE).map(move |page| base.checked_add(offset + page * PAGE).unwrap())
}
