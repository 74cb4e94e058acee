//! Puts real buffers behind the scheduler's store: what each strategy does when a cache grows.
//!
//! * `setting`: what all strategies of one run share: host, backing, sizes.
//! * `reserved`: address space for the whole context, committed as the cache grows, or all at once.
//! * `reallocated`: double and copy.
//! * `sharing`: as it grows, and prompts share what they have in common.
//! * `rows`: what a token's row holds, so that a row that is lost or mixed up is noticed.
//! * `plane`: rows in memory, by slices or by copies.

mod plane;
mod reallocated;
mod reserved;
mod rows;
mod setting;
mod sharing;

pub(super) use plane::Touch;
pub(super) use reallocated::ReallocatedStore;
pub(super) use reserved::ReservedStore;
pub(super) use setting::Setting;
pub(super) use sharing::SharingStore;

use clap::ValueEnum;
use std::fmt;

/// What a cache does when it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyName {
    /// Reserves the context window, commits as the cache grows.
    Leasehold,
    /// Commits the context window up front.
    Prealloc,
    /// Doubles and copies.
    Realloc,
    /// As `leasehold`, and maps what prompts have in common.
    Sharing,
}

impl fmt::Display for StrategyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Leasehold => "leasehold",
            Self::Prealloc => "prealloc",
            Self::Realloc => "realloc",
            Self::Sharing => "sharing",
        })
    }
}
