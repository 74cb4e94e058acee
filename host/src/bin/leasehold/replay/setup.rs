//! What a replay was asked for: known before it starts, and shown beside what it found.

use super::arguments::ReplayArguments;
use super::layout::{self, LayoutName};
use super::prefix::PrefixBound;
use super::trace::{Trace, TraceFormat};
use leasehold::{BackingHandle, Host, ShareabilityError};
use std::time::Duration;

/// What a replay was asked for.
#[derive(Debug)]
pub(super) struct Setup {
    /// As it was named on the command line; `None` for a workload that was drawn.
    pub(super) trace: Option<String>,
    pub(super) format: TraceFormat,
    pub(super) requests: usize,
    /// From the first arrival to the last.
    pub(super) span: Duration,
    pub(super) output_tokens: u64,
    pub(super) prefix: PrefixBound,
    pub(super) model: String,
    pub(super) layout: LayoutName,
    /// The most tokens of one request.
    pub(super) context: u64,
    pub(super) step: Duration,
    pub(super) backings: Vec<BackingFacts>,
}

/// One backing that the trace is replayed on.
#[derive(Debug)]
pub(super) struct BackingFacts {
    pub(super) name: String,
    pub(super) budget_bytes: u64,
    /// What can be shared of a prefix at its granule; `None` where it has none.
    pub(super) sharing: Option<String>,
}

impl Setup {
    /// Of a host whose budgets are set.
    ///
    /// # Errors
    /// When a backing's granule is 0.
    pub(super) fn new(
        arguments: &ReplayArguments,
        trace: &Trace,
        host: &Host,
        backings: &[BackingHandle],
    ) -> Result<Self, ShareabilityError> {
        let backings = backings.iter().map(|backing| BackingFacts::new(arguments, host, backing));
        Ok(Self {
            trace: arguments.trace.as_ref().map(|path| path.display().to_string()),
            format: trace.format,
            requests: trace.requests.len(),
            span: trace.requests.last().map_or(Duration::ZERO, |last| last.arrival),
            output_tokens: trace.requests.iter().fold(0, |sum, one| sum.saturating_add(one.output_tokens)),
            prefix: PrefixBound::of(&trace.requests),
            model: arguments.model.name().to_owned(),
            layout: arguments.layout,
            context: arguments.context(),
            step: Duration::from_millis(arguments.step_ms),
            backings: backings.collect::<Result<_, _>>()?,
        })
    }
}

impl BackingFacts {
    fn new(arguments: &ReplayArguments, host: &Host, backing: &BackingHandle) -> Result<Self, ShareabilityError> {
        let granule = backing.capabilities().granularity();
        Ok(Self {
            name: backing.name().to_owned(),
            budget_bytes: host.snapshot().domain(backing.domain()).map_or(0, |books| books.limit_bytes),
            sharing: granule.map(|granule| layout::sharing(&arguments.model, granule)).transpose()?,
        })
    }
}

#[cfg(test)]
impl Setup {
    /// Of an Azure trace of one request.
    pub(super) fn example() -> Self {
        let sharing = Some("prefixes at granules of 4.0 KiB: long ones".to_owned());
        Self {
            trace: Some("trace.csv".to_owned()),
            format: TraceFormat::AzureCsv,
            requests: 1,
            span: Duration::ZERO,
            output_tokens: 1,
            prefix: PrefixBound::default(),
            model: "qwen2.5-0.5b".to_owned(),
            layout: LayoutName::PerLayer,
            context: 32_768,
            step: Duration::from_millis(25),
            backings: vec![BackingFacts { name: "host-mmap".to_owned(), budget_bytes: 1 << 30, sharing }],
        }
    }
}
