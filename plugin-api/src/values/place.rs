//! Where memory is: the tier, the device, and the domain whose budget it is charged to.

use std::fmt;
use std::str::FromStr;

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Memory of an accelerator.
    Device,
    /// Memory of the machine.
    Host,
    /// A file.
    Disk,
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Tier::Device => "device",
            Tier::Host => "host",
            Tier::Disk => "disk",
        })
    }
}

/// One device: a tier, and a number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey {
    /// The kind of memory.
    pub tier: Tier,
    /// The device's number within its tier, as its driver counts them. The host numbers disks itself: see
    /// [`DISK`](Self::DISK).
    pub ordinal: u32,
}

impl DeviceKey {
    /// The machine's own memory.
    pub const HOST: Self = Self { tier: Tier::Host, ordinal: 0 };

    /// The disk of a backing. The host decides its number: in the description and in calls of the services it reads any
    /// number of a disk as that of the backing's entry in the registry file.
    pub const DISK: Self = Self { tier: Tier::Disk, ordinal: 0 };

    /// Accelerator number `ordinal`.
    #[must_use]
    pub const fn device(ordinal: u32) -> Self {
        Self { tier: Tier::Device, ordinal }
    }

    /// The domain that its memory is charged to: every host device shares one, each accelerator and
    /// each disk has its own.
    #[must_use]
    pub const fn domain(self) -> Domain {
        match self.tier {
            Tier::Host => Domain::Host,
            Tier::Disk => Domain::Disk(self.ordinal),
            Tier::Device => Domain::Device(self.ordinal),
        }
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.tier, self.ordinal)
    }
}

/// A pool of physical memory with one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// The machine's memory, shared by all devices.
    Host,
    /// The memory of one accelerator.
    Device(u32),
    /// One disk: the files of one backing, or of several whose entries have the same number.
    Disk(u32),
}

impl Domain {
    /// The kind of memory.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Domain::Host => Tier::Host,
            Domain::Device(_) => Tier::Device,
            Domain::Disk(_) => Tier::Disk,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Host => formatter.write_str("host"),
            Domain::Device(ordinal) => write!(formatter, "device:{ordinal}"),
            Domain::Disk(ordinal) => write!(formatter, "disk:{ordinal}"),
        }
    }
}

/// A text that names no domain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no domain: wanted \"host\", \"device:N\" or \"disk:N\"")]
pub struct ParseDomainError {
    text: String,
}

impl FromStr for Domain {
    type Err = ParseDomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbered = match text.split_once(':') {
            Some(("device", digits)) => ordinal(digits).map(Domain::Device),
            Some(("disk", digits)) => ordinal(digits).map(Domain::Disk),
            _ => (text == "host").then_some(Domain::Host),
        };
        numbered.ok_or_else(|| ParseDomainError { text: text.to_owned() })
    }
}

/// Digits alone: no sign.
fn ordinal(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_reads_back_what_it_prints() {
        for domain in [Domain::Host, Domain::Disk(0), Domain::Disk(3), Domain::Device(0), Domain::Device(17)] {
            assert_eq!(domain.to_string().parse(), Ok(domain));
        }
    }

    #[test]
    fn a_text_that_names_no_domain_is_refused() {
        for text in
            ["", "Host", "device", "device:", "device:-1", "device:+1", "device:4294967296", "host:0", "disk", "disk:"]
        {
            assert!(text.parse::<Domain>().is_err(), "{text:?}");
        }
    }
}
