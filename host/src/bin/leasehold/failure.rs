//! Why a command did not do what was asked, and the exit status that says so.

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

    pub(crate) fn exit_status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::DoesNotHold(_) => 1,
            Self::Unusable(_) => 2,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::DoesNotHold(text) | Self::Unusable(text)) = self;
        formatter.write_str(text)
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
