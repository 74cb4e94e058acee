//! What the kernel says of this process: which addresses are mapped, and which of them have a page.
//!
//! Reads `/proc/self/maps` and `/proc/self/pagemap`; owns nothing and changes nothing. Other threads map and unmap
//! meanwhile: ask about ranges that the test itself holds, or whose size nobody else maps.

use leasehold_plugin_api::Address;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bit 63 of an entry of `/proc/self/pagemap`: the page is in memory (`Documentation/admin-guide/mm/pagemap.rst`).
const PRESENT: u64 = 1 << 63;

/// One line of `/proc/self/maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it begins.
    pub start: u64,
    /// The first address past it.
    pub end: u64,
    /// Whether it can be read and written.
    pub is_open: bool,
}

impl Mapping {
    fn parse(line: &str) -> Self {
        let (range, rest) = line.split_once(' ').expect("a range and its permissions");
        let (start, end) = range.split_once('-').expect("a start and an end");
        let address = |text| u64::from_str_radix(text, 16).expect("a hexadecimal address");
        Self { start: address(start), end: address(end), is_open: rest.starts_with("rw") }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    fn cut_to(&self, base: u64, end: u64) -> Option<Self> {
        let cut = Self { start: self.start.max(base), end: self.end.min(end), ..*self };
        (cut.start < cut.end).then_some(cut)
    }
}

/// The mappings of this process at one moment.
#[derive(Clone, Debug)]
pub struct Mappings(Vec<Mapping>);

impl Mappings {
    /// Asks the kernel.
    ///
    /// # Panics
    ///
    /// Where `/proc` is not mounted.
    #[must_use]
    pub fn read() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc/self/maps");
        Self(maps.lines().map(Mapping::parse).collect())
    }

    /// Asks the kernel until two readings agree on some ranges. A reading takes more than a moment: where other threads map
    /// and unmap beside a range meanwhile, it may show one mapping of the range as two.
    ///
    /// # Panics
    ///
    /// As [`read`](Self::read).
    #[must_use]
    pub fn read_settled(ranges: &[(Address, u64)]) -> Self {
        let in_ranges =
            |all: &Self| ranges.iter().flat_map(|(base, bytes)| all.within(*base, *bytes)).collect::<Vec<_>>();
        let mut last = Self::read();
        loop {
            let now = Self::read();
            if in_ranges(&now) == in_ranges(&last) {
                return now;
            }
            last = now;
        }
    }

    /// The parts of mappings that lie in a range.
    pub fn within(&self, base: Address, bytes: u64) -> impl Iterator<Item = Mapping> {
        let (base, end) = (base.get(), base.get() + bytes);
        self.0.iter().filter_map(move |mapping| mapping.cut_to(base, end))
    }

    /// Bytes of a range that can be read and written.
    #[must_use]
    pub fn open_bytes(&self, base: Address, bytes: u64) -> u64 {
        self.within(base, bytes).filter(|mapping| mapping.is_open).map(|mapping| mapping.bytes()).sum()
    }

    /// Whether no address of a range is free: it is reserved still, or was taken again as a whole.
    #[must_use]
    pub fn hold_all_of(&self, base: Address, bytes: u64) -> bool {
        self.within(base, bytes).map(|mapping| mapping.bytes()).sum::<u64>() == bytes
    }
}

/// The parts of mappings that lie in a range now.
#[must_use]
pub fn mappings_in(base: Address, bytes: u64) -> Vec<Mapping> {
    Mappings::read_settled(&[(base, bytes)]).within(base, bytes).collect()
}

/// Bytes of a range that can be read and written now.
#[must_use]
pub fn open_bytes(base: Address, bytes: u64) -> u64 {
    Mappings::read().open_bytes(base, bytes)
}

/// Whether no address of a range is free now.
#[must_use]
pub fn is_taken_whole(base: Address, bytes: u64) -> bool {
    Mappings::read().hold_all_of(base, bytes)
}

/// Bytes of a range that have a page in memory.
///
/// # Panics
///
/// Where the kernel has no `/proc/self/pagemap`.
#[must_use]
pub fn resident_bytes(base: Address, bytes: u64) -> u64 {
    let page = u64::try_from(rustix::param::page_size()).expect("a page fits");
    let pages = bytes.div_ceil(page);
    let mut entries = vec![0; usize::try_from(pages * 8).expect("the range fits")];
    let pagemap = File::open("/proc/self/pagemap").expect("/proc/self/pagemap");
    pagemap.read_exact_at(&mut entries, base.get() / page * 8).expect("an entry for each page");
    let (entries, _) = entries.as_chunks::<8>();
    let present = entries.iter().filter(|entry| u64::from_ne_bytes(**entry) & PRESENT != 0).count();
    u64::try_from(present).expect("a count fits") * page
}

/// Resident bytes of some ranges, a page that is mapped at n addresses counting 1/n at each: `Pss` of `/proc/self/smaps`,
/// of the mappings that lie within one of the ranges.
///
/// # Panics
///
/// Where `/proc` is not mounted.
#[must_use]
pub fn proportional_bytes(ranges: &[(Address, u64)]) -> u64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("/proc/self/smaps");
    let (mut is_within, mut kib) = (false, 0);
    for line in smaps.lines() {
        if line.split_once(' ').is_some_and(|(range, _)| range.contains('-')) {
            let mapping = Mapping::parse(line);
            let holds =
                |(base, bytes): &(Address, u64)| mapping.start >= base.get() && mapping.end <= base.get() + bytes;
            is_within = ranges.iter().any(holds);
        } else if let Some(pss) = line.strip_prefix("Pss:").filter(|_| is_within) {
            let figure = pss.trim().trim_end_matches(" kB");
            kib += figure.parse::<u64>().expect("a number of kB");
        }
    }
    kib << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touched_page_is_open_and_resident() {
        let page = rustix::param::page_size();
        let bytes = vec![1_u8; 4 * page];
        let base = Address::from_pointer(bytes.as_ptr().cast_mut());
        let len = u64::try_from(bytes.len()).expect("fits");
        assert_eq!(open_bytes(base, len), len);
        assert!(resident_bytes(base, len) >= len);
        assert!(is_taken_whole(base, len));
    }

    #[test]
    fn the_null_page_is_not_mapped() {
        assert_eq!(mappings_in(Address::new(0), 4096), []);
        assert!(!is_taken_whole(Address::new(0), 4096));
        assert_eq!(resident_bytes(Address::new(0), 4096), 0);
    }
}
