//! Whether the CPU can touch a backing's memory, as it crosses.

use crate::CpuAccess;
use abi_stable::StableAbi;

/// A [`CpuAccess`]: 1 none, 2 direct, 3 direct and copied by fork. Memory that was never written is no claim, and a number
/// that the reader does not know is none either.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct AccessRecord {
    kind: u32,
}

impl From<CpuAccess> for AccessRecord {
    fn from(access: CpuAccess) -> Self {
        let kind = match access {
            CpuAccess::None => 1,
            CpuAccess::Direct => 2,
            CpuAccess::DirectAndCopiedByFork => 3,
        };
        Self { kind }
    }
}

impl AccessRecord {
    /// The access; one that is not known is taken for none, of which no slice is made.
    #[must_use]
    pub fn access(self) -> CpuAccess {
        match self.kind {
            2 => CpuAccess::Direct,
            3 => CpuAccess::DirectAndCopiedByFork,
            _ => CpuAccess::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_survives_its_record_and_an_unknown_one_is_none() {
        for access in [CpuAccess::None, CpuAccess::Direct, CpuAccess::DirectAndCopiedByFork] {
            let record = AccessRecord::from(access);
            assert_eq!((record.access(), record.kind != 0), (access, true));
        }
        for kind in [0, 4, u32::MAX] {
            assert_eq!(AccessRecord { kind }.access(), CpuAccess::None, "{kind}");
        }
    }
}
