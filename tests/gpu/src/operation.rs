//! What is done beside a graph: growth, mapping, shrinking and writing, a granule at a time, and whether it came out right.
//!
//! It owns a buffer whose first granule is the graph's, and what the operation needs beside it. Whoever has a graph write
//! there ends that before this value goes.

use crate::hosts::Settings;
use crate::table::Trouble;
use leasehold::{BufferSet, BufferSpec, Host, PrefixSpec, SharedPrefix};
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

/// What the operation has to leave alone, or to show.
const KEPT: [u8; 8] = *b"untouchd";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Growth,
    Mapping,
    Shrinking,
    Writing,
}

impl Operation {
    pub(crate) const ALL: [Self; 4] = [Self::Growth, Self::Mapping, Self::Shrinking, Self::Writing];
}

impl Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Growth => "growth of its buffer",
            Self::Mapping => "a prefix mapped into another buffer",
            Self::Shrinking => "shrinking of its buffer",
            Self::Writing => "writing to its buffer",
        })
    }
}

/// An operation, and what it is done to.
pub(crate) struct Stage {
    operation: Operation,
    granule: u64,
    /// Its first granule is the graph's, the others are the operation's.
    buffer: BufferSet,
    base: u64,
    /// Of a mapping: the prefix, and the buffer that it is mapped into, over and over.
    shared: Option<(SharedPrefix, BufferSet)>,
    /// Of writing: what is written.
    bytes: Vec<u8>,
    _host: Host,
}

impl Stage {
    /// For the operation to be done that often.
    pub(crate) fn new(settings: &Settings, operation: Operation, times: u64) -> Result<Self, Trouble> {
        let granule = settings.sizes.granule;
        let name = if operation == Operation::Mapping { "cuda-pool" } else { "cuda-vmm" };
        let (host, backing) = settings.host(name)?;
        let capacity = BufferSpec::new((times + 1) * granule);
        let mut buffer = host.buffer_set(&backing, 1, &capacity)?;
        let granules = match operation {
            Operation::Growth | Operation::Mapping => 1,
            Operation::Writing => 2,
            Operation::Shrinking => times + 1,
        };
        buffer.grow_to(granules * granule)?;
        let base = buffer.base(0).ok_or_else(|| Trouble::wrong("it has no plane"))?.get();
        let mut shared = None;
        if operation == Operation::Mapping {
            let mut prefix = host.prefix(&backing, &PrefixSpec::new(granule))?;
            prefix.write(0, granule - 8, &KEPT)?;
            let prefix = prefix.seal().map_err(leasehold::Error::from)?;
            shared = Some((prefix, host.buffer_set(&backing, 1, &capacity)?));
        }
        if operation == Operation::Shrinking {
            (1..granules).try_for_each(|index| buffer.write(0, (index + 1) * granule - 8, &KEPT))?;
        }
        let bytes = vec![0; usize::try_from(granule)?];
        Ok(Self { operation, granule, buffer, base, shared, bytes, _host: host })
    }

    /// Where the graph's granule begins.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Its size in bytes.
    pub(crate) fn granule(&self) -> u64 {
        self.granule
    }

    /// Zeroes the graph's granule.
    pub(crate) fn clear(&mut self) -> Result<(), Trouble> {
        Ok(self.buffer.fill(0, 0, self.granule, 0)?)
    }

    /// The end of the graph's granule.
    pub(crate) fn shows(&self) -> Result<[u8; 8], Trouble> {
        end_of(&self.buffer, self.granule)
    }

    /// Does the operation once, and answers how long that took.
    pub(crate) fn act(&mut self) -> Result<Duration, Trouble> {
        let Self { operation, granule, buffer, shared, bytes, .. } = self;
        let next = bytes.first().map_or(0, |byte| byte.wrapping_add(1));
        bytes.fill(next);
        let begin = Instant::now();
        match (operation, shared) {
            (Operation::Mapping, Some((prefix, other))) => other.map_prefix(prefix)?,
            (Operation::Writing, _) => buffer.write(0, *granule, bytes)?,
            (Operation::Shrinking, _) => buffer.shrink_to(buffer.len().saturating_sub(*granule))?,
            (Operation::Growth | Operation::Mapping, _) => buffer.grow_to(buffer.len() + *granule)?,
        }
        Ok(begin.elapsed())
    }

    /// The same on another thread, which is bound to no context and minds what others capture.
    pub(crate) fn act_elsewhere(&mut self) -> Result<Duration, Trouble> {
        let acted = std::thread::scope(|scope| scope.spawn(|| self.act()).join());
        acted.map_err(|_| Trouble::wrong("the operation panicked"))?
    }

    /// Whether what was done last shows, and the buffer is where it was.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let (seen, wanted) = match (self.operation, &self.shared) {
            (Operation::Mapping, Some((_, other))) => (end_of(other, other.len())?, KEPT),
            (Operation::Writing, _) => (end_of(&self.buffer, 2 * self.granule)?, [self.bytes[0]; 8]),
            // The granule that is left is the graph's.
            (Operation::Shrinking, _) if self.buffer.len() == self.granule => return self.check_base(),
            (Operation::Shrinking, _) => (end_of(&self.buffer, self.buffer.len())?, KEPT),
            (Operation::Growth | Operation::Mapping, _) => (end_of(&self.buffer, self.buffer.len())?, [0; 8]),
        };
        if seen != wanted {
            return Err(Trouble::wrong(format!("the operation leaves {seen:?}, and not {wanted:?}")));
        }
        self.check_base()
    }

    fn check_base(&self) -> Result<(), Trouble> {
        let stays = self.buffer.base(0).is_some_and(|base| base.get() == self.base);
        if stays { Ok(()) } else { Err(Trouble::wrong("it moved")) }
    }
}

/// The last bytes before an offset.
fn end_of(buffer: &BufferSet, end: u64) -> Result<[u8; 8], Trouble> {
    let mut seen = [0xEE; 8];
    buffer.read(0, end.saturating_sub(8), &mut seen)?;
    Ok(seen)
}
