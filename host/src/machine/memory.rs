//! Turns what the kernel says about memory into [`HostMemory`]: what this process can hope to get.
//!
//! `/proc/meminfo` (proc_meminfo(5)) tells of the machine; the control groups narrow it.

use super::cgroup::{MemoryLimit, memory_limits};
use std::fs;
use std::io;

const MEMINFO: &str = "/proc/meminfo";

/// The memory of the machine, as far as this process may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostMemory {
    pub(crate) total_bytes: u64,
    /// What can be had without swapping; at most the total.
    pub(crate) free_bytes: u64,
}

impl HostMemory {
    /// Reads it as it is now. Control groups that can't be read limit nothing.
    ///
    /// # Errors
    ///
    /// `/proc/meminfo` can't be read, or does not tell the total.
    pub(crate) fn read() -> io::Result<Self> {
        let text = fs::read_to_string(MEMINFO)
            .map_err(|error| io::Error::new(error.kind(), format!("{MEMINFO} can't be read: {error}")))?;
        let machine = Self::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{MEMINFO} has no MemTotal in kB")))?;
        Ok(memory_limits().into_iter().fold(machine, Self::narrowed))
    }

    /// Reads the text of `/proc/meminfo`. Kernels before 3.14 have no `MemAvailable`; what is plainly free stands in.
    fn parse(text: &str) -> Option<Self> {
        let total_bytes = kilobytes(text, "MemTotal:")?;
        let free_bytes = kilobytes(text, "MemAvailable:").or_else(|| kilobytes(text, "MemFree:"))?;
        Some(Self { total_bytes, free_bytes: free_bytes.min(total_bytes) })
    }

    /// The part of this memory that a limit leaves.
    fn narrowed(self, limit: MemoryLimit) -> Self {
        Self {
            total_bytes: self.total_bytes.min(limit.limit_bytes),
            free_bytes: self.free_bytes.min(limit.limit_bytes.saturating_sub(limit.used_bytes)),
        }
    }
}

/// The value of a line `name value kB`, in bytes: the unit is 1024 bytes, whatever it is called.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix(" kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "MemTotal:       24684096 kB\nMemFree:        22693344 kB\nMemAvailable:   24313872 kB\n";

    fn memory(total_bytes: u64, free_bytes: u64) -> HostMemory {
        HostMemory { total_bytes, free_bytes }
    }

    #[test]
    fn what_is_available_counts_as_free() {
        assert_eq!(HostMemory::parse(TEXT), Some(memory(24_684_096 * 1024, 24_313_872 * 1024)));
    }

    #[test]
    fn what_is_free_stands_in_on_an_old_kernel() {
        let old = TEXT.replace("MemAvailable", "Buffers");
        assert_eq!(HostMemory::parse(&old), Some(memory(24_684_096 * 1024, 22_693_344 * 1024)));
    }

    #[test]
    fn a_text_without_a_total_tells_nothing() {
        for text in ["", "MemTotal: 5", "MemTotal: x kB\nMemFree: 1 kB", "MemTotal: 99999999999999999999 kB\n"] {
            assert_eq!(HostMemory::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_limit_narrows_the_total_and_what_is_free() {
        let machine = memory(1000, 800);
        let limit = |limit_bytes, used_bytes| MemoryLimit { limit_bytes, used_bytes };
        assert_eq!(machine.narrowed(limit(500, 100)), memory(500, 400));
        assert_eq!(machine.narrowed(limit(900, 50)), memory(900, 800));
        assert_eq!(machine.narrowed(limit(u64::MAX, 0)), machine);
        assert_eq!(machine.narrowed(limit(500, 600)), memory(500, 0));
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = HostMemory::read().unwrap();
        assert!(memory.total_bytes > 0 && memory.free_bytes <= memory.total_bytes, "{memory:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "((MemTotal|MemFree|MemAvailable): {0,3}[0-9]{0,22}( kB)?\n|.{0,9}){0,4}") {
            if let Some(memory) = HostMemory::parse(&text) {
                prop_assert!(memory.free_bytes <= memory.total_bytes);
            }
        }
    }
}
