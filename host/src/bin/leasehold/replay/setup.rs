//! What a replay was asked for: known before it starts, and shown beside what it found.

use super::arguments::ReplayArguments;
use super::layout;
use super::prefix::PrefixBound;
use super::trace::{Trace, TraceFormat};
use leasehold::{BackingHandle, ShareabilityError};

/// What a replay was asked for.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) format: TraceFormat,
    pub(super) requests: usize,
    pub(super) prefix: PrefixBound,
    pub(super) backings: Vec<BackingFacts>,
}

/// One backing that the trace is replayed on.
#[derive(Debug)]
pub(super) struct BackingFacts {
    pub(super) name: String,
    /// What can be shared of a prefix at its granule; `None` where it has none.
    pub(super) sharing: Option<String>,
}

impl Setup {
    /// # Errors
    /// When a backing's granule is 0.
    pub(super) fn new(
        arguments: &ReplayArguments,
        trace: &Trace,
        backings: &[BackingHandle],
    ) -> Result<Self, ShareabilityError> {
        let backings = backings.iter().map(|backing| BackingFacts::new(arguments, backing));
        Ok(Self {
            format: trace.format,
            requests: trace.requests.len(),
            prefix: PrefixBound::of(&trace.requests),
            backings: backings.collect::<Result<_, _>>()?,
        })
    }
}

impl BackingFacts {
    fn new(arguments: &ReplayArguments, backing: &BackingHandle) -> Result<Self, ShareabilityError> {
        let granule = backing.capabilities().granularity();
        Ok(Self {
            name: backing.name().to_owned(),
            sharing: granule.map(|granule| layout::sharing(&arguments.model, granule)).transpose()?,
        })
    }
}

#[cfg(test)]
impl Setup {
    /// Of an Azure trace of one request, as far as anybody looks.
    pub(super) fn example() -> Self {
        let sharing = Some("prefixes at granules of 4.0 KiB: long ones".to_owned());
        let backings = vec![BackingFacts { name: "host-mmap".to_owned(), sharing }];
        Self { format: TraceFormat::AzureCsv, requests: 1, prefix: PrefixBound::default(), backings }
    }
}
