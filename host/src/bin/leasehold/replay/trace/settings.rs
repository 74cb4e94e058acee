//! Checks one setting of a synthetic workload.

/// A workload that can't be drawn.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("synthetic workload: {setting} is {seen}: wanted {wanted}; correct it")]
pub(crate) struct SyntheticError {
    setting: &'static str,
    seen: String,
    wanted: String,
}

impl SyntheticError {
    pub(super) fn new(setting: &'static str, seen: impl ToString, wanted: &str) -> Self {
        Self { setting, seen: seen.to_string(), wanted: wanted.to_owned() }
    }
}

pub(super) fn check(
    setting: &'static str,
    seen: impl ToString,
    holds: bool,
    wanted: &str,
) -> Result<(), SyntheticError> {
    if holds { Ok(()) } else { Err(SyntheticError::new(setting, seen, wanted)) }
}
