//! Turns what a store answers into what a scheduler does about it: go on, make room, or stop.

use super::super::store::StoreError;
use super::super::trace::Request;

/// A run that was stopped, because the store can't go on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ReplayError {
    #[error("replay: stopped at {act} the cache of the request on line {line}: {reason}")]
    Broken { act: &'static str, line: u64, reason: String },
    #[error("replay: stopped at closing an unused cache: {reason}")]
    BrokenSpare { reason: String },
    #[error("replay: no histogram for growth times: {0}; report this as a fault of the program")]
    Histogram(hdrhistogram::CreationError),
}

/// What a store that isn't broken answers; a refusal holds its reason.
pub(super) type Answer<T> = Result<T, String>;

/// Tells a refusal, which the scheduler deals with, from a broken store, which ends the run.
pub(super) fn answered<T>(
    request: &Request,
    act: &'static str,
    result: Result<T, StoreError>,
) -> Result<Answer<T>, ReplayError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Exhausted(reason)) => Ok(Err(reason)),
        Err(StoreError::Broken(reason)) => Err(ReplayError::Broken { act, line: request.line, reason }),
    }
}

/// For an act that needs no budget, so that a refusal makes no sense: any failure ends the run.
pub(super) fn done(request: &Request, act: &'static str, result: Result<(), StoreError>) -> Result<(), ReplayError> {
    result.map_err(|error| ReplayError::Broken { act, line: request.line, reason: error.reason() })
}
