//! What became of each backing of a registry file, stage by stage.

use crate::loader::Door;
use leasehold_plugin_api::{Accounting, AuthorityId, Description};
use std::fmt;

/// A stage on the way from the registry file to a backing that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The entry in the registry file.
    Registry,
    /// The library on disk.
    Resolve,
    /// The library opened, its door and its layout.
    Load,
    /// The backing made from its options.
    Create,
    /// What it says it is and offers.
    Discover,
    /// Whose books it keeps.
    Books,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Stage::Registry => "registry",
            Stage::Resolve => "resolve",
            Stage::Load => "load",
            Stage::Create => "create",
            Stage::Discover => "discover",
            Stage::Books => "books",
        })
    }
}

/// One stage that an entry went through, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The stage.
    pub stage: Stage,
    /// What was found there. For the last stage of a backing that is not ready, why.
    pub finding: String,
}

/// Whether a backing can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackingState {
    /// It serves buffers.
    Ready,
    /// The registry file or the selection turned it off.
    Disabled {
        /// Which of them.
        reason: String,
    },
    /// It was loaded, but its driver or device is not here.
    Unavailable {
        /// What is missing, and what to install.
        reason: String,
    },
    /// It was refused.
    Rejected {
        /// At which stage.
        stage: Stage,
        /// What was found and wanted, and what to do.
        reason: String,
    },
    /// It was ready, and was taken out of service.
    Retired {
        /// What it did.
        reason: String,
    },
}

impl BackingState {
    /// Its name: `ready`, `disabled`, `unavailable`, `rejected` or `retired`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Disabled { .. } => "disabled",
            Self::Unavailable { .. } => "unavailable",
            Self::Rejected { .. } => "rejected",
            Self::Retired { .. } => "retired",
        }
    }

    /// Why it is not ready.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Disabled { reason }
            | Self::Unavailable { reason }
            | Self::Rejected { reason, .. }
            | Self::Retired { reason } => Some(reason),
        }
    }
}

impl fmt::Display for BackingState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What became of one backing.
#[derive(Clone, Debug)]
pub struct BackingReport {
    /// The name that engines ask for.
    pub name: String,
    /// The library: a path, `builtin`, or what was asked for where nothing was found.
    pub library: String,
    /// Whether the host does not start without it.
    pub required: bool,
    /// Among backings that fit, the highest wins.
    pub priority: i64,
    /// How it came in, where it got so far.
    pub door: Option<Door>,
    /// Whether it can be used.
    pub state: BackingState,
    /// Why a backing that is ready can serve nothing, and what to do.
    pub caution: Option<String>,
    /// What it said of itself, where it got so far.
    pub description: Option<Description>,
    /// The names of what it offers.
    pub capabilities: Vec<&'static str>,
    /// The unit of commit in bytes, where it reserves and commits.
    pub granularity: Option<u64>,
    /// Who pays for its physical memory.
    pub accounting: Option<Accounting>,
    /// The books that its memory is charged to.
    pub authority: Option<AuthorityId>,
    /// Every stage that it went through.
    pub stages: Vec<StageReport>,
}
