//! Why a command did not do what was asked, and the exit status that says so.

use crate::output;
use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for does not hold: exit status 1.
    DoesNotHold(String),
    /// Usage, or input that can't be read: exit status 2.
    Unusable(String),
}

impl Failure {
    pub(crate) fn does_not_hold(why: impl fmt::Display) -> Self {
        Self::DoesNotHold(why.to_string())
    }

    pub(crate) fn unusable(why: impl fmt::Display) -> Self {
        Self::Unusable(why.to_string())
    }

    /// Says it, and answers the exit status.
    pub(crate) fn report(self) -> ExitCode {
        let (text, status) = match self {
            Self::DoesNotHold(text) => (text, 1),
            Self::Unusable(text) => (text, 2),
        };
        output::say(&format!("leasehold: {text}"));
        ExitCode::from(status)
    }
}

impl From<leasehold::Error> for Failure {
    fn from(error: leasehold::Error) -> Self {
        match error.kind() {
            leasehold::ErrorKind::Registry => Self::unusable(error),
            _ => Self::does_not_hold(error),
        }
    }
}
